//! Clocks and precise sleeping.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{During, Result};
use crate::syscall::syscall;

/// Nanoseconds of the monotonic clock (`CLOCK_MONOTONIC`, clock_gettime(2)): since an arbitrary start, never back.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable during the call, which cannot fail for this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    seconds
        .saturating_mul(NS_PER_S)
        .saturating_add(u64::try_from(now.tv_nsec).unwrap_or_default())
}

/// Milliseconds since 1970 by the wall clock; 0 on a host that believes to live before it.
#[must_use]
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Nanoseconds since 1970 by the wall clock; 0 on a host that believes to live before it.
#[must_use]
pub fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The CPU time of one thread, readable from every thread of the process while that thread runs
/// (pthread_getcpuclockid(3)).
#[derive(Debug, Clone, Copy)]
pub struct ThreadCpuClock(libc::clockid_t);

impl ThreadCpuClock {
    /// The clock of the calling thread; `None` where the system has none.
    #[must_use]
    pub fn of_this_thread() -> Option<Self> {
        let mut clock: libc::clockid_t = 0;
        // SAFETY: the calling thread exists, and `clock` is writable during the call.
        let error = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
        (error == 0).then_some(Self(clock))
    }

    /// CPU time the thread has used, ns; `None` once it has ended.
    #[must_use]
    pub fn read_ns(self) -> Option<u64> {
        let mut used = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `used` is writable during the call; a clock of a thread that has ended is an error, no more.
        let result = unsafe { libc::clock_gettime(self.0, &raw mut used) };
        let seconds = u64::try_from(used.tv_sec).ok()?;
        (result == 0).then(|| seconds * NS_PER_S + u64::try_from(used.tv_nsec).unwrap_or_default())
    }
}

/// Lets this thread's sleeps end up to `slack_ns` late, so that the kernel may bundle wake-ups (`PR_SET_TIMERSLACK`,
/// prctl(2), Linux 2.6.28). Linux starts threads with 50000; 1 is as exact as it gets, 0 restores the default.
///
/// # Errors
/// The operating system's.
pub fn set_timer_slack_ns(slack_ns: u64) -> Result<()> {
    let slack = libc::c_ulong::try_from(slack_ns).unwrap_or(libc::c_ulong::MAX);
    // SAFETY: no pointers are passed.
    syscall(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack) }).during("prctl PR_SET_TIMERSLACK", slack_ns)?;
    Ok(())
}

/// Sleeps until [`monotonic_ns`] reaches `deadline_ns`, at once when it has passed (clock_nanosleep(2)). Signal handlers
/// do not shorten the sleep.
pub fn sleep_until_ns(deadline_ns: u64) {
    let deadline = libc::timespec {
        tv_sec: libc::c_long::try_from(deadline_ns / NS_PER_S).unwrap_or(libc::c_long::MAX),
        // Always below 1e9, which fits every width of the field.
        tv_nsec: (deadline_ns % NS_PER_S) as _,
    };
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
        assert_eq!(clock.read_ns(), None);
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
    fn wall_clock_counts_milliseconds() {
        // Between 2020 and 2100.
        assert!((1_577_836_800_000..4_102_444_800_000).contains(&unix_ms()));
    }
}
