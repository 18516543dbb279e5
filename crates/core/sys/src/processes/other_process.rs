//! Processes that this one did not start.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use libc::c_int;

use crate::error::{During, Result};
use crate::poll::{Interest, wait_fd};
use crate::syscall::syscall;

/// A process by a descriptor (pidfd_open(2), Linux 5.3). What is checked of a process after it was
/// opened is true of the one that a signal reaches, also when its number is used again.
#[derive(Debug)]
pub struct OtherProcess {
    pidfd: OwnedFd,
    pid: u32,
}

impl OtherProcess {
    /// Opens the process with this number.
    ///
    /// # Errors
    /// The operating system's: `ESRCH` where there is none, `ENOSYS` before Linux 5.3.
    pub fn open(pid: u32) -> Result<Self> {
        // SAFETY: the call takes numbers only.
        let returned = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.cast_signed(), 0) };
        let fd = syscall(c_int::try_from(returned).unwrap_or(-1)).during("pidfd_open", pid)?;

        // SAFETY: the descriptor is new and belongs to nothing else.
        let pidfd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { pidfd, pid })
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Asks it to end (`SIGTERM`).
    ///
    /// # Errors
    /// The operating system's: `ESRCH` when it has ended, `EPERM` when it is of another user.
    pub fn terminate(&self) -> Result<()> {
        self.send(libc::SIGTERM)
    }

    /// Asks every process of the group that it leads to end (`SIGTERM`), or it alone where it leads
    /// none.
    ///
    /// # Errors
    /// As [`Self::terminate`].
    pub fn terminate_group(&self) -> Result<()> {
        self.send_to_group(libc::SIGTERM)
    }

    /// Ends every process of the group that it leads (`SIGKILL`), or it alone where it leads none.
    ///
    /// # Errors
    /// As [`Self::terminate`].
    pub fn kill_group(&self) -> Result<()> {
        self.send_to_group(libc::SIGKILL)
    }

    /// True if it ends within this time.
    ///
    /// # Errors
    /// The operating system's.
    pub fn ends_within(&self, time: Duration) -> io::Result<bool> {
        wait_fd(self, Interest::READ, Some(time))
    }

    fn send_to_group(&self, number: c_int) -> Result<()> {
        let pid = self.pid.cast_signed();
        // SAFETY: the call takes a number only.
        if unsafe { libc::getpgid(pid) } != pid {
            return self.send(number);
        }

        // SAFETY: the call takes numbers only.
        syscall(unsafe { libc::kill(-pid, number) })
            .map(drop)
            .during("kill", format_args!("process group {pid}"))
    }

    fn send(&self, number: c_int) -> Result<()> {
        let fd = self.pidfd.as_raw_fd();
        // SAFETY: without details of the signal no pointer is followed.
        let sent = unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                fd,
                number,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            )
        };
        syscall(c_int::try_from(sent).unwrap_or(-1))
            .map(drop)
            .during("pidfd_send_signal", self.pid)
    }
}

impl AsFd for OtherProcess {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Child, Command};

    use super::*;

    const LONG: Duration = Duration::from_secs(10);

    fn sleeper(leads_group: bool) -> Child {
        let mut command = Command::new("sleep");
        command.arg("60");

        if leads_group {
            command.process_group(0);
        }
        command.spawn().expect("sleep")
    }

    #[test]
    fn process_ends_by_the_signal_and_is_then_no_more() {
        for leads_group in [false, true] {
            let mut child = sleeper(leads_group);
            let process = OtherProcess::open(child.id()).expect("open");
            assert!(!process.ends_within(Duration::ZERO).expect("wait"));
            if leads_group {
                process.kill_group()
            } else {
                process.terminate()
            }
            .expect("sent");
            assert!(process.ends_within(LONG).expect("wait"));

            let signal = child.wait().expect("ended").signal();
            assert_eq!(
                signal,
                Some(if leads_group {
                    libc::SIGKILL
                } else {
                    libc::SIGTERM
                })
            );
            assert!(
                process
                    .terminate()
                    .is_err_and(|error| error.source.raw_os_error() == Some(libc::ESRCH))
            );
        }
    }

    #[test]
    fn process_that_leads_no_group_alone_gets_the_signal() {
        let mut child = sleeper(false);
        let process = OtherProcess::open(child.id()).expect("open");
        // A signal to the group would end this test.
        process.terminate_group().expect("sent");
        assert_eq!(child.wait().expect("ended").signal(), Some(libc::SIGTERM));
    }
}
