//! Setting of an experiment: the levels at which a run is made.

/// One level per factor, in the order of the plan.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Setting(pub Vec<u64>);

impl Setting {
    /// This setting with another level of one factor.
    pub fn with(&self, factor: usize, level: u64) -> Self {
        let mut levels = self.0.clone();
        if let Some(own) = levels.get_mut(factor) {
            *own = level;
        }
        Self(levels)
    }

    /// The level of a factor; 0 beyond the last.
    pub fn level(&self, factor: usize) -> u64 {
        self.0.get(factor).copied().unwrap_or(0)
    }
}
