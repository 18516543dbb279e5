//! When to look whether a test has the right number of workers, and what was found so far.
//!
//! Two observations decide: the CPUs on which segments arrive, and workers without idle time.
//! Segments of a peer on this machine arrive on the CPU of its thread that sends or acknowledges
//! them, those of another machine on the CPUs that the NIC interrupts.

use std::time::Duration;

use linerate_sys::{clock, cpu};

/// The checks of one test.
pub(crate) struct WorkerChecks {
    next_ns: u64,
    /// Checks so far, fewer after one that led to more workers.
    checks: u32,
    /// When saturated workers were looked for last.
    saturation_ns: u64,
    pub senders: Findings,
    pub receivers: Findings,
    idle_time: IdleTime,
    /// When the idle time was read last, monotonic ns, and what it was.
    idle: Option<(u64, Duration)>,
}

/// Comparison of the workers of one role with the CPUs that segments of their streams arrive on.
#[derive(Default)]
pub(crate) struct Findings {
    /// Checks in a row that found more CPUs than workers, and that found fewer.
    more: u32,
    fewer: u32,
}

/// Idle time so far of the CPUs that workers may use, together; `None` when it is not known.
pub(crate) type IdleTime = fn() -> Option<Duration>;

/// Period of the first checks. A receiver that senders overtake has queues of a few milliseconds by
/// then, which still fit into caches.
const PERIOD_MIN_NS: u64 = 1_000_000;
/// Checks with this period; then it doubles with each check, up to the longest.
const CLOSE_CHECKS: u32 = 32;
const PERIOD_MAX_NS: u64 = 640_000_000;
/// Doublings that are left after a check that led to more workers: 16 ms.
const DOUBLINGS_AFTER_GROWTH: u32 = 4;
/// Threads of the peer change CPUs: two are on the same one for a while, and what a single one sent
/// on two CPUs is found on both. This number of checks in a row counts.
const CHECKS_MIN: u32 = 6;
/// Shortest period over which a worker counts as saturated: about a thousand calls at rates where
/// threads are.
const SATURATION_MIN_NS: u64 = 15_000_000;
/// The kernel counts idle time in ticks of 10 ms.
const IDLE_TICK_NS: u64 = 10_000_000;
/// In a shorter period a tick says little.
const IDLE_PERIOD_MIN_NS: u64 = 4 * IDLE_TICK_NS;
/// A thread more gains nothing where CPUs are idle for less than this part of the time.
const IDLE_SHARE_MIN: u64 = 8;

impl WorkerChecks {
    pub(crate) fn new(now_ns: u64, idle_time: IdleTime) -> Self {
        Self {
            next_ns: now_ns.saturating_add(PERIOD_MIN_NS),
            checks: 0,
            saturation_ns: now_ns,
            senders: Findings::default(),
            receivers: Findings::default(),
            idle_time,
            idle: None,
        }
    }

    /// When the next check is due, monotonic ns.
    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Sets when the next check is due. Returns the time since saturated workers were looked for,
    /// where it is long enough to look again.
    pub(crate) fn end_period(&mut self, now_ns: u64) -> Option<u64> {
        self.checks = self.checks.saturating_add(1);
        let doublings = self
            .checks
            .saturating_sub(CLOSE_CHECKS)
            .min(PERIOD_MAX_NS.ilog2());
        // From now, not from the last due time: a control thread that was late would make up for
        // missed checks at once.
        self.next_ns = now_ns.saturating_add((PERIOD_MIN_NS << doublings).min(PERIOD_MAX_NS));

        let elapsed_ns = now_ns.saturating_sub(self.saturation_ns);
        if elapsed_ns < SATURATION_MIN_NS {
            return None;
        }
        self.saturation_ns = now_ns;
        Some(elapsed_ns)
    }

    /// There are more workers: the next check is soon.
    pub(crate) fn has_grown(&mut self, now_ns: u64) {
        self.checks = self.checks.min(CLOSE_CHECKS + DOUBLINGS_AFTER_GROWTH);
        let soon_ns = now_ns.saturating_add(PERIOD_MIN_NS << DOUBLINGS_AFTER_GROWTH);
        self.next_ns = self.next_ns.min(soon_ns);
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

impl Findings {
    /// Takes what a check found: this many workers, and CPUs, 0 where that is not known.
    pub(crate) fn take(&mut self, workers: usize, cpus: usize) {
        self.more = if cpus > workers {
            self.more.saturating_add(1)
        } else {
            0
        };
        // 0 CPUs means that nothing has arrived yet or that the kernel lacks `SO_INCOMING_CPU` for
        // the socket; neither is a reason to reduce.
        self.fewer = if (1..workers).contains(&cpus) {
            self.fewer.saturating_add(1)
        } else {
            0
        };
    }

    /// The CPUs stay more than the workers.
    pub(crate) fn too_few_workers(&self) -> bool {
        self.more >= CHECKS_MIN
    }

    /// The CPUs stay fewer than the workers.
    pub(crate) fn too_many_workers(&self) -> bool {
        self.fewer >= CHECKS_MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn found(cpus: &[usize], workers: usize) -> Findings {
        let mut findings = Findings::default();
        for count in cpus {
            findings.take(workers, *count);
        }
        findings
    }

    #[test]
    fn workers_are_too_few_or_too_many_where_that_stays_so() {
        let lasting = found(&[1; 6], 2);
        assert!(lasting.too_many_workers() && !lasting.too_few_workers());
        let lasting = found(&[2; 6], 1);
        assert!(lasting.too_few_workers() && !lasting.too_many_workers());

        for cpus in [
            &[1, 1, 1, 1, 1][..],
            &[1, 1, 1, 1, 1, 2, 1],
            &[1, 1, 1, 1, 1, 0],
            &[0; 9],
            &[2; 9],
        ] {
            let passing = found(cpus, 2);
            assert!(
                !passing.too_many_workers() && !passing.too_few_workers(),
                "{cpus:?}"
            );
        }
    }

    /// Times of checks in ms up to `until_ms`, and of those that look for saturated workers.
    fn run(checks: &mut WorkerChecks, until_ms: u64) -> (Vec<u64>, Vec<u64>) {
        let (mut all, mut of_saturation) = (Vec::new(), Vec::new());
        while checks.next_ns() < until_ms * MS {
            let now_ns = checks.next_ns();
            all.push(now_ns / MS);
            if checks.end_period(now_ns).is_some() {
                of_saturation.push(now_ns / MS);
            }
        }
        (all, of_saturation)
    }

    #[test]
    fn checks_are_close_at_first_and_rare_later() {
        let mut checks = WorkerChecks::new(0, || None);
        let (all, of_saturation) = run(&mut checks, 10_000);
        assert_eq!(all.iter().filter(|at_ms| **at_ms <= 32).count(), 32);
        assert!(all.len() < 64, "{all:?}");
        assert_eq!(of_saturation[..3], [15, 30, 47], "{of_saturation:?}");
    }

    #[test]
    fn growth_brings_the_next_checks_forward() {
        let mut checks = WorkerChecks::new(0, || None);
        run(&mut checks, 10_000);
        checks.has_grown(9_900 * MS);
        let (all, _) = run(&mut checks, 10_100);
        assert_eq!(all, [9_916, 9_948, 10_012]);
    }

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
        assert_eq!(WorkerChecks::new(0, || None).idle_cpus(20 * MS), usize::MAX);
    }

    #[test]
    fn idle_time_counts_from_the_first_question_on() {
        let mut checks = WorkerChecks::new(0, || Some(Duration::from_secs(9)));
        assert_eq!(checks.idle_cpus(200 * MS), 0);
        checks.idle_time = || Some(Duration::from_millis(9_200));
        assert_eq!(checks.idle_cpus(400 * MS), 1);
    }
}
