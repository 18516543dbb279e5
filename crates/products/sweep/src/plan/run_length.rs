//! Length of the runs of a sweep.

use linerate_model::sweep::RunMetrics;

use super::experiment::TOLERANCE;
use crate::spec::SweepSpec;

/// Longest measured part to which runs grow, in seconds.
const TIME_MAX_S: u32 = 30;
/// Runs that must fit into the budget all the same.
const RUNS_MIN: u64 = 20;
/// Lengths below this ratio are not worth a repetition of the run.
const GROWTH_MIN: f64 = 1.2;

/// Measured part of the runs of a sweep. It grows where a path holds much data, until what is on
/// the way at the end of a run is less than the difference that counts.
#[derive(Debug, Clone, Copy)]
pub struct RunLength {
    /// Length of the next run in seconds.
    pub time_s: u32,
    time_max_s: u32,
}

impl RunLength {
    /// As the specification has it, and no longer.
    pub fn fixed(spec: &SweepSpec) -> Self {
        Self {
            time_s: spec.time_s,
            time_max_s: spec.time_s,
        }
    }

    /// As the specification has it, and as long as its budget allows.
    pub fn growing(spec: &SweepSpec) -> Self {
        // Longer runs on a slow path must not leave too few of them for an answer.
        let affordable_s = u32::try_from(spec.budget.as_secs() / RUNS_MIN).unwrap_or(u32::MAX);
        // A run takes its omitted seconds too, and its overhead of half a second is rounded up.
        let beside_s = spec.omit_s.saturating_add(1);
        let time_max_s = affordable_s
            .saturating_sub(beside_s)
            .min(TIME_MAX_S)
            .max(spec.time_s);

        Self {
            time_s: spec.time_s,
            time_max_s,
        }
    }

    /// Takes the metrics of a run. `true` when it was too short and the next ones are longer.
    pub fn grow(&mut self, metrics: &RunMetrics) -> bool {
        // UDP has no round-trip time of the kernel, so its runs keep their length.
        let Some(rtt_us) = metrics.rtt_us else {
            return false;
        };
        // One round trip of data is in flight at the end; it must be less than the difference that
        // counts.
        let needed_s = (rtt_us / 1e6 / TOLERANCE).ceil() as u32;
        let next_s = needed_s.min(self.time_max_s);
        let is_longer = f64::from(next_s) >= GROWTH_MIN * f64::from(self.time_s);
        if is_longer {
            self.time_s = next_s;
        }

        is_longer
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::spec::example;

    #[test]
    fn runs_grow_until_a_round_trip_is_three_percent_of_them() {
        // Given length, budget, round trip; length after.
        let rows = [
            (3, 900, 6.0, 3),
            (3, 900, 90.0, 3),
            (3, 900, 192.0, 7),
            (1, 900, 6.0, 1),
            (1, 900, 71.0, 3),
            (7, 900, 215.0, 7),
            (10, 900, 192.0, 10),
            (3, 900, 5000.0, 30),
            (60, 900, 5000.0, 60),
            (1, 10, 192.0, 1),
            (1, 120, 192.0, 4),
        ];
        for (time_s, budget_s, rtt_ms, expected) in rows {
            let spec = SweepSpec {
                time_s,
                omit_s: 1,
                budget: Duration::from_secs(budget_s),
                ..example(Vec::new())
            };
            let mut length = RunLength::growing(&spec);
            let metrics = RunMetrics {
                rtt_us: Some(rtt_ms * 1000.0),
                ..RunMetrics::default()
            };

            let has_grown = length.grow(&metrics);
            assert_eq!(
                (length.time_s, has_grown),
                (expected, expected > time_s),
                "{time_s} s, {rtt_ms} ms"
            );
            assert!(!length.grow(&metrics), "once is enough");
        }
    }

    #[test]
    fn runs_without_a_round_trip_keep_their_length() {
        let mut length = RunLength::growing(&example(Vec::new()));
        assert!(!length.grow(&RunMetrics::default()));
    }
}
