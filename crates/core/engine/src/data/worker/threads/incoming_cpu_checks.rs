//! When the number of workers follows the number of CPUs that segments arrive on.
//!
//! Segments of a peer on this machine arrive on the CPU of its thread that sends or acknowledges
//! them, those of another machine on the CPUs that the NIC interrupts.

/// When to look where segments arrive, and what was found so far.
pub(crate) struct IncomingCpuChecks {
    next_ns: u64,
    checks: u32,
    pub(crate) senders: Findings,
    pub(crate) receivers: Findings,
}

/// Comparison of the workers of one role with the CPUs that segments of their streams arrive on.
#[derive(Default)]
pub(crate) struct Findings {
    /// Checks in a row that found more CPUs than workers, and that found fewer.
    more: u32,
    fewer: u32,
}

/// Period of the first checks. A receiver that senders overtake has queues of a few milliseconds by
/// then, which still fit into caches.
const PERIOD_MIN_NS: u64 = 1_000_000;
/// Checks with this period; then it doubles with each check, up to the longest.
const CLOSE_CHECKS: u32 = 32;
const PERIOD_MAX_NS: u64 = 640_000_000;
/// Threads of the peer change CPUs: two are on the same one for a while, and what a single one sent
/// on two CPUs is found on both. This number of checks in a row counts.
const CHECKS_MIN: u32 = 6;

impl IncomingCpuChecks {
    pub(crate) fn new(now_ns: u64) -> Self {
        let next_ns = now_ns.saturating_add(PERIOD_MIN_NS);
        Self {
            next_ns,
            checks: 0,
            senders: Findings::default(),
            receivers: Findings::default(),
        }
    }

    /// When the next check is due, monotonic ns.
    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Sets when the next check is due.
    pub(crate) fn end_period(&mut self, now_ns: u64) {
        self.checks = self.checks.saturating_add(1);
        let doublings = self
            .checks
            .saturating_sub(CLOSE_CHECKS)
            .min(PERIOD_MAX_NS.ilog2());
        // From now, not from the last due time: a control thread that was late would make up for
        // missed checks at once.
        self.next_ns = now_ns.saturating_add((PERIOD_MIN_NS << doublings).min(PERIOD_MAX_NS));
    }
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

    #[test]
    fn checks_are_close_at_first_and_rare_later() {
        let mut checks = IncomingCpuChecks::new(0);
        let mut times_ns = Vec::new();

        while checks.next_ns() < 10_000_000_000 {
            times_ns.push(checks.next_ns());
            checks.end_period(checks.next_ns());
        }

        let early = times_ns
            .iter()
            .filter(|at_ns| **at_ns <= 32_000_000)
            .count();
        assert_eq!(early, 32);
        assert!(times_ns.len() < 64, "{times_ns:?}");
    }
}
