//! The experiment over the settings of a sweep.

use std::time::Duration;

use crate::plan::experiment::{Better, Plan};
use crate::plan::space::SettingSpace;
use crate::spec::SweepSpec;

/// Confidence an answer needs.
const CONFIDENCE: f64 = 0.95;
/// Settings this close to the best one are as good: a smaller gain justifies no change of a
/// setting.
pub(super) const TOLERANCE: f64 = 0.03;
/// Time of a run beside its data: connecting, parameters, results.
const OVERHEAD: Duration = Duration::from_millis(500);

/// Duration of a run with its overhead.
pub fn run_time(spec: &SweepSpec, time_s: u32) -> Duration {
    Duration::from_secs(u64::from(time_s) + u64::from(spec.omit_s)) + OVERHEAD
}

impl SweepSpec {
    /// The experiment over these settings.
    pub fn plan(&self, space: &SettingSpace<'_>) -> Plan {
        Plan {
            factors: space.factors.clone(),
            better: if self.objective.is_higher_better() {
                Better::Higher
            } else {
                Better::Lower
            },
            repetitions: self.repetitions,
            seed: self.seed,
            run_time: run_time(self, self.time_s),
            budget: self.budget,
            confidence: CONFIDENCE,
            tolerance: TOLERANCE,
        }
    }
}
