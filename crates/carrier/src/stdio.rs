//! Standard input and output as the control path of an agent.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use linerate_sys::OsError;

use crate::pipe::{LineInput, LineOutput};

/// Lines of the coordinator on standard input.
///
/// # Errors
/// The operating system's.
pub fn input() -> Result<LineInput<File>, OsError> {
    LineInput::new(unbuffered(io::stdin().as_fd())?)
}

/// Lines to the coordinator on standard output.
///
/// # Errors
/// The operating system's.
pub fn output() -> Result<LineOutput<File>, OsError> {
    LineOutput::new(unbuffered(io::stdout().as_fd())?)
}

/// The standard library's own streams keep what was read before it was waited for.
fn unbuffered(fd: BorrowedFd<'_>) -> Result<File, OsError> {
    fd.try_clone_to_owned().map(File::from).map_err(|source| OsError::new("dup", "standard stream", source))
}
