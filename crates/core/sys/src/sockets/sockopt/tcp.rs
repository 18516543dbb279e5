//! Options of TCP sockets (tcp(7)).

use std::os::fd::AsFd;

use crate::error::Result;
use crate::option::{SocketOption, option};

/// Sends small segments at once instead of waiting for acknowledgements.
pub const TCP_NODELAY: SocketOption<bool> = option!(IPPROTO_TCP, TCP_NODELAY);

/// Limits outgoing segments to this number of bytes of payload and announces it to the peer,
/// 88..=32767; to be set before the connection. What is read is the value in use on a connection,
/// 536 before one stands.
pub const TCP_MAXSEG: SocketOption<u32> = option!(IPPROTO_TCP, TCP_MAXSEG);

/// Ends the connection when data stays unacknowledged for this number of milliseconds; 0 is the
/// system's default (Linux 2.6.37, RFC 5482).
pub const TCP_USER_TIMEOUT: SocketOption<u32> = option!(IPPROTO_TCP, TCP_USER_TIMEOUT);

/// Idle time before the first keep-alive probe, in seconds, 1..=32767.
pub const TCP_KEEPIDLE: SocketOption<u32> = option!(IPPROTO_TCP, TCP_KEEPIDLE);

/// Time between two keep-alive probes, in seconds, 1..=32767.
pub const TCP_KEEPINTVL: SocketOption<u32> = option!(IPPROTO_TCP, TCP_KEEPINTVL);

/// Unanswered keep-alive probes until the connection ends, 1..=127.
pub const TCP_KEEPCNT: SocketOption<u32> = option!(IPPROTO_TCP, TCP_KEEPCNT);

/// Acknowledges at once instead of waiting for more data. The kernel falls back by itself, so it is
/// set again before each read that matters.
pub const TCP_QUICKACK: SocketOption<bool> = option!(IPPROTO_TCP, TCP_QUICKACK);

/// Lets the socket hold at most this many bytes that have not been sent (Linux 3.12): it is not
/// writable while it holds more.
pub const TCP_NOTSENT_LOWAT: SocketOption<u32> = option!(IPPROTO_TCP, TCP_NOTSENT_LOWAT);

/// Bounds the window this end announces, in bytes.
pub const TCP_WINDOW_CLAMP: SocketOption<u32> = option!(IPPROTO_TCP, TCP_WINDOW_CLAMP);

const CONGESTION: SocketOption = option!(IPPROTO_TCP, TCP_CONGESTION);

/// Chooses the congestion control algorithm by name (`TCP_CONGESTION`, Linux 2.6.13); without
/// privileges one of `net.ipv4.tcp_allowed_congestion_control`.
///
/// # Errors
/// The operating system's; `ENOENT` for a name the kernel does not know.
pub fn set_congestion(fd: impl AsFd, algorithm: &str) -> Result<()> {
    CONGESTION.set_bytes(fd, algorithm.as_bytes(), algorithm)
}

/// Name of the congestion control algorithm in use (`TCP_CONGESTION`).
///
/// # Errors
/// The operating system's.
pub fn congestion(fd: impl AsFd) -> Result<String> {
    let mut name = [0; CONGESTION_NAME_LEN];
    let written = CONGESTION.get_bytes(fd, &mut name)?;
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(&name[..name.len().min(written)]).into_owned())
}

/// `TCP_CA_NAME_MAX` of the kernel.
const CONGESTION_NAME_LEN: usize = 16;
