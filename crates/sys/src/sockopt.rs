//! Socket options, one function each.
//!
//! Every function fails with the operating system's error under the name of the option (`setsockopt TCP_NODELAY`).
//! [`crate::OsError::is_unsupported`] distinguishes an option this kernel or kind of socket lacks from a refused value.

mod flow_label;
mod ip;
mod multicast;
mod sctp;
mod tcp;
mod udp;

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use libc::c_int;

use crate::error::{During, Result};
use crate::option::{SocketOption, option};
use crate::syscall::syscall;

pub use flow_label::{lease_flow_label, with_flow_label};
pub use ip::{
    get_dont_fragment, get_tos, get_v6_only, set_bind_address_no_port, set_dont_fragment, set_local_port_range,
    set_tos, set_v6_only,
};
pub use multicast::{join_group, set_multicast_ttl, set_own_groups_only, set_without_routing};
pub use sctp::{sctp_bindx, set_sctp_init_streams, set_sctp_max_seg, set_sctp_no_delay};
pub use tcp::{
    congestion, get_keep_count, get_keep_idle, get_keep_interval, get_mss, get_no_delay, get_user_timeout,
    set_congestion, set_keep_count, set_keep_idle, set_keep_interval, set_mss, set_no_delay, set_quick_ack,
    set_unsent_limit, set_user_timeout, set_window_clamp,
};
pub use udp::{get_udp_segment, set_udp_gro, set_udp_segment};

/// Lets the address be bound while connections of an earlier listener linger (`SO_REUSEADDR`, socket(7)).
///
/// # Errors
/// The operating system's.
pub fn set_reuse_addr(fd: impl AsFd, on: bool) -> Result<()> {
    option!(SOL_SOCKET, SO_REUSEADDR).set_bool(fd, on)
}

/// Lets several sockets of one user share the address; the kernel spreads peers over them (`SO_REUSEPORT`, Linux 3.9).
///
/// # Errors
/// The operating system's.
pub fn set_reuse_port(fd: impl AsFd, on: bool) -> Result<()> {
    option!(SOL_SOCKET, SO_REUSEPORT).set_bool(fd, on)
}

/// Lets [`crate::udp::RecvBatch`] return when the kernel received a datagram (`SO_TIMESTAMPNS`, socket(7), Linux 2.6.22).
/// What is in the queue already has no time and gets that of the read.
///
/// # Errors
/// The operating system's.
pub fn set_receive_stamps(fd: impl AsFd, on: bool) -> Result<()> {
    option!(SOL_SOCKET, SO_TIMESTAMPNS).set_bool(fd, on)
}

/// Requests a send buffer of `bytes` (`SO_SNDBUF`, socket(7)). The kernel doubles the value for its own overhead and
/// caps the request at `net.core.wmem_max`; [`get_send_buffer`] returns what was granted. Ends TCP's own tuning.
///
/// # Errors
/// The operating system's.
pub fn set_send_buffer(fd: impl AsFd, bytes: u32) -> Result<()> {
    SEND_BUFFER.set_u32(fd, bytes)
}

/// Requests a receive buffer of `bytes` (`SO_RCVBUF`, socket(7)), capped at `net.core.rmem_max`; else as
/// [`set_send_buffer`].
///
/// # Errors
/// The operating system's.
pub fn set_receive_buffer(fd: impl AsFd, bytes: u32) -> Result<()> {
    RECEIVE_BUFFER.set_u32(fd, bytes)
}

/// [`set_send_buffer`] beyond `net.core.wmem_max` where we may (`SO_SNDBUFFORCE`, needs `CAP_NET_ADMIN`), within it
/// where not.
///
/// # Errors
/// The operating system's.
pub fn force_send_buffer(fd: impl AsFd, bytes: u32) -> Result<()> {
    option!(SOL_SOCKET, SO_SNDBUFFORCE).set_u32(&fd, bytes).or_else(|_| set_send_buffer(&fd, bytes))
}

/// [`set_receive_buffer`] beyond `net.core.rmem_max` where we may (`SO_RCVBUFFORCE`, needs `CAP_NET_ADMIN`), within it
/// where not.
///
/// # Errors
/// The operating system's.
pub fn force_receive_buffer(fd: impl AsFd, bytes: u32) -> Result<()> {
    option!(SOL_SOCKET, SO_RCVBUFFORCE).set_u32(&fd, bytes).or_else(|_| set_receive_buffer(&fd, bytes))
}

/// Size of the send buffer in bytes as the kernel accounts it: twice the request (`SO_SNDBUF`, socket(7)).
///
/// # Errors
/// The operating system's.
pub fn get_send_buffer(fd: impl AsFd) -> Result<u32> {
    SEND_BUFFER.get_u32(fd)
}

/// Size of the receive buffer in bytes as the kernel accounts it: twice the request (`SO_RCVBUF`, socket(7)).
///
/// # Errors
/// The operating system's.
pub fn get_receive_buffer(fd: impl AsFd) -> Result<u32> {
    RECEIVE_BUFFER.get_u32(fd)
}

const SEND_BUFFER: SocketOption = option!(SOL_SOCKET, SO_SNDBUF);
const RECEIVE_BUFFER: SocketOption = option!(SOL_SOCKET, SO_RCVBUF);

/// Makes closing the socket reset the connection: what is unsent is lost, and neither end keeps a TIME_WAIT
/// (`SO_LINGER` with zero seconds, socket(7)).
///
/// # Errors
/// The operating system's.
pub fn set_reset_on_close(fd: impl AsFd) -> Result<()> {
    socket2::SockRef::from(&fd).set_linger(Some(std::time::Duration::ZERO)).during("setsockopt SO_LINGER", 0)
}

/// Probes an idle connection so that a vanished peer is noticed (`SO_KEEPALIVE`, socket(7)).
///
/// # Errors
/// The operating system's.
pub fn set_keepalive(fd: impl AsFd, on: bool) -> Result<()> {
    option!(SOL_SOCKET, SO_KEEPALIVE).set_bool(fd, on)
}

/// Whether an idle connection is probed (`SO_KEEPALIVE`, socket(7)).
///
/// # Errors
/// The operating system's.
pub fn get_keepalive(fd: impl AsFd) -> Result<bool> {
    option!(SOL_SOCKET, SO_KEEPALIVE).get_bool(fd)
}

/// Caps the socket's send rate in the kernel (`SO_MAX_PACING_RATE`, Linux 3.13, tc-fq(8)).
///
/// `bytes_per_second` counts payload and headers. Effective with the `fq` qdisc or TCP's own pacing (Linux 4.13).
/// `u64::MAX` takes the cap away. Before Linux 5.0 the kernel reads the low 32 bits only: see [`get_max_pacing_rate`].
///
/// # Errors
/// The operating system's.
pub fn set_max_pacing_rate(fd: impl AsFd, bytes_per_second: u64) -> Result<()> {
    PACING_RATE.set_bytes(fd, &bytes_per_second.to_ne_bytes(), bytes_per_second)
}

/// The cap on the send rate in bytes per second; `None` without a cap (`SO_MAX_PACING_RATE`, 64 bits since Linux 5.0).
///
/// # Errors
/// The operating system's.
pub fn get_max_pacing_rate(fd: impl AsFd) -> Result<Option<u64>> {
    let mut value = [0; 8];
    let written = PACING_RATE.get_bytes(fd, &mut value)?;
    // A kernel without the 64-bit form writes an u32, whose maximum means the same.
    let unlimited = if written == 8 { u64::MAX } else { u64::from(u32::MAX) };
    Ok(Some(u64::from_ne_bytes(value)).filter(|rate| *rate != unlimited))
}

const PACING_RATE: SocketOption = option!(SOL_SOCKET, SO_MAX_PACING_RATE);

/// Sends and receives through one network device only (`SO_BINDTODEVICE`, socket(7)). An empty name undoes it.
/// Needs `CAP_NET_RAW` to change an existing binding, nothing for the first one since Linux 5.7.
///
/// # Errors
/// The operating system's; `ENODEV` for a device that does not exist.
pub fn bind_device(fd: impl AsFd, device: &str) -> Result<()> {
    option!(SOL_SOCKET, SO_BINDTODEVICE).set_bytes(fd, device.as_bytes(), device)
}

/// The receive buffer of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiveMemory {
    /// Bytes it holds, with the kernel's overhead for each message.
    pub used_bytes: u32,
    /// Bytes it may hold, counted the same way.
    pub limit_bytes: u32,
    /// Messages that the kernel dropped because it was full. A train of datagrams (`UDP_GRO`) is one message.
    pub dropped_messages: u32,
}

/// How full the receive buffer is (`SO_MEMINFO`, Linux 4.12).
///
/// # Errors
/// The operating system's; `InvalidData` from a kernel that does not count drops.
pub fn receive_memory(fd: impl AsFd) -> Result<ReceiveMemory> {
    const WORD: usize = size_of::<u32>();
    let mut bytes = [0; 9 * WORD];
    let memory = option!(SOL_SOCKET, SO_MEMINFO, 55);
    let len = memory.get_bytes(fd, &mut bytes)?;
    let words = bytes[..len].as_chunks::<WORD>().0;
    // SK_MEMINFO_RMEM_ALLOC, _RCVBUF and, since Linux 4.12, _DROPS (include/uapi/linux/sock_diag.h).
    if let &[used, limit, .., dropped] = words
        && len == bytes.len()
    {
        return Ok(ReceiveMemory {
            used_bytes: u32::from_ne_bytes(used),
            limit_bytes: u32::from_ne_bytes(limit),
            dropped_messages: u32::from_ne_bytes(dropped),
        });
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "the kernel does not count drops")).during(memory.get, "")
}

/// Bytes written to the socket that the peer has not acknowledged (TCP), or that have not left the host (UDP)
/// (`SIOCOUTQ`, tcp(7), udp(7)).
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
