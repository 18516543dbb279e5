//! What an experiment is to find out, and what it may cost.

use std::time::Duration;

use crate::factor::{Factor, Scale};

/// A plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What is varied, one after the other.
    pub factors: Vec<Factor>,
    /// Which values are wanted.
    pub better: Better,
    /// Runs per setting; as many more are made where it is still open which of some settings is best.
    pub repetitions: u32,
    /// Decides the order of the runs, and nothing else.
    pub seed: u64,
    /// How long one run takes, all told.
    pub run_time: Duration,
    /// When to stop at the latest. No run is started that would end later.
    pub budget: Duration,
    /// How sure an answer must be, 0 to 1.
    pub confidence: f64,
    /// Settings this close to the best one are as good, 0 to 1.
    pub tolerance: f64,
}

/// Which of two values is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// The higher one, as of a rate.
    Higher,
    /// The lower one, as of a cost.
    Lower,
}

/// What a plan will probably cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Runs.
    pub runs: u64,
    /// Time of all of them.
    pub time: Duration,
    /// Whether the budget allows all of them.
    pub fits: bool,
}

/// Rounds of looking closer around the best level of a ladder. Each halves the gap, a doubling has at most as many as
/// its number has bits, and fewer matter: three take a gap of 2 to one of 9 %.
pub(crate) const REFINEMENTS: u32 = 4;

impl Plan {
    /// Says beforehand what it will probably cost: the ladders, and two more levels beside the best one per refinement.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        let levels: u64 = self
            .factors
            .iter()
            .map(|factor| {
                let coarse = factor.coarse().len() as u64;
                match factor.scale {
                    Scale::Choices(_) => coarse,
                    // The best level of the ladder is run again beside its two new neighbours.
                    Scale::Amount { .. } => {
                        coarse + (3 * u64::from(REFINEMENTS)).min(factor.count().saturating_sub(coarse))
                    }
                }
            })
            .sum();
        let runs = levels * u64::from(self.repetitions) + 1;
        let time = self.run_time.saturating_mul(u32::try_from(runs).unwrap_or(u32::MAX));
        Estimate {
            runs,
            time,
            fits: time <= self.budget,
        }
    }
}
