//! Typed access to socket options by name: the only callers of `setsockopt(2)` and `getsockopt(2)`.

use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd};
use std::{fmt, io};

use libc::{c_int, socklen_t};

use crate::error::{During, Result};
use crate::syscall::syscall;

/// A socket option with a value of type `T`: its numbers and how errors name it.
#[derive(Clone, Copy)]
pub struct SocketOption<T = ()> {
    pub(crate) level: c_int,
    pub(crate) name: c_int,
    pub(crate) set: &'static str,
    pub(crate) get: &'static str,
    pub(crate) value: PhantomData<T>,
}

/// `option!(IPPROTO_TCP, TCP_NODELAY)`; a third argument gives the number where the C library's
/// headers lack it.
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
            value: std::marker::PhantomData,
        }
    };
}
pub(crate) use option;

impl SocketOption<bool> {
    /// Switches the option.
    ///
    /// # Errors
    /// The operating system's.
    pub fn set(self, fd: impl AsFd, on: bool) -> Result<()> {
        self.set_int(fd, c_int::from(on))
    }

    /// Reads the option.
    ///
    /// # Errors
    /// The operating system's.
    pub fn get(self, fd: impl AsFd) -> Result<bool> {
        Ok(self.get_int(fd)? != 0)
    }
}

impl SocketOption<u32> {
    /// Sets the option; what exceeds an `int` is refused as the kernel would.
    ///
    /// # Errors
    /// The operating system's; `EINVAL` out of range.
    pub fn set(self, fd: impl AsFd, value: u32) -> Result<()> {
        let int = c_int::try_from(value).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL));
        self.set_int(fd, int.during(self.set, value)?)
    }

    /// Reads the option.
    ///
    /// # Errors
    /// The operating system's.
    pub fn get(self, fd: impl AsFd) -> Result<u32> {
        u32::try_from(self.get_int(fd)?)
            .map_err(|_| {
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the kernel answered a negative value",
                )
            })
            .during(self.get, "")
    }
}

impl<T> SocketOption<T> {
    /// Sets an integer option.
    pub(crate) fn set_int(&self, fd: impl AsFd, value: c_int) -> Result<()> {
        self.set_bytes(fd, &value.to_ne_bytes(), value)
    }

    /// Sets an option from its bytes; `shown` is what an error shows as the value.
    pub(crate) fn set_bytes(
        &self,
        fd: impl AsFd,
        value: &[u8],
        shown: impl fmt::Display,
    ) -> Result<()> {
        let fd = fd.as_fd().as_raw_fd();
        let set = || {
            let len = length(value)?;
            // SAFETY: pointer and length describe `value`, which the kernel only reads during the
            // call.
            syscall(unsafe {
                libc::setsockopt(fd, self.level, self.name, value.as_ptr().cast(), len)
            })
        };
        set().map(drop).during(self.set, shown)
    }

    /// Reads an integer option.
    fn get_int(&self, fd: impl AsFd) -> Result<c_int> {
        let mut value = [0; size_of::<c_int>()];
        self.get_bytes(fd, &mut value)?;
        Ok(c_int::from_ne_bytes(value))
    }

    /// Reads an option's bytes into `value` and returns how many the kernel wrote.
    pub(crate) fn get_bytes(&self, fd: impl AsFd, value: &mut [u8]) -> Result<usize> {
        let fd = fd.as_fd().as_raw_fd();
        let mut get = || {
            let mut len = length(value)?;
            // SAFETY: pointer and length describe `value`, writable during the call; `len` outlives
            // it too.
            syscall(unsafe {
                libc::getsockopt(
                    fd,
                    self.level,
                    self.name,
                    value.as_mut_ptr().cast(),
                    &raw mut len,
                )
            })?;
            Ok(usize::try_from(len).unwrap_or(usize::MAX).min(value.len()))
        };
        get().during(self.get, "")
    }
}

fn length(value: &[u8]) -> io::Result<socklen_t> {
    socklen_t::try_from(value.len()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}
