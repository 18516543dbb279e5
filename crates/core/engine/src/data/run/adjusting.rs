//! Changes to the data plane while a test runs: number of threads, and settings of trials.

use super::load_sample::LoadSample;
use super::{TestRun, incoming_cpus};

impl TestRun {
    /// Adjusts how many threads move the data.
    pub(super) fn adjust_workers(&mut self, now_ns: u64) {
        if let Some(pool) = &mut self.pool {
            pool.adjust(now_ns, |role| incoming_cpus::of_role(&self.streams, role));
        }
    }

    /// Ends a slot of a trial, or begins one.
    pub(super) fn advance_trials(&mut self, now_ns: u64) {
        let (Some(trials), Some(pool)) = (&mut self.trials, &mut self.pool) else {
            return;
        };
        if now_ns < trials.next_ns() {
            return;
        }

        let (cpu_ns, waits) = pool.load();
        let strategy = trials.advance(LoadSample {
            at_ns: now_ns,
            bytes: self.sampler.total_bytes(),
            cpu_ns,
            waits,
            disturbed_segments: self.sampler.disturbed_segments(),
            polling_competes: pool.receivers_share_cpus()
                || pool
                    .only_cpu()
                    .is_some_and(|cpu| incoming_cpus::only(&self.streams) == Some(cpu)),
        });
        self.control.set_strategy(strategy);
    }
}
