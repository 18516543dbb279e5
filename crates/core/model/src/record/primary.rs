//! The measure that represents a run in lists.

use super::{RunState, Trial, Way};
use crate::measure::MeasureName;

/// Measures that answer what a run was made for, in the order of their preference: received bits
/// per second of a test, also of one that loads both directions alone, successful responses per
/// second of a load, the delay of a test without a load.
pub const PRIMARY: [MeasureName; 6] = [
    MeasureName::ReceivedBps,
    MeasureName::BothReceivedBps,
    MeasureName::OkPerS,
    MeasureName::SentBps,
    MeasureName::PayloadBytesPerS,
    MeasureName::IdleRttP50Ns,
];
const WAYS: [Way; 3] = [Way::Sum, Way::Forward, Way::Reverse];

/// Finds it among trials that are added one by one.
#[derive(Debug, Clone, Default)]
pub struct PrimaryMeasure {
    /// Values of the complete trials, one list for each of [`PRIMARY`].
    values: [Vec<f64>; PRIMARY.len()],
}

impl PrimaryMeasure {
    /// Adds a trial. Those that are not complete do not count.
    pub fn add(&mut self, trial: &Trial) {
        if trial.state != RunState::Complete || trial.is_warm_up {
            return;
        }

        for (name, values) in PRIMARY.into_iter().zip(&mut self.values) {
            let of = |way| {
                trial
                    .measures
                    .iter()
                    .find(|measure| (measure.name, measure.way) == (name, way))
            };
            values.extend(WAYS.into_iter().find_map(of).map(|measure| measure.value));
        }
    }

    /// The measure and its median. `None` where no trial has one.
    pub fn median(self) -> Option<(MeasureName, f64)> {
        PRIMARY
            .into_iter()
            .zip(self.values)
            .find_map(|(name, mut values)| {
                values.sort_unstable_by(f64::total_cmp);
                let upper = *values.get(values.len() / 2)?;
                // Of an odd number both places are the same.
                Some((name, upper.midpoint(values[(values.len() - 1) / 2])))
            })
    }
}
