//! Sockets that are not ready: results of calls on them, and waits that an interrupt ends.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use linerate_model::spec::AddressFamily;
use linerate_sys::poll::{self, Interest};
use linerate_sys::socket::{self, Connect, Family};
use linerate_sys::{OsError, clock, errno};

use crate::interrupts::Interrupts;

/// The result of a call on a socket; `None` while that is not ready.
pub(crate) fn if_ready<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Time until a moment of the monotonic clock.
pub(crate) fn time_until(at_ns: u64) -> Duration {
    Duration::from_nanos(at_ns.saturating_sub(clock::monotonic_ns()))
}

/// Why a wait ended without the socket being ready.
pub(crate) enum WaitError {
    Os(OsError),
    Interrupted(String),
}

impl WaitError {
    /// The peer's port is closed.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self, Self::Os(e) if e.errno() == Some(errno::ECONNREFUSED))
    }
}

/// The family that a user named.
pub(crate) fn family(wanted: AddressFamily) -> Family {
    match wanted {
        AddressFamily::V4 => Family::V4,
        AddressFamily::V6 => Family::V6,
    }
}

/// The first address of a host; `None` where it has none.
pub(crate) fn first_address(host: &str, port: u16, family: Option<Family>) -> Option<SocketAddr> {
    socket::resolve(host, port, family).ok()?.into_iter().next()
}

/// Connects within the time limit, or until the user interrupts.
pub(crate) fn connect(
    fd: impl AsFd,
    remote: &SocketAddr,
    timeout: Option<Duration>,
    interrupts: &dyn Interrupts,
) -> Result<(), WaitError> {
    match socket::connect(&fd, remote).map_err(WaitError::Os)? {
        Connect::Done => Ok(()),
        Connect::InProgress => {
            wait(&fd, Interest::WRITE, timeout, interrupts)?;
            socket::take_error(&fd).map_err(WaitError::Os)
        }
    }
}

/// Lets time pass.
///
/// # Errors
/// The interrupt that ended the pause.
pub(crate) fn pause(time: Duration, interrupts: &dyn Interrupts) -> Result<(), String> {
    let end = Instant::now() + time;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }

        let ready = poll::wait_fd(interrupts.fd(), Interest::READ, Some(left));
        if let (Ok(true), Some(signal_text)) = (ready, interrupts.take()) {
            return Err(signal_text);
        }
    }
}

/// Waits for one socket, at most for `timeout`.
pub(crate) fn wait(
    fd: impl AsFd,
    interest: Interest,
    timeout: Option<Duration>,
    interrupts: &dyn Interrupts,
) -> Result<(), WaitError> {
    let deadline = timeout.map(|t| Instant::now() + t);
    loop {
        let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
        let [is_ready, is_interrupted] = poll::wait_fds(
            [(fd.as_fd(), interest), (interrupts.fd(), Interest::READ)],
            left,
        )
        .map_err(|source| WaitError::Os(OsError::new("wait", "", source)))?;
        if is_interrupted && let Some(signal_text) = interrupts.take() {
            return Err(WaitError::Interrupted(signal_text));
        }
        if is_ready {
            return Ok(());
        }

        if left.is_some_and(|l| l.is_zero()) {
            let source = io::Error::from_raw_os_error(errno::ETIMEDOUT);
            return Err(WaitError::Os(OsError::new("wait", "", source)));
        }
    }
}
