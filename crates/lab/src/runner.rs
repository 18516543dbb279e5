//! What an experiment needs from the world.

use std::time::Duration;

use thiserror::Error;

use crate::setting::Setting;

/// Starts runs and reads the clock.
pub trait Runner {
    /// What a run measures beside the compared value.
    type Metrics;

    /// Runs once at this setting and waits for the result.
    ///
    /// # Errors
    /// When there is no result; see [`RunError`].
    fn run(&mut self, setting: &Setting) -> Result<Observation<Self::Metrics>, RunError>;

    /// Time since an arbitrary moment; never goes back.
    fn now(&self) -> Duration;

    /// Hears of every run before it starts.
    fn progress(&mut self, progress: &Progress);
}

/// The result of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation<F> {
    /// What is compared, in the unit of the objective.
    pub value: f64,
    /// What else was seen.
    pub metrics: F,
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
    /// What runs next.
    pub setting: Setting,
    /// Runs that have ended.
    pub runs_done: u64,
    /// Runs that are planned now; grows when a result needs more.
    pub runs_planned: u64,
    /// How long those that are left will take.
    pub left: Duration,
}
