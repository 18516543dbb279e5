//! A descriptor that becomes readable at a time (timerfd_create(2)).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::clock;
use crate::error::{During, Result};
use crate::syscall::{syscall, syscall_len};

/// A timer of the monotonic clock with nanoseconds, for event loops whose own timeouts are coarser.
#[derive(Debug)]
pub struct TimerFd(OwnedFd);

impl TimerFd {
    /// A timer that is not set.
    ///
    /// # Errors
    /// The operating system's, for instance `EMFILE`.
    pub fn new() -> Result<Self> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: no pointers are passed.
        let fd = syscall(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) })
            .during("timerfd_create", "")?;

        // SAFETY: the descriptor is new and has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Expires once at `at_ns` of [`crate::clock::monotonic_ns`], at once where that has passed;
    /// replaces the earlier setting.
    ///
    /// # Errors
    /// The operating system's.
    pub fn set(&self, at_ns: u64) -> io::Result<()> {
        // A time of zero would switch it off.
        let setting = libc::itimerspec {
            it_interval: clock::timespec(0),
            it_value: clock::timespec(at_ns.max(1)),
        };
        let (fd, before) = (self.0.as_raw_fd(), std::ptr::null_mut());

        // SAFETY: `setting` outlives the call, which only reads it; the place for the setting
        // before may be null.
        syscall(unsafe {
            libc::timerfd_settime(fd, libc::TFD_TIMER_ABSTIME, &raw const setting, before)
        })?;
        Ok(())
    }

    /// Clears the expiration.
    ///
    /// # Errors
    /// `WouldBlock` before it has expired.
    pub fn drain(&self) -> io::Result<()> {
        let mut count = [0_u8; 8];
        // SAFETY: a timerfd writes eight bytes, for which `count` has room.
        syscall_len(unsafe {
            libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), count.len())
        })?;
        Ok(())
    }
}

impl AsFd for TimerFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::monotonic_ns;
    use crate::poll::{Interest, wait_fd};

    #[test]
    fn timer_expires_at_its_time_and_once() {
        let timer = TimerFd::new().expect("a descriptor");
        let at_ns = monotonic_ns() + 2_000_000;
        timer.set(at_ns).expect("set");
        assert!(wait_fd(&timer, Interest::READ, Some(Duration::from_secs(20))).expect("waits"));
        assert!(monotonic_ns() >= at_ns);
        timer.drain().expect("it expired");
        assert_eq!(
            timer.drain().expect_err("cleared").kind(),
            io::ErrorKind::WouldBlock
        );
        timer.set(0).expect("set");
        assert!(
            wait_fd(&timer, Interest::READ, Some(Duration::from_secs(20))).expect("waits"),
            "a past time expires at once"
        );
    }
}
