//! Proof of a fix: tests without and with it in balanced order, and how many times the former rate
//! it gives.

use std::time::Duration;

use serde::Serialize;

use linerate_model::stats::{Interval, median, ratio_interval};

/// Schema name of a [`Proof`].
pub const PROOF_SCHEMA: &str = "linerate.proof/1";

/// Number and length of the runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProofPlan {
    /// Runs, half of them with the fix.
    pub runs: u32,
    /// Measured part of a run in seconds.
    pub run_s: u32,
}

impl ProofPlan {
    /// Length of the test that is diagnosed before the runs, in seconds.
    pub const DIAGNOSIS_S: u32 = 4;
    /// Warm-up of a run in seconds.
    pub const OMIT_S: u32 = 1;
    /// Least time in which a fix can be measured.
    pub const BUDGET_MIN: Duration =
        Duration::from_secs((RUNS_MIN * (1 + OVERHEAD_S) + Self::DIAGNOSIS_S + OVERHEAD_S) as u64);

    /// Runs that fit into `budget`: longer ones first, then more. Their number does not depend on
    /// their results, because an interval of runs that end at a chosen result holds the truth less
    /// often. `None` below [`Self::BUDGET_MIN`].
    pub fn within(budget: Duration) -> Option<Self> {
        let seconds = u32::try_from(budget.as_secs()).unwrap_or(u32::MAX);
        let seconds = seconds.saturating_sub(Self::DIAGNOSIS_S + OVERHEAD_S);
        let run_s = (seconds / RUNS_MIN)
            .saturating_sub(OVERHEAD_S)
            .min(RUN_S_MAX);
        // Whole blocks: in a part of A B B A a drift does not cancel out.
        let runs = (seconds / (run_s + OVERHEAD_S)).min(RUNS_MAX) / BLOCK * BLOCK;
        (run_s > 0).then_some(Self { runs, run_s })
    }

    /// True if the fix is applied in a run: A B B A, in which a drift over time cancels out.
    pub fn has_fix(run: u32) -> bool {
        matches!(run % BLOCK, 1 | 2)
    }

    /// Time of `runs` runs.
    pub fn time(self, runs: u32) -> Duration {
        Duration::from_secs(u64::from(runs) * u64::from(self.run_s + OVERHEAD_S))
    }
}

/// Runs between which the order repeats.
const BLOCK: u32 = 4;
/// Six runs a side: the interval lies between the sixth lowest and the sixth highest of 36 ratios.
const RUNS_MIN: u32 = 3 * BLOCK;
const RUNS_MAX: u32 = 100;
const RUN_S_MAX: u32 = 10;
/// Warm-up of a run, its connections and the commands before it.
const OVERHEAD_S: u32 = ProofPlan::OMIT_S + 1;
const CONFIDENCE: f64 = 0.95;
/// Smaller gains and losses do not matter.
const EFFECT_MIN: f64 = 0.02;
/// An interval within this distance of 1 excludes any effect that matters.
const SAME_MAX: f64 = 0.05;

/// Effect of a fix on the rate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Proof {
    /// Always [`PROOF_SCHEMA`].
    pub schema: &'static str,
    /// Rule of the finding.
    pub id: String,
    /// Title of the finding.
    pub title: String,
    /// The server of the tests.
    pub server: String,
    /// Commands of the fix.
    #[serde(rename = "do")]
    pub commands: Vec<String>,
    /// Commands that restored the former settings.
    pub undo: Vec<String>,
    /// Measured effect.
    #[serde(flatten)]
    pub effect: Effect,
}

/// Runs with and without a fix, and their ratio.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Effect {
    /// Former settings.
    pub without: Rates,
    /// Settings of the fix.
    pub with: Rates,
    /// Median ratio of a rate with the fix to one without.
    pub ratio: f64,
    /// Where the true ratio lies.
    pub interval: Interval,
    /// Probability with which such an interval holds the true ratio, 0 to 1.
    pub confidence: f64,
    /// Conclusion from ratio and interval.
    pub result: ProofResult,
}

/// Received rates of runs with the same settings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rates {
    /// Their median in bit/s.
    pub median_bps: f64,
    /// Each in bit/s, in order.
    pub runs_bps: Vec<f64>,
}

/// Conclusion of a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProofResult {
    /// The rate is higher with the fix.
    Helps,
    /// The rate is lower with the fix.
    Worse,
    /// The rates differ by less than 5 %, if at all.
    NoDifference,
    /// The runs vary too much for an answer.
    Undecided,
}

impl Effect {
    /// Compares rates in bit/s; `None` of fewer than four a side.
    pub fn of(without: Vec<f64>, with: Vec<f64>) -> Option<Self> {
        let (ratio, interval) = ratio_interval(&with, &without, CONFIDENCE)?;
        let Interval { low, high } = interval;
        let result = match ratio - 1.0 {
            gain if low > 1.0 && gain > EFFECT_MIN => ProofResult::Helps,
            gain if high < 1.0 && gain < -EFFECT_MIN => ProofResult::Worse,
            _ if low >= 1.0 - SAME_MAX && high <= 1.0 + SAME_MAX => ProofResult::NoDifference,
            _ => ProofResult::Undecided,
        };

        let rates = |runs_bps: Vec<f64>| {
            Some(Rates {
                median_bps: median(&runs_bps)?,
                runs_bps,
            })
        };
        Some(Self {
            without: rates(without)?,
            with: rates(with)?,
            ratio,
            interval,
            confidence: CONFIDENCE,
            result,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_fits_the_budget_with_at_least_five_runs_a_side() {
        let plan = |seconds| ProofPlan::within(Duration::from_secs(seconds));
        assert_eq!(
            plan(ProofPlan::BUDGET_MIN.as_secs()),
            Some(ProofPlan { runs: 12, run_s: 1 })
        );
        assert_eq!(plan(ProofPlan::BUDGET_MIN.as_secs() - 1), None);
        assert_eq!(plan(120), Some(ProofPlan { runs: 12, run_s: 7 }));
        assert_eq!(
            plan(600),
            Some(ProofPlan {
                runs: 48,
                run_s: 10
            })
        );
        assert_eq!(
            plan(u64::MAX),
            Some(ProofPlan {
                runs: 100,
                run_s: 10
            })
        );

        for seconds in 42..2000 {
            let plan = plan(seconds).expect("long enough");
            assert!(
                plan.time(plan.runs) <= Duration::from_secs(seconds),
                "{plan:?} in {seconds} s"
            );
            assert!(plan.runs >= 10, "{plan:?}");
        }
    }

    #[test]
    fn order_is_balanced_against_a_drift() {
        let places = |has_fix: bool| (0..12).filter(move |run| ProofPlan::has_fix(*run) == has_fix);
        assert_eq!(places(true).take(4).collect::<Vec<_>>(), [1, 2, 5, 6]);
        assert_eq!(places(true).sum::<u32>(), places(false).sum::<u32>());
    }

    #[test]
    fn result_follows_from_the_interval() {
        let runs = |rate: f64, step: f64| {
            (0..6)
                .map(|run| rate + step * f64::from(run))
                .collect::<Vec<_>>()
        };
        let rows = [
            (runs(95e6, 1e5), runs(9e9, 1e8), ProofResult::Helps),
            (runs(9e9, 1e8), runs(95e6, 1e5), ProofResult::Worse),
            (runs(95e6, 1e5), runs(95e6, 1e5), ProofResult::NoDifference),
            (
                runs(95e6, 1e4),
                runs(95.5e6, 1e4),
                ProofResult::NoDifference,
            ),
            (runs(95e6, 1e4), runs(98e6, 1e4), ProofResult::Helps),
            (runs(50e6, 1e7), runs(50e6, 1e7), ProofResult::Undecided),
        ];
        for (without, with, result) in rows {
            let effect = Effect::of(without, with).expect("six a side");
            assert_eq!(effect.result, result, "{effect:?}");
        }

        assert_eq!(Effect::of(vec![1.0; 3], vec![2.0; 3]), None);
    }
}
