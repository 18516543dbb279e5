//! The runs of a sweep, as they are made and as a record has them.

use linerate_model::record::{Detail, Trial};
use linerate_model::sweep::{RunMetrics, Sweep};

use crate::conclude::metrics;
use crate::run::runner::RunError;

/// One run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Level of every factor, in their order.
    pub levels: Vec<String>,
    /// Seconds from the start of the sweep to the start of this run.
    pub started_s: f64,
    /// It is not counted: it came first, or was too short for the path.
    pub is_warm_up: bool,
    /// Value and metrics, or why there are none.
    pub outcome: Result<(f64, RunMetrics), RunError>,
}

/// The runs of a sweep that was recorded, in the order of time.
pub fn recorded_runs(sweep: &Sweep, trials: &[Trial]) -> Vec<Run> {
    trials
        .iter()
        .map(|trial| recorded_run(sweep, trial))
        .collect()
}

fn recorded_run(sweep: &Sweep, trial: &Trial) -> Run {
    let level = |name: &str| trial.factors.get(name).cloned().unwrap_or_default();
    let summary = match &trial.detail {
        Some(Detail::Test(detail)) => detail.summary.as_ref(),
        _ => None,
    };
    let measured = || {
        let metrics = summary.and_then(metrics::run_metrics)?;
        metrics::value(sweep.plan.objective, &metrics)
            .ok()
            .map(|value| (value, metrics))
    };
    let outcome = match &trial.reason {
        Some(reason) => Err(reason.clone()),
        None => measured().ok_or_else(|| "the test had no result".to_owned()),
    };

    Run {
        levels: sweep
            .plan
            .factors
            .iter()
            .map(|factor| level(&factor.name))
            .collect(),
        started_s: trial.started_ns as f64 / 1e9,
        is_warm_up: trial.is_warm_up,
        outcome: outcome.map_err(RunError::Failed),
    }
}
