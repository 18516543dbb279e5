//! Wakes a worker at its next deadline.

use std::io;

use linerate_sys::timer::TimerFd;

/// Two timers, armed only when none of them expires soon enough.
///
/// On a virtual machine each change of the next timer of a CPU programs an emulated clock, which
/// can cost more than a request. A timeout per wait would be armed and cancelled with every
/// response. When the only timer expires, the kernel falls back to its tick, and back when the next
/// one is armed; with the deadline after the next one armed as well, a timer is always nearer than
/// the tick, and each due time programs the clock once.
#[derive(Debug)]
pub(super) struct PacingTimer {
    timers: [Timer; 2],
}

#[derive(Debug)]
struct Timer {
    fd: TimerFd,
    /// [`NEVER`] when it is not armed.
    expires_ns: u64,
}

const NEVER: u64 = u64::MAX;

impl PacingTimer {
    /// # Errors
    /// The operating system's, for instance `EMFILE`.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            timers: [Timer::new()?, Timer::new()?],
        })
    }

    /// Readable when a timer expires.
    pub(super) fn fds(&self) -> [&TimerFd; 2] {
        self.timers.each_ref().map(|timer| &timer.fd)
    }

    /// Expires at `at_ns` of the monotonic clock or earlier, and then at `then_ns` or earlier where
    /// that is known.
    ///
    /// # Errors
    /// The operating system's.
    pub(super) fn arm(&mut self, at_ns: u64, then_ns: Option<u64>) -> io::Result<()> {
        let [one, two] = &mut self.timers;
        let (mut first, mut second) = if one.expires_ns <= two.expires_ns {
            (one, two)
        } else {
            (two, one)
        };
        // The later timer takes the deadline: the earlier one may expire in time for `then_ns`.
        if first.expires_ns > at_ns {
            (first, second) = (second, first);
            first.set(at_ns)?;
        }

        match then_ns {
            Some(then_ns) if second.expires_ns > then_ns => second.set(then_ns),
            _ => Ok(()),
        }
    }

    /// Timer `index` of [`Self::fds`] has expired.
    pub(super) fn acknowledge(&mut self, index: usize) {
        if let Some(timer) = self.timers.get_mut(index) {
            // Nothing to read if it was armed again meanwhile.
            let _ = timer.fd.drain();
            timer.expires_ns = NEVER;
        }
    }
}

impl Timer {
    fn new() -> io::Result<Self> {
        Ok(Self {
            fd: TimerFd::new().map_err(|error| error.source)?,
            expires_ns: NEVER,
        })
    }

    fn set(&mut self, at_ns: u64) -> io::Result<()> {
        self.fd.set(at_ns)?;
        self.expires_ns = at_ns;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_sys::clock::monotonic_ns;
    use linerate_sys::poll::{Interest, wait_fds};

    use super::*;

    /// Timers that expire within the limit.
    fn expired(timer: &PacingTimer, limit: Duration) -> [bool; 2] {
        let fds = timer
            .fds()
            .map(|fd| (std::os::fd::AsFd::as_fd(fd), Interest::READ));
        wait_fds(fds, Some(limit)).expect("waits")
    }

    #[test]
    fn timer_expires_once_at_the_earliest_deadline() {
        let mut timer = PacingTimer::new().expect("timers");
        let soon_ns = monotonic_ns() + 5_000_000;
        for at_ns in [NEVER - 1, soon_ns, soon_ns + 1_000_000_000] {
            timer.arm(at_ns, None).expect("set");
        }

        let expirations = expired(&timer, Duration::from_secs(20));
        assert!(monotonic_ns() >= soon_ns);
        let index = expirations
            .iter()
            .position(|is_expired| *is_expired)
            .expect("one");
        timer.acknowledge(index);
        assert_eq!(
            expired(&timer, Duration::ZERO),
            [false; 2],
            "it is acknowledged"
        );
        timer.arm(monotonic_ns(), None).expect("set");
        assert_ne!(
            expired(&timer, Duration::from_secs(20)),
            [false; 2],
            "it expires again"
        );
    }

    #[test]
    fn following_deadline_is_not_armed_again() {
        let mut timer = PacingTimer::new().expect("timers");
        let times = |timer: &PacingTimer| timer.timers.each_ref().map(|timer| timer.expires_ns);
        let far_ns = monotonic_ns() + 3_600_000_000_000;
        timer.arm(far_ns, Some(far_ns + 1)).expect("set");

        let [one, two] = times(&timer);
        assert_eq!((one.min(two), one.max(two)), (far_ns, far_ns + 1));
        timer.acknowledge(usize::from(two == far_ns));

        let left = usize::from(one == far_ns);
        timer.arm(far_ns + 1, Some(far_ns + 2)).expect("set");
        assert_eq!(times(&timer)[left], far_ns + 1);
        assert_eq!(times(&timer)[1 - left], far_ns + 2);

        // An earlier deadline replaces the farthest one.
        timer.arm(far_ns, None).expect("set");
        let mut both = times(&timer);
        both.sort_unstable();
        assert_eq!(both, [far_ns, far_ns + 1]);
    }
}
