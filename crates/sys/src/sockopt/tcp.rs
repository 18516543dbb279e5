//! Options of TCP sockets (tcp(7)).

use std::os::fd::AsFd;

use crate::error::Result;
use crate::option::{SocketOption, option};

/// Sends small segments at once instead of waiting for acknowledgements (`TCP_NODELAY`).
///
/// # Errors
/// The operating system's.
pub fn set_no_delay(fd: impl AsFd, on: bool) -> Result<()> {
    NO_DELAY.set_bool(fd, on)
}

/// Whether small segments go out at once (`TCP_NODELAY`).
///
/// # Errors
/// The operating system's.
pub fn get_no_delay(fd: impl AsFd) -> Result<bool> {
    NO_DELAY.get_bool(fd)
}

/// Limits outgoing segments to `bytes` of payload and announces it to the peer (`TCP_MAXSEG`, 88..=32767); to be set
/// before the connection.
///
/// # Errors
/// The operating system's; `EINVAL` out of range.
pub fn set_mss(fd: impl AsFd, bytes: u32) -> Result<()> {
    MSS.set_u32(fd, bytes)
}

/// Payload of a full segment in bytes (`TCP_MAXSEG`): the value in use on a connection, 536 before one stands.
///
/// # Errors
/// The operating system's.
pub fn get_mss(fd: impl AsFd) -> Result<u32> {
    MSS.get_u32(fd)
}

/// Chooses the congestion control algorithm by name (`TCP_CONGESTION`, Linux 2.6.13); without privileges one of
/// `net.ipv4.tcp_allowed_congestion_control`.
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

/// Ends the connection when data stays unacknowledged for `ms` milliseconds; 0 restores the system's default
/// (`TCP_USER_TIMEOUT`, Linux 2.6.37, RFC 5482).
///
/// # Errors
/// The operating system's.
pub fn set_user_timeout(fd: impl AsFd, ms: u32) -> Result<()> {
    USER_TIMEOUT.set_u32(fd, ms)
}

/// The limit on unacknowledged data in milliseconds, 0 for the system's default (`TCP_USER_TIMEOUT`).
///
/// # Errors
/// The operating system's.
pub fn get_user_timeout(fd: impl AsFd) -> Result<u32> {
    USER_TIMEOUT.get_u32(fd)
}

/// Idle time before the first keep-alive probe, in seconds, 1..=32767 (`TCP_KEEPIDLE`).
///
/// # Errors
/// The operating system's; `EINVAL` out of range.
pub fn set_keep_idle(fd: impl AsFd, seconds: u32) -> Result<()> {
    KEEP_IDLE.set_u32(fd, seconds)
}

/// Idle time before the first keep-alive probe, in seconds (`TCP_KEEPIDLE`).
///
/// # Errors
/// The operating system's.
pub fn get_keep_idle(fd: impl AsFd) -> Result<u32> {
    KEEP_IDLE.get_u32(fd)
}

/// Time between two keep-alive probes, in seconds, 1..=32767 (`TCP_KEEPINTVL`).
///
/// # Errors
/// The operating system's; `EINVAL` out of range.
pub fn set_keep_interval(fd: impl AsFd, seconds: u32) -> Result<()> {
    KEEP_INTERVAL.set_u32(fd, seconds)
}

/// Time between two keep-alive probes, in seconds (`TCP_KEEPINTVL`).
///
/// # Errors
/// The operating system's.
pub fn get_keep_interval(fd: impl AsFd) -> Result<u32> {
    KEEP_INTERVAL.get_u32(fd)
}

/// Unanswered keep-alive probes until the connection ends, 1..=127 (`TCP_KEEPCNT`).
///
/// # Errors
/// The operating system's; `EINVAL` out of range.
pub fn set_keep_count(fd: impl AsFd, probes: u32) -> Result<()> {
    KEEP_COUNT.set_u32(fd, probes)
}

/// Unanswered keep-alive probes until the connection ends (`TCP_KEEPCNT`).
///
/// # Errors
/// The operating system's.
pub fn get_keep_count(fd: impl AsFd) -> Result<u32> {
    KEEP_COUNT.get_u32(fd)
}

const NO_DELAY: SocketOption = option!(IPPROTO_TCP, TCP_NODELAY);
const MSS: SocketOption = option!(IPPROTO_TCP, TCP_MAXSEG);
const CONGESTION: SocketOption = option!(IPPROTO_TCP, TCP_CONGESTION);
const USER_TIMEOUT: SocketOption = option!(IPPROTO_TCP, TCP_USER_TIMEOUT);
const KEEP_IDLE: SocketOption = option!(IPPROTO_TCP, TCP_KEEPIDLE);
const KEEP_INTERVAL: SocketOption = option!(IPPROTO_TCP, TCP_KEEPINTVL);
const KEEP_COUNT: SocketOption = option!(IPPROTO_TCP, TCP_KEEPCNT);

/// Acknowledges at once instead of waiting for more data (`TCP_QUICKACK`). The kernel falls back by itself, so ask again
/// before each read that matters.
///
/// # Errors
/// The operating system's.
pub fn set_quick_ack(fd: impl AsFd, on: bool) -> Result<()> {
    option!(IPPROTO_TCP, TCP_QUICKACK).set_bool(fd, on)
}

/// Lets the socket hold at most this many bytes that have not been sent (`TCP_NOTSENT_LOWAT`, Linux 3.12): it is not
/// writable while it holds more.
///
/// # Errors
/// The operating system's.
pub fn set_unsent_limit(fd: impl AsFd, bytes: u32) -> Result<()> {
    option!(IPPROTO_TCP, TCP_NOTSENT_LOWAT).set_u32(fd, bytes)
}

/// Bounds the window this end announces (`TCP_WINDOW_CLAMP`).
///
/// # Errors
/// The operating system's.
pub fn set_window_clamp(fd: impl AsFd, bytes: u32) -> Result<()> {
    option!(IPPROTO_TCP, TCP_WINDOW_CLAMP).set_u32(fd, bytes)
}
