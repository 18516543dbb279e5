//! Interface of an experiment to its runs.

use std::time::Duration;

use thiserror::Error;

use linerate_model::sweep::RunMetrics;

use crate::plan::factor::Setting;

/// Starts runs and reads the clock.
pub trait Runner {
    /// Runs once at this setting and waits for the result.
    ///
    /// # Errors
    /// When there is no result; see [`RunError`].
    fn run(&mut self, setting: &Setting) -> Result<Observation, RunError>;

    /// Duration of the next run with its overhead. Runs may become longer.
    fn run_time(&self) -> Duration;

    /// Time since an arbitrary moment; never goes back.
    fn now(&self) -> Duration;

    /// Hears of every run before it starts.
    fn progress(&mut self, progress: &Progress);
}

/// The result of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// The compared value, in the unit of the objective.
    pub value: f64,
    /// Measurements beside it.
    pub metrics: RunMetrics,
}

/// True if a setting puts less load on the path for its value: one figure is clearly less, and the
/// other one not clearly more. A shorter queue that loses more is not lighter.
pub(crate) fn is_lighter(own: &RunMetrics, other: &RunMetrics) -> bool {
    let delay = clearly_less(own.rtt_us, other.rtt_us, DELAY_US_MIN);
    let retransmits = clearly_less(
        own.retransmits_per_s,
        other.retransmits_per_s,
        RETRANSMITS_PER_S_MIN,
    );
    let is_any_less = delay == Some(true) || retransmits == Some(true);

    // Behind 50 ms of queue 64 streams had 11 ms and 3,609 retransmits in place of 21 ms and
    // none: not lighter.
    is_any_less && delay != Some(false) && retransmits != Some(false)
}

/// Values that differ by less than this ratio are equal.
const BURDEN_RATIO_MIN: f64 = 1.25;
/// Smaller differences than these are equal, too: no application notices them.
const DELAY_US_MIN: f64 = 1000.0;
const RETRANSMITS_PER_S_MIN: f64 = 1.0;

/// `None` when either is unknown, or when they are about equal.
fn clearly_less(own: Option<f64>, other: Option<f64>, difference_min: f64) -> Option<bool> {
    let (own, other) = own.zip(other)?;
    let low = own.min(other);
    let high = own.max(other);
    let is_clear = high - low >= difference_min && high >= BURDEN_RATIO_MIN * low;
    is_clear.then_some(own < other)
}

/// Why a run has no result.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RunError {
    /// This run failed; another one may not. With the reason.
    #[error("{0}")]
    Failed(String),
    /// No other run would succeed, or the user ended the experiment. With the reason.
    #[error("{0}")]
    Over(String),
}

/// Where the experiment is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Setting of the next run.
    pub setting: Setting,
    /// Runs that have ended.
    pub runs_done: u64,
    /// Runs that are planned now; grows when a result needs more.
    pub runs_planned: u64,
    /// Estimated time of the remaining runs.
    pub left: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lighter_is_less_of_one_and_not_more_of_the_other() {
        let burden = |delay_ms: f64, retransmits_per_s: f64| RunMetrics {
            rtt_us: Some(delay_ms * 1000.0),
            retransmits_per_s: Some(retransmits_per_s),
            ..RunMetrics::default()
        };
        assert!(is_lighter(&burden(20.0, 0.0), &burden(190.0, 0.0)));
        assert!(is_lighter(&burden(20.0, 0.0), &burden(20.0, 300.0)));
        assert!(is_lighter(&burden(20.0, 0.0), &burden(190.0, 300.0)));
        assert!(
            !is_lighter(&burden(11.0, 1800.0), &burden(21.0, 0.0)),
            "the queue is shorter because it overflows"
        );
        assert!(!is_lighter(&burden(21.0, 0.0), &burden(11.0, 1800.0)));
        assert!(
            !is_lighter(&burden(0.2, 0.0), &burden(0.9, 0.5)),
            "no application notices it"
        );
        assert!(
            !is_lighter(&RunMetrics::default(), &burden(190.0, 300.0)),
            "not measured"
        );
    }
}
