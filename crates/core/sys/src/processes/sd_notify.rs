//! Talking to the service manager that started this process (sd_notify(3)).

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use crate::error::{During, Result};

/// Sends a state such as `READY=1` to the service manager; `false` without a manager.
///
/// # Errors
/// The operating system's, when there is one and it cannot be reached.
pub fn notify(state: &str) -> Result<bool> {
    let Some(name) = env::var_os("NOTIFY_SOCKET") else {
        return Ok(false);
    };
    let send = || -> io::Result<()> {
        let address = address(name.as_encoded_bytes())?;
        let socket = UnixDatagram::unbound()?;
        // A manager that reads nothing must not hold up its service.
        socket.set_nonblocking(true)?;
        socket.send_to_addr(state.as_bytes(), &address)?;
        Ok(())
    };
    send().during("notify", name.to_string_lossy())?;

    Ok(true)
}

/// Period of `WATCHDOG=1` for the service manager (sd_watchdog_enabled(3)): half of the
/// time after which it takes the service for dead. `None` when it does not watch this process.
pub fn watchdog_interval() -> Option<Duration> {
    let number = |name| env::var(name).ok()?.parse::<u64>().ok();
    let is_meant = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
    let interval_us = number("WATCHDOG_USEC").filter(|us| is_meant && *us > 0)?;
    Some(Duration::from_micros(interval_us / 2))
}

/// A name that begins with `@` is one of the abstract namespace (unix(7)).
fn address(name: &[u8]) -> io::Result<SocketAddr> {
    match name {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        path => SocketAddr::from_pathname(OsStr::from_bytes(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_names_are_understood() {
        let path = address(b"/run/notify").expect("a path");
        assert_eq!(
            path.as_pathname(),
            Some(std::path::Path::new("/run/notify"))
        );
        let name = address(b"@notify").expect("a name");
        assert_eq!(name.as_abstract_name(), Some(&b"notify"[..]));
    }
}
