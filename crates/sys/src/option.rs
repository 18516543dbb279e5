//! Typed access to socket options by name: the only callers of `setsockopt(2)` and `getsockopt(2)`.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use libc::{c_int, socklen_t};

use crate::error::{During, Result};
use crate::syscall::syscall;

/// A socket option: its numbers and how errors name it. Made by [`option!`].
#[derive(Clone, Copy)]
pub(crate) struct SocketOption {
    pub(crate) level: c_int,
    pub(crate) name: c_int,
    pub(crate) set: &'static str,
    pub(crate) get: &'static str,
}

/// `option!(IPPROTO_TCP, TCP_NODELAY)`; a third argument gives the number where the C library's headers lack it.
macro_rules! option {
    ($level:ident, $name:ident) => {
        option!($level, $name, libc::$name)
    };
    ($level:ident, $name:ident, $number:expr) => {
        $crate::option::SocketOption {
            level: libc::$level,
            name: $number,
            set: concat!("setsockopt ", stringify!($name)),
            get: concat!("getsockopt ", stringify!($name)),
        }
    };
}
pub(crate) use option;

impl SocketOption {
    /// Sets an integer option.
    pub(crate) fn set_int(self, fd: impl AsFd, value: c_int) -> Result<()> {
        self.set_bytes(fd, &value.to_ne_bytes(), value)
    }

    /// Sets an integer option from an unsigned value; what exceeds an `int` is refused as the kernel would.
    pub(crate) fn set_u32(self, fd: impl AsFd, value: u32) -> Result<()> {
        let int = c_int::try_from(value).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL));
        self.set_int(fd, int.during(self.set, value)?)
    }

    /// Switches an option.
    pub(crate) fn set_bool(self, fd: impl AsFd, on: bool) -> Result<()> {
        self.set_int(fd, c_int::from(on))
    }

    /// Sets an option from its bytes; `shown` is what an error shows as the value.
    pub(crate) fn set_bytes(self, fd: impl AsFd, value: &[u8], shown: impl fmt::Display) -> Result<()> {
        self.try_set(fd, value).during(self.set, shown)
    }

    fn try_set(self, fd: impl AsFd, value: &[u8]) -> io::Result<()> {
        let len = socklen_t::try_from(value.len()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
        let fd = fd.as_fd().as_raw_fd();
        // SAFETY: pointer and length describe `value`, which the kernel only reads during the call.
        syscall(unsafe { libc::setsockopt(fd, self.level, self.name, value.as_ptr().cast(), len) })?;
        Ok(())
    }

    /// Reads an integer option.
    pub(crate) fn get_int(self, fd: impl AsFd) -> Result<c_int> {
        let mut value = [0; size_of::<c_int>()];
        self.get_bytes(fd, &mut value)?;
        Ok(c_int::from_ne_bytes(value))
    }

    /// Reads an integer option that is never negative.
    pub(crate) fn get_u32(self, fd: impl AsFd) -> Result<u32> {
        u32::try_from(self.get_int(fd)?)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the kernel answered a negative value"))
            .during(self.get, "")
    }

    /// Reads a switch.
    pub(crate) fn get_bool(self, fd: impl AsFd) -> Result<bool> {
        Ok(self.get_int(fd)? != 0)
    }

    /// Reads an option's bytes into `value` and returns how many the kernel wrote.
    pub(crate) fn get_bytes(self, fd: impl AsFd, value: &mut [u8]) -> Result<usize> {
        self.try_get(fd, value).during(self.get, "")
    }

    fn try_get(self, fd: impl AsFd, value: &mut [u8]) -> io::Result<usize> {
        let mut len = socklen_t::try_from(value.len()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
        let fd = fd.as_fd().as_raw_fd();
        // SAFETY: pointer and length describe `value`, writable during the call; `len` outlives it too.
        syscall(unsafe { libc::getsockopt(fd, self.level, self.name, value.as_mut_ptr().cast(), &raw mut len) })?;
        Ok(usize::try_from(len).unwrap_or(usize::MAX).min(value.len()))
    }
}
