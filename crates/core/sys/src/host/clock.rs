//! Clocks and precise sleeping.

mod identity;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::error::{During, Result};
use crate::syscall::syscall;

pub use identity::{boot_id, realtime_error_max_ns, realtime_offset_ns};

/// Nanoseconds of the monotonic clock (`CLOCK_MONOTONIC`, clock_gettime(2)): since an arbitrary
/// start, never back.
pub fn monotonic_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC).unwrap_or_default()
}

/// Time of a clock (clock_gettime(2)); `None` where there is no such clock.
pub(crate) fn read_ns(clock: libc::clockid_t) -> Option<u64> {
    let mut now = timespec(0);
    // SAFETY: `now` is writable during the call; an unknown clock is an error, no more.
    let result = unsafe { libc::clock_gettime(clock, &raw mut now) };
    (result == 0).then(|| ns(now))
}

pub(crate) fn ns(time: libc::timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    seconds
        .saturating_mul(NS_PER_S)
        .saturating_add(u64::try_from(time.tv_nsec).unwrap_or_default())
}

pub(crate) fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        // 584 years at most, and below 1e9 ns.
        tv_sec: (ns / NS_PER_S) as _,
        tv_nsec: (ns % NS_PER_S) as _,
    }
}

/// A duration in nanoseconds, `u64::MAX` for one of 584 years or more.
pub fn as_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Milliseconds since 1970 by the wall clock; 0 where it shows an earlier time.
pub fn unix_ms() -> u64 {
    unix_ns() / 1_000_000
}

/// Nanoseconds since 1970 by the wall clock; 0 where it shows an earlier time.
pub fn unix_ns() -> u64 {
    as_ns(
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
    )
}

/// The CPU time of one thread, readable from every thread of the process while that thread runs
/// (pthread_getcpuclockid(3)).
#[derive(Debug, Clone, Copy)]
pub struct ThreadCpuClock(libc::clockid_t);

impl ThreadCpuClock {
    /// The clock of the calling thread; `None` where the system has none.
    pub fn of_this_thread() -> Option<Self> {
        let mut clock: libc::clockid_t = 0;
        // SAFETY: the calling thread exists, and `clock` is writable during the call.
        let error = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
        (error == 0).then_some(Self(clock))
    }

    /// CPU time the thread has used, ns; `None` once it has ended.
    pub fn read_ns(self) -> Option<u64> {
        read_ns(self.0)
    }
}

/// Offset of the wall clock (`CLOCK_REALTIME`) from the monotonic one. Both run at the same
/// speed, slewed together, so it only changes when the wall clock is set.
#[derive(Debug, Clone, Copy)]
pub struct RealtimeOffset {
    offset_ns: i64,
    /// Largest error of `offset_ns`.
    error_ns: u64,
}

impl RealtimeOffset {
    /// Reads both clocks, as closely together as this thread is let.
    pub fn read() -> Self {
        let readings = std::iter::repeat_with(Self::reading).take(READINGS);
        let closest = readings.min_by_key(|reading| reading.error_ns);
        closest.unwrap_or_else(Self::reading)
    }

    /// Follows a wall clock that was set. An offset that a new reading does not contradict stays as
    /// it is, so that times converted before and after have exact differences.
    pub fn refresh(&mut self) {
        let now = Self::reading();
        if now.offset_ns.abs_diff(self.offset_ns) > now.error_ns.saturating_add(self.error_ns) {
            *self = now;
        }
    }

    /// The monotonic time of a time since 1970; 0 for times before the monotonic clock began.
    pub fn monotonic_ns(self, unix_ns: u64) -> u64 {
        unix_ns.saturating_add_signed(self.offset_ns.saturating_neg())
    }

    /// The time since 1970 of a monotonic time.
    pub fn unix_ns(self, monotonic_ns: u64) -> u64 {
        monotonic_ns.saturating_add_signed(self.offset_ns)
    }

    /// The wall clock between two readings of the monotonic one, which bound the error.
    fn reading() -> Self {
        let (before_ns, unix_ns, after_ns) = (monotonic_ns(), unix_ns(), monotonic_ns());
        let half_ns = after_ns.saturating_sub(before_ns) / 2;
        let middle_ns = before_ns.saturating_add(half_ns);

        // Both clocks stay below 2^63 ns until 2262.
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        Self {
            offset_ns: signed(unix_ns).saturating_sub(signed(middle_ns)),
            error_ns: half_ns.saturating_add(1),
        }
    }
}

/// Readings of which one is rarely disturbed by other threads.
const READINGS: usize = 5;

/// Lets this thread's sleeps end up to `slack_ns` late, so that the kernel may bundle wake-ups
/// (`PR_SET_TIMERSLACK`, prctl(2), Linux 2.6.28). Linux starts threads with 50000; 1 is as exact as
/// it gets, 0 restores the default.
///
/// # Errors
/// The operating system's.
pub fn set_timer_slack_ns(slack_ns: u64) -> Result<()> {
    let slack = libc::c_ulong::try_from(slack_ns).unwrap_or(libc::c_ulong::MAX);
    // SAFETY: no pointers are passed.
    syscall(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack) })
        .during("prctl PR_SET_TIMERSLACK", slack_ns)?;
    Ok(())
}

/// Sleeps until [`monotonic_ns`] reaches `deadline_ns`, at once when it has passed
/// (clock_nanosleep(2)). Signal handlers do not shorten the sleep.
pub fn sleep_until_ns(deadline_ns: u64) {
    let deadline = timespec(deadline_ns);
    // SAFETY: the deadline outlives the call; with an absolute one the remainder may be null.
    while unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const deadline,
            std::ptr::null_mut(),
        )
    } == libc::EINTR
    {}
}

const NS_PER_S: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_never_ends_before_its_deadline() {
        let deadline = monotonic_ns() + 3_000_000;
        sleep_until_ns(deadline);
        assert!(monotonic_ns() >= deadline);
    }

    #[test]
    fn a_deadline_in_the_past_does_not_sleep() {
        let before = monotonic_ns();
        sleep_until_ns(0);
        sleep_until_ns(before);
        assert!(monotonic_ns() - before < NS_PER_S);
    }

    #[test]
    fn cpu_time_of_a_thread_is_read_from_another_until_it_ends() {
        let (send, receive) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let clock = ThreadCpuClock::of_this_thread().expect("Linux has it");
            while clock.read_ns().expect("this thread runs") < 1_000_000 {}
            send.send(clock).expect("the test waits");
            std::thread::park();
        });
        let clock = receive.recv().expect("the thread runs");
        assert!(clock.read_ns().expect("it is parked") >= 1_000_000);
        thread.thread().unpark();
        thread.join().expect("it ended well");

        // The kernel wakes the joining thread before it has reaped the one that ended.
        while clock.read_ns().is_some() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn timer_slack_is_set_and_restored() {
        // SAFETY: no pointers are passed.
        let ask = || unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
        set_timer_slack_ns(1).expect("every kernel has timer slack");
        assert_eq!(ask(), 1);
        assert_eq!(
            std::thread::spawn(ask).join().expect("thread"),
            1,
            "a thread inherits its creator's slack"
        );
        set_timer_slack_ns(0).expect("back to the default");
        assert!(ask() > 1);
    }

    #[test]
    fn an_offset_converts_both_ways_and_stays_while_the_clocks_do() {
        let mut offset = RealtimeOffset::read();
        let (before, converted, after) = (
            monotonic_ns(),
            offset.monotonic_ns(unix_ns()),
            monotonic_ns(),
        );

        let error = offset.error_ns;
        assert!((before - error..=after + error).contains(&converted));
        assert_eq!(offset.unix_ns(offset.monotonic_ns(1 << 61)), 1 << 61);

        let first = offset.offset_ns;
        (0..1000).for_each(|_| offset.refresh());
        assert_eq!(offset.offset_ns, first, "the clock was not set");
    }

    #[test]
    fn a_clock_that_was_set_is_followed() {
        let mut offset = RealtimeOffset::read();
        let true_offset_ns = offset.offset_ns;
        offset.offset_ns += 1_000_000_000;
        offset.refresh();
        assert!(offset.offset_ns.abs_diff(true_offset_ns) < 900_000_000);
    }

    #[test]
    fn wall_clock_counts_milliseconds() {
        // Between 2020 and 2100.
        assert!((1_577_836_800_000..4_102_444_800_000).contains(&unix_ms()));
    }
}
