//! Socket options: a constant per option with an integer as its value, a function for any other.
//!
//! Everything fails with the operating system's error under the name of the option
//! (`setsockopt TCP_NODELAY`). [`crate::OsError::is_unsupported`] distinguishes an option this
//! kernel or kind of socket lacks from a refused value.

mod flow_label;
mod ip;
mod multicast;
mod sctp;
mod tcp;

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use libc::c_int;

use crate::error::{During, Result};
use crate::option::option;
use crate::syscall::syscall;

pub use crate::option::SocketOption;
pub use flow_label::{lease_flow_label, with_flow_label};
pub use ip::{
    IP_BIND_ADDRESS_NO_PORT, IP_MTU_DISCOVER, IP_MULTICAST_ALL, IPV6_MTU_DISCOVER, IPV6_V6ONLY,
    path_mtu, set_dont_fragment, set_local_port_range, set_path_mtu_probe, set_receive_destination,
    set_receive_errors, set_receive_icmp_extensions, set_receive_tos, set_receive_ttl, set_tos,
    set_ttl,
};
pub use multicast::{join_group, set_multicast_ttl};
pub use sctp::{SCTP_NODELAY, sctp_bindx, set_sctp_init_streams};
pub use tcp::{
    TCP_KEEPCNT, TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_MAXSEG, TCP_NODELAY, TCP_NOTSENT_LOWAT,
    TCP_QUICKACK, TCP_USER_TIMEOUT, TCP_WINDOW_CLAMP, congestion, set_congestion,
};

/// Lets the address be bound while connections of an earlier listener linger (socket(7)).
pub const SO_REUSEADDR: SocketOption<bool> = option!(SOL_SOCKET, SO_REUSEADDR);

/// Lets several sockets of one user share the address; the kernel spreads peers over them
/// (socket(7), Linux 3.9).
pub const SO_REUSEPORT: SocketOption<bool> = option!(SOL_SOCKET, SO_REUSEPORT);

/// Lets [`crate::udp::Message`] hold when the kernel received a datagram (socket(7), Linux 2.6.22).
/// Data already queued has no timestamp and gets that of the read.
pub const SO_TIMESTAMPNS: SocketOption<bool> = option!(SOL_SOCKET, SO_TIMESTAMPNS);

/// Send buffer in bytes (socket(7)). The kernel doubles the request for its own overhead and caps
/// it at `net.core.wmem_max`; what is read is what was granted. A request ends TCP's own tuning.
pub const SO_SNDBUF: SocketOption<u32> = option!(SOL_SOCKET, SO_SNDBUF);

/// Receive buffer in bytes (socket(7)), capped at `net.core.rmem_max`; else as [`SO_SNDBUF`].
pub const SO_RCVBUF: SocketOption<u32> = option!(SOL_SOCKET, SO_RCVBUF);

const SO_INCOMING_CPU: SocketOption<u32> = option!(SOL_SOCKET, SO_INCOMING_CPU);

/// Number of the CPU that processed the last packet of the socket (socket(7), Linux 3.19); `None`
/// before the first one and where the kernel does not report it.
#[must_use]
pub fn incoming_cpu(fd: impl AsFd) -> Option<u32> {
    let cpu = SO_INCOMING_CPU.get(fd).ok()?;
    // The kernel has -1 before the first packet.
    i32::try_from(cpu).is_ok().then_some(cpu)
}

/// Probes an idle connection so that a vanished peer is noticed (socket(7)).
pub const SO_KEEPALIVE: SocketOption<bool> = option!(SOL_SOCKET, SO_KEEPALIVE);

/// Sends to hosts on the local network only, never through a gateway (socket(7)).
pub const SO_DONTROUTE: SocketOption<bool> = option!(SOL_SOCKET, SO_DONTROUTE);

/// Cuts every write into datagrams of this many bytes (udp(7), Linux 4.18); 0 switches it off. For
/// single writes see [`crate::udp::send_segmented`].
pub const UDP_SEGMENT: SocketOption<u32> =
    option!(IPPROTO_UDP, UDP_SEGMENT, crate::udp::UDP_SEGMENT);

/// Receives trains of equal datagrams as one buffer (udp(7), Linux 5.0); [`crate::udp::RecvBatch`]
/// returns the size of one.
pub const UDP_GRO: SocketOption<bool> = option!(IPPROTO_UDP, UDP_GRO, crate::udp::UDP_GRO);

/// Requests a receive buffer beyond `net.core.rmem_max` where we may (`SO_RCVBUFFORCE`, needs
/// `CAP_NET_ADMIN`), within it where not.
///
/// # Errors
/// The operating system's.
pub fn force_receive_buffer(fd: impl AsFd, bytes: u32) -> Result<()> {
    FORCED_RECEIVE_BUFFER
        .set(&fd, bytes)
        .or_else(|_| SO_RCVBUF.set(&fd, bytes))
}

const FORCED_RECEIVE_BUFFER: SocketOption<u32> = option!(SOL_SOCKET, SO_RCVBUFFORCE);

/// Makes closing the socket reset the connection: what is unsent is lost, and neither end keeps a
/// TIME_WAIT (`SO_LINGER` with zero seconds, socket(7)).
///
/// # Errors
/// The operating system's.
pub fn set_reset_on_close(fd: impl AsFd) -> Result<()> {
    socket2::SockRef::from(&fd)
        .set_linger(Some(std::time::Duration::ZERO))
        .during("setsockopt SO_LINGER", 0)
}

/// Caps the socket's send rate in the kernel (`SO_MAX_PACING_RATE`, Linux 3.13, tc-fq(8)).
///
/// `bytes_per_second` counts payload and headers. Effective with the `fq` qdisc or TCP's own pacing
/// (Linux 4.13). `u64::MAX` takes the cap away. Before Linux 5.0 the kernel reads the low 32 bits
/// only: see [`get_max_pacing_rate`].
///
/// # Errors
/// The operating system's.
pub fn set_max_pacing_rate(fd: impl AsFd, bytes_per_second: u64) -> Result<()> {
    PACING_RATE.set_bytes(fd, &bytes_per_second.to_ne_bytes(), bytes_per_second)
}

/// The cap on the send rate in bytes per second; `None` without a cap (`SO_MAX_PACING_RATE`, 64
/// bits since Linux 5.0).
///
/// # Errors
/// The operating system's.
pub fn get_max_pacing_rate(fd: impl AsFd) -> Result<Option<u64>> {
    let mut value = [0; 8];
    let written = PACING_RATE.get_bytes(fd, &mut value)?;
    // A kernel without the 64-bit form writes an u32, whose maximum means the same.
    let unlimited = if written == 8 {
        u64::MAX
    } else {
        u64::from(u32::MAX)
    };

    Ok(Some(u64::from_ne_bytes(value)).filter(|rate| *rate != unlimited))
}

const PACING_RATE: SocketOption = option!(SOL_SOCKET, SO_MAX_PACING_RATE);

/// Sends and receives through one network device only (`SO_BINDTODEVICE`, socket(7)). An empty name
/// undoes it. Needs `CAP_NET_RAW` to change an existing binding, nothing for the first one since
/// Linux 5.7.
///
/// # Errors
/// The operating system's; `ENODEV` for a device that does not exist.
pub fn bind_device(fd: impl AsFd, device: &str) -> Result<()> {
    let option: SocketOption = option!(SOL_SOCKET, SO_BINDTODEVICE);
    option.set_bytes(fd, device.as_bytes(), device)
}

/// The receive buffer of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiveMemory {
    /// Bytes it holds, with the kernel's overhead for each message.
    pub used_bytes: u32,
    /// Bytes it may hold, counted the same way.
    pub limit_bytes: u32,
    /// Messages that the kernel dropped because it was full. A train of datagrams (`UDP_GRO`) is
    /// one message.
    pub dropped_messages: u32,
}

/// Fill level of the receive buffer (`SO_MEMINFO`, Linux 4.12).
///
/// # Errors
/// The operating system's; `InvalidData` from a kernel that does not count drops.
pub fn receive_memory(fd: impl AsFd) -> Result<ReceiveMemory> {
    const WORD: usize = size_of::<u32>();

    let mut bytes = [0; 9 * WORD];
    let memory: SocketOption = option!(SOL_SOCKET, SO_MEMINFO, 55);
    let len = memory.get_bytes(fd, &mut bytes)?;
    let words = bytes[..len].as_chunks::<WORD>().0;

    // SK_MEMINFO_RMEM_ALLOC, _RCVBUF and, since Linux 4.12, _DROPS
    // (include/uapi/linux/sock_diag.h).
    if let &[used, limit, .., dropped] = words
        && len == bytes.len()
    {
        return Ok(ReceiveMemory {
            used_bytes: u32::from_ne_bytes(used),
            limit_bytes: u32::from_ne_bytes(limit),
            dropped_messages: u32::from_ne_bytes(dropped),
        });
    }

    Err(io::Error::new(
        io::ErrorKind::InvalidData,
        "the kernel does not count drops",
    ))
    .during(memory.get, "")
}

/// Bytes written to the socket that the peer has not acknowledged (TCP), or that have not left the
/// host (UDP) (`SIOCOUTQ`, tcp(7), udp(7)).
///
/// # Errors
/// The operating system's.
pub fn outq_bytes(fd: impl AsFd) -> io::Result<u32> {
    let mut bytes: c_int = 0;
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: this ioctl, known as SIOCOUTQ on sockets, writes one int through its argument.
    syscall(unsafe { libc::ioctl(fd, libc::TIOCOUTQ, &raw mut bytes) })?;
    u32::try_from(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
}
