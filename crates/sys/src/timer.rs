//! A clock that rings: a descriptor that becomes readable at a time (timerfd_create(2)).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

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
        let fd = syscall(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) }).during("timerfd_create", "")?;
        // SAFETY: the descriptor is new and has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Rings once at `at_ns` of [`crate::clock::monotonic_ns`], at once where that has passed; what was set before is
    /// forgotten.
    ///
    /// # Errors
    /// The operating system's.
    pub fn set(&self, at_ns: u64) -> io::Result<()> {
        // A time of zero would switch it off.
        let at_ns = at_ns.max(1);
        let mut setting: libc::itimerspec = libc::itimerspec {
            it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: libc::timespec { tv_sec: 0, tv_nsec: 0 },
        };
        setting.it_value.tv_sec = libc::time_t::try_from(at_ns / 1_000_000_000).unwrap_or(libc::time_t::MAX);
        setting.it_value.tv_nsec = (at_ns % 1_000_000_000) as libc::c_long;
        let before = std::ptr::null_mut();
        // SAFETY: `setting` outlives the call, which only reads it; the place for the setting before may be null.
        syscall(unsafe {
            libc::timerfd_settime(self.0.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &raw const setting, before)
        })?;
        Ok(())
    }

    /// Silences it after it rang.
    ///
    /// # Errors
    /// `WouldBlock` while it has not rung.
    pub fn drain(&self) -> io::Result<()> {
        let mut count = [0_u8; 8];
        // SAFETY: a timerfd writes eight bytes, for which `count` has room.
        syscall_len(unsafe { libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) })?;
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
    fn it_rings_at_its_time_and_once() {
        let timer = TimerFd::new().expect("a descriptor");
        let at_ns = monotonic_ns() + 2_000_000;
        timer.set(at_ns).expect("set");
        assert!(wait_fd(&timer, Interest::READ, Some(Duration::from_secs(20))).expect("waits"));
        assert!(monotonic_ns() >= at_ns);
        timer.drain().expect("it rang");
        assert_eq!(timer.drain().expect_err("silent").kind(), io::ErrorKind::WouldBlock);
        timer.set(0).expect("set");
        assert!(
            wait_fd(&timer, Interest::READ, Some(Duration::from_secs(20))).expect("waits"),
            "the past rings at once"
        );
    }
}
