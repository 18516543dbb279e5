//! Sweeps: experiments over the settings of network tests.
//!
//! [`grammar`] reads the factors and levels of the command line, [`SettingSpace`] turns settings
//! into tests and back into words, [`metrics`] reads the metrics of one run, and [`sweep`] joins
//! them with the reasons, which rules of the caller give, into the result that is reported.

mod analysis;
pub mod grammar;
pub mod metrics;
mod plan;
mod result;
mod run_length;
mod space;
mod spec;

pub use analysis::{RunLog, sweep};
pub use linerate_model::sweep::{
    Cost, Degradation, FactorResult, FailedLevel, HostIdentity, Hosts, Leader, Level, Objective,
    PlannedFactor, PlateauSide, Provenance, Recommendation, RunMetrics, SettingLevels, Sweep,
    SweepPlan,
};
pub use plan::run_time;
pub use result::{Run, recorded_runs};
pub use run_length::RunLength;
pub use space::{HostChoices, SettingSpace, TooFewCongestionControls};
pub use spec::{LOSS_PERCENT_MAX, SweepSpec, TestSettings};
