//! What crates without sockets need of a system other than Linux. Nothing here is an implementation
//! for one: it lets those crates be compiled, and says what is missing.

use std::fs::File;
use std::io;

use crate::caps::Capabilities;

/// The error of what only Linux can do.
fn not_here() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "not on this system")
}

pub(crate) fn magic(_file: File) -> io::Result<i64> {
    Err(not_here())
}

/// What sockets of Linux would tell: nothing here.
pub(crate) fn capabilities() -> Capabilities {
    Capabilities::default()
}

/// Users.
pub mod privileges {
    pub(crate) fn effective_user() -> u32 {
        // SAFETY: no pointers are passed, and the call cannot fail (POSIX).
        unsafe { libc::geteuid() }
    }
}

/// The process and its surroundings.
pub mod process {
    use std::io::IsTerminal;
    use std::os::fd::AsFd;

    use crate::error::{During, Result};
    pub use crate::uname::{Uname, uname};

    /// True if the descriptor is a terminal.
    pub fn isatty(fd: impl AsFd) -> bool {
        fd.as_fd().is_terminal()
    }

    /// The width is not known.
    pub fn terminal_columns(_fd: impl AsFd) -> Option<usize> {
        None
    }

    /// Reads no password: the terminal would show it.
    ///
    /// # Errors
    /// Always.
    pub fn read_password(_prompt: &str) -> Result<String> {
        Err(super::not_here()).during("read password", "")
    }
}
