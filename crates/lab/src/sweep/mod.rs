//! Sweeps: experiments over the settings of network tests.
//!
//! [`grammar`] reads the factors and levels of the command line, [`SettingSpace`] turns settings into tests and back into words,
//! [`metrics`] reads the stats of one run, [`reasons`] explains why a setting is worse, and [`sweep`] joins them into the
//! result that is reported.

mod analysis;
pub mod grammar;
pub mod metrics;
pub mod reasons;
mod result;
mod space;
mod spec;

pub use analysis::{RunLog, sweep};
pub use reasons::Hosts;
pub use result::{
    Cost, Degradation, FactorResult, Level, Planned, PlateauSide, Recommendation, Run, RunMetrics, Sweep,
};
pub use space::{HostChoices, SettingSpace, TestSettings};
pub use spec::{Held, Objective, SweepSpec};
