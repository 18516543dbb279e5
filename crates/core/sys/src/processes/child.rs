//! Processes that belong together: the end of a child with its parent, and pipes between them that
//! never block.

use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::parent_id;

use crate::error::{During, Result};
use crate::syscall::syscall;

/// From now on the kernel ends this process with `SIGKILL` when the thread that started it ends
/// (`PR_SET_PDEATHSIG`, PR_SET_PDEATHSIG(2const)). `false` when the parent has ended before:
/// nothing will be sent, so the caller should end.
///
/// A parent that ended before this call began is not noticed. An inherited pipe to it is at its end
/// then.
///
/// # Errors
/// The operating system's.
pub fn die_with_parent() -> Result<bool> {
    let parent = parent_id();
    let signal: libc::c_ulong = libc::SIGKILL.unsigned_abs().into();
    // SAFETY: no pointers are passed.
    syscall(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) })
        .during("prctl PR_SET_PDEATHSIG", "")?;
    Ok(parent_id() == parent)
}

/// Reads and writes of this open file fail with `WouldBlock` instead of waiting (`O_NONBLOCK`,
/// fcntl(2)). All descriptors of the open file are affected, also those of other processes.
///
/// # Errors
/// The operating system's.
pub fn set_nonblocking(fd: impl AsFd) -> Result<()> {
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: no pointers are passed.
    let flags = syscall(unsafe { libc::fcntl(fd, libc::F_GETFL) }).during("fcntl F_GETFL", fd)?;

    // SAFETY: as above.
    syscall(unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) })
        .during("fcntl F_SETFL", fd)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read, Write};

    use super::*;

    #[test]
    fn pipe_without_data_would_block_and_keeps_what_is_written() {
        let (mut reader, mut writer) = io::pipe().expect("a pipe");
        set_nonblocking(&reader).expect("a flag");
        let mut byte = [0];
        assert_eq!(
            reader.read(&mut byte).map_err(|error| error.kind()),
            Err(io::ErrorKind::WouldBlock)
        );
        writer.write_all(b"x").expect("written");
        assert_eq!(reader.read(&mut byte).ok(), Some(1));
        drop(writer);
        assert_eq!(reader.read(&mut byte).ok(), Some(0), "the end");
    }

    #[test]
    fn process_has_its_parent_after_the_call() {
        // Restored below: the parent of the test program may be a thread that ends before it.
        assert_eq!(die_with_parent().ok(), Some(true));
        // SAFETY: no pointers are passed; back to the state of before.
        let returned = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, 0 as libc::c_ulong) };
        assert_eq!(returned, 0);
    }
}
