//! Question of an experiment, and its budget.

use std::time::Duration;

use linerate_model::stats;
use linerate_model::sweep::Objective;

use crate::plan::factor::{Factor, SYSTEM_CHOICE, Scale};
use crate::plan::space::SettingSpace;
use crate::spec::SweepSpec;

/// A plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Factors that are varied, one after the other.
    pub factors: Vec<Factor>,
    /// Which values are wanted.
    pub objective: Objective,
    /// Runs per setting; more are made where it is open which setting is best, and to confirm it.
    pub repetitions: u32,
    /// Decides the order of the runs, and nothing else.
    pub seed: u64,
    /// Duration of one run with its overhead.
    pub run_time: Duration,
    /// When to stop at the latest. No run is started that would end later.
    pub budget: Duration,
    /// Confidence that an answer needs, 0 to 1.
    pub confidence: f64,
    /// Settings this close to the best one are as good, 0 to 1.
    pub tolerance: f64,
}

/// Estimated cost of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Runs.
    pub runs: u64,
    /// Time of all of them.
    pub time: Duration,
    /// True if the budget allows all of them.
    pub fits: bool,
    /// Runs where the best levels of all factors change with those of others; as many as `runs` of
    /// one factor alone.
    pub runs_if_dependent: u64,
    /// Time of these.
    pub time_if_dependent: Duration,
}

/// Rounds of looking closer around the best level of a ladder. Each halves the gap, a doubling has
/// at most as many as its number has bits, and fewer matter: three take a gap of 2 to one of 9 %.
pub(crate) const REFINEMENTS: u32 = 4;

impl Plan {
    /// Fewest runs of a setting with which the wanted confidence is possible.
    pub fn runs_min(&self) -> usize {
        stats::values_min(self.confidence)
    }

    /// Says beforehand what it will probably cost: the ladders, two more levels beside the best one
    /// per refinement, and a second examination of every factor but the last; if they depend on
    /// each other, all ladders and refinements once more.
    pub fn estimate(&self) -> Estimate {
        let once: u64 = self.factors.iter().map(levels_of).sum();
        let (again, look) = match self.factors.split_last() {
            Some((last, before @ [_, ..])) => {
                let look: u64 = before.iter().map(levels_of_look).sum();
                (once + levels_of_look(last), look)
            }
            _ => (0, 0),
        };

        // The confirmation and the uncounted first run come on top.
        let runs = |levels: u64| levels * u64::from(self.repetitions) + self.runs_min() as u64 + 1;
        let time = |runs: u64| {
            self.run_time
                .saturating_mul(u32::try_from(runs).unwrap_or(u32::MAX))
        };
        let probably = runs(once + look);
        let if_dependent = runs(once + look + again);

        Estimate {
            runs: probably,
            time: time(probably),
            fits: time(probably) <= self.budget,
            runs_if_dependent: if_dependent,
            time_if_dependent: time(if_dependent),
        }
    }
}

/// Levels of one exploration: the ladder, and around its best level that one again beside two new
/// neighbours.
fn levels_of(factor: &Factor) -> u64 {
    let coarse = factor.coarse().len() as u64;
    match factor.scale {
        Scale::Choices(_) | Scale::List(_) => coarse,
        Scale::Amount { .. } => {
            coarse + (3 * u64::from(REFINEMENTS)).min(factor.count().saturating_sub(coarse))
        }
    }
}

/// Levels of a second look: the best one, its neighbours, and what the system chooses.
fn levels_of_look(factor: &Factor) -> u64 {
    let system = u64::from(factor.start == SYSTEM_CHOICE && factor.is_amount());
    (3 + system).min(factor.coarse().len() as u64)
}

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
            objective: self.objective,
            repetitions: self.repetitions,
            seed: self.seed,
            run_time: run_time(self, self.time_s),
            budget: self.budget,
            confidence: CONFIDENCE,
            tolerance: TOLERANCE,
        }
    }
}
