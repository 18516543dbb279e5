//! The clock of a lane that rings when there is something to do.

use std::io;

use linerate_sys::timer::TimerFd;

/// Two timers, which are set only when none of them rings soon enough.
///
/// On a virtual machine each change of what a processor waits for next programs an emulated clock, which can cost more
/// than a request. A timeout of each wait would be set and taken back with every answer that comes before it. And when the
/// only timer rings, the kernel turns to its tick, and back when the next one is set; with the time after the next one set
/// as well there is always a nearer timer than the tick, and each due time programs the clock once.
#[derive(Debug)]
pub(super) struct Alarm {
    timers: [Timer; 2],
}

#[derive(Debug)]
struct Timer {
    fd: TimerFd,
    /// [`NEVER`] when it is not set.
    rings_ns: u64,
}

const NEVER: u64 = u64::MAX;

impl Alarm {
    /// # Errors
    /// The operating system's, for instance `EMFILE`.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            timers: [Timer::new()?, Timer::new()?],
        })
    }

    /// What becomes readable when it rings.
    pub(super) fn fds(&self) -> [&TimerFd; 2] {
        self.timers.each_ref().map(|timer| &timer.fd)
    }

    /// Rings at `at_ns` of the monotonic clock or sooner, and then at `then_ns` or sooner where that is known.
    ///
    /// # Errors
    /// The operating system's.
    pub(super) fn ring_by(&mut self, at_ns: u64, then_ns: Option<u64>) -> io::Result<()> {
        let [one, two] = &mut self.timers;
        let (mut first, mut second) = if one.rings_ns <= two.rings_ns {
            (one, two)
        } else {
            (two, one)
        };
        if first.rings_ns > at_ns {
            (first, second) = (second, first);
            first.set(at_ns)?;
        }
        match then_ns {
            Some(then_ns) if second.rings_ns > then_ns => second.set(then_ns),
            _ => Ok(()),
        }
    }

    /// The timer of this place among [`Self::fds`] rang.
    pub(super) fn silence(&mut self, place: usize) {
        if let Some(timer) = self.timers.get_mut(place) {
            // One that was set anew meanwhile has nothing to silence.
            let _ = timer.fd.drain();
            timer.rings_ns = NEVER;
        }
    }
}

impl Timer {
    fn new() -> io::Result<Self> {
        Ok(Self {
            fd: TimerFd::new().map_err(|error| error.source)?,
            rings_ns: NEVER,
        })
    }

    fn set(&mut self, at_ns: u64) -> io::Result<()> {
        self.fd.set(at_ns)?;
        self.rings_ns = at_ns;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_sys::clock::monotonic_ns;
    use linerate_sys::poll::{Interest, wait_fds};

    use super::*;

    /// The places of the timers that ring within the limit.
    fn rung(alarm: &Alarm, limit: Duration) -> [bool; 2] {
        let fds = alarm.fds().map(|fd| (std::os::fd::AsFd::as_fd(fd), Interest::READ));
        wait_fds(fds, Some(limit)).expect("waits")
    }

    #[test]
    fn it_rings_at_the_earliest_of_the_times_and_once() {
        let mut alarm = Alarm::new().expect("timers");
        let soon_ns = monotonic_ns() + 5_000_000;
        for at_ns in [NEVER - 1, soon_ns, soon_ns + 1_000_000_000] {
            alarm.ring_by(at_ns, None).expect("set");
        }
        let ringing = rung(&alarm, Duration::from_secs(20));
        assert!(monotonic_ns() >= soon_ns);
        let place = ringing.iter().position(|rings| *rings).expect("it rang");
        alarm.silence(place);
        assert_eq!(rung(&alarm, Duration::ZERO), [false; 2], "it was silenced");
        alarm.ring_by(monotonic_ns(), None).expect("set");
        assert_ne!(rung(&alarm, Duration::from_secs(20)), [false; 2], "and rings again");
    }

    #[test]
    fn what_was_the_time_after_the_next_one_is_not_set_again() {
        let mut alarm = Alarm::new().expect("timers");
        let times = |alarm: &Alarm| alarm.timers.each_ref().map(|timer| timer.rings_ns);
        let far_ns = monotonic_ns() + 3_600_000_000_000;
        alarm.ring_by(far_ns, Some(far_ns + 1)).expect("set");
        let [one, two] = times(&alarm);
        assert_eq!((one.min(two), one.max(two)), (far_ns, far_ns + 1));
        alarm.silence(usize::from(two == far_ns));
        let left = usize::from(one == far_ns);
        alarm.ring_by(far_ns + 1, Some(far_ns + 2)).expect("set");
        assert_eq!(times(&alarm)[left], far_ns + 1);
        assert_eq!(times(&alarm)[1 - left], far_ns + 2);
        // Something comes up that is sooner than both: what is furthest away makes room.
        alarm.ring_by(far_ns, None).expect("set");
        let mut both = times(&alarm);
        both.sort_unstable();
        assert_eq!(both, [far_ns, far_ns + 1]);
    }
}
