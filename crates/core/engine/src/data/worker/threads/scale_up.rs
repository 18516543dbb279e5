//! When saturated workers are relieved, and how many more there may be.

use std::time::Duration;

use linerate_sys::{clock, cpu};

/// Decides when to look for saturated workers.
pub(crate) struct ScaleUp {
    checked_ns: u64,
    period_ns: u64,
    idle_time: IdleTime,
    /// When the idle time was read last, monotonic ns, and what it was.
    idle: Option<(u64, Duration)>,
}

/// Idle time so far of the CPUs that workers may use, together; `None` when it is not known.
pub(crate) type IdleTime = fn() -> Option<Duration>;

/// Period of checks at first, and after a check that led to more workers. It holds about a thousand
/// calls at rates where threads are saturated.
const CHECK_MIN_NS: u64 = 20_000_000;
/// It doubles up to this with each check that did not.
const CHECK_MAX_NS: u64 = 640_000_000;
/// The kernel counts idle time in ticks of 10 ms.
const IDLE_TICK_NS: u64 = 10_000_000;
/// In a shorter period a tick says little.
const IDLE_PERIOD_MIN_NS: u64 = 4 * IDLE_TICK_NS;
/// A thread more gains nothing where CPUs are idle for less than this part of the time.
const IDLE_SHARE_MIN: u64 = 8;

impl ScaleUp {
    pub(crate) fn new(now_ns: u64, idle_time: IdleTime) -> Self {
        Self {
            checked_ns: now_ns,
            period_ns: CHECK_MIN_NS,
            idle_time,
            idle: None,
        }
    }

    /// When the next check is due, monotonic ns.
    pub(crate) fn next_ns(&self) -> u64 {
        self.checked_ns.saturating_add(self.period_ns)
    }

    /// Time since the last check, ns.
    pub(crate) fn end_period(&mut self, now_ns: u64) -> u64 {
        now_ns
            .saturating_sub(std::mem::replace(&mut self.checked_ns, now_ns))
            .max(1)
    }

    /// Number of CPUs that had time for one more thread since the last call; none at the first one,
    /// when a peer on this machine may not be at work yet. To ask costs milliseconds on a machine
    /// with hundreds of CPUs.
    pub(crate) fn idle_cpus(&mut self, now_ns: u64) -> usize {
        let Some(idle) = (self.idle_time)() else {
            return usize::MAX;
        };
        let before = self.idle.replace((now_ns, idle));
        before.map_or(0, |(since_ns, before)| {
            idle_cpus(
                clock::as_ns(idle.saturating_sub(before)),
                now_ns.saturating_sub(since_ns),
            )
        })
    }

    /// Sets when the next check is due.
    pub(crate) fn begin_period(&mut self, has_grown: bool) {
        self.period_ns = if has_grown {
            CHECK_MIN_NS
        } else {
            (2 * self.period_ns).min(CHECK_MAX_NS)
        };
    }
}

fn idle_cpus(idle_ns: u64, elapsed_ns: u64) -> usize {
    if elapsed_ns < IDLE_PERIOD_MIN_NS || idle_ns <= elapsed_ns / IDLE_SHARE_MIN + IDLE_TICK_NS {
        return 0;
    }
    usize::try_from(idle_ns.div_ceil(elapsed_ns)).unwrap_or(usize::MAX)
}

/// Idle time as the kernel reports it.
pub(crate) fn idle_time() -> Option<Duration> {
    cpu::idle_time().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_cpu_is_idle_from_an_eighth_of_the_time_and_a_tick_on() {
        for (idle_ms, elapsed_ms, cpus) in [
            (0, 40, 0),
            (10, 40, 0),
            (20, 40, 1),
            (40, 20, 0),
            (30, 160, 0),
            (40, 160, 1),
            (330, 320, 2),
            (2_550, 40, 64),
        ] {
            assert_eq!(
                idle_cpus(idle_ms * MS, elapsed_ms * MS),
                cpus,
                "{idle_ms} of {elapsed_ms} ms"
            );
        }
    }

    #[test]
    fn unknown_idle_time_forbids_nothing() {
        assert_eq!(ScaleUp::new(0, || None).idle_cpus(20 * MS), usize::MAX);
    }

    #[test]
    fn idle_time_counts_from_the_first_question_on() {
        let mut scale_up = ScaleUp::new(0, || Some(Duration::from_secs(9)));
        assert_eq!(scale_up.idle_cpus(200 * MS), 0);
        scale_up.idle_time = || Some(Duration::from_millis(9_200));
        assert_eq!(scale_up.idle_cpus(400 * MS), 1);
    }
}
