//! Settings, and the runs made at each.

use crate::runner::Observation;
use crate::stats;

/// One level per factor, in the order of the plan.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Setting(pub Vec<u64>);

impl Setting {
    /// The same with another level of one factor.
    #[must_use]
    pub fn with(&self, factor: usize, level: u64) -> Self {
        let mut levels = self.0.clone();
        if let Some(own) = levels.get_mut(factor) {
            *own = level;
        }
        Self(levels)
    }

    /// The level of a factor; 0 beyond the last.
    #[must_use]
    pub fn level(&self, factor: usize) -> u64 {
        self.0.get(factor).copied().unwrap_or(0)
    }
}

/// A setting and all runs made at it.
#[derive(Debug, Clone, PartialEq)]
pub struct Point<F> {
    /// The setting.
    pub setting: Setting,
    /// Its runs, in the order of time.
    pub runs: Vec<Observation<F>>,
    /// Why runs at it failed.
    pub failures: Vec<String>,
}

impl<F> Point<F> {
    pub(crate) fn new(setting: Setting) -> Self {
        Self { setting, runs: Vec::new(), failures: Vec::new() }
    }

    /// What its runs brought.
    #[must_use]
    pub fn values(&self) -> Vec<f64> {
        self.runs.iter().map(|run| run.value).collect()
    }

    /// The median of its runs; `None` when all failed.
    #[must_use]
    pub fn median(&self) -> Option<f64> {
        stats::median(&self.values())
    }
}
