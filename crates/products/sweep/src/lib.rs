//! Sweeps: experiments over the settings of network tests.
//!
//! A [`Plan`] names the factors, their levels, the repetitions and the time there is. [`explore`]
//! decides what to run and in which order, starts every run through a [`Runner`], and judges them,
//! which may be that they allow nothing: [`Verdict::Inconclusive`] is an answer.
//!
//! The unit of replication is the run. Intervals within a run share its connection, its route and
//! its neighbours, so that their number is no measure of confidence.
//!
//! * [`spec`]: a sweep as typed, and the grammar of its factors and levels
//! * [`plan`]: factors, settings and tests of a sweep, and its cost
//! * [`run`]: the experiment
//! * [`conclude`]: metrics of a run, and the result that is reported, with reasons that rules of the
//!   caller give
//! * [`report`]: text with a plot, one line per run, and one HTML file

#![forbid(unsafe_code)]

pub mod conclude;
pub mod plan;
pub mod report;
pub mod run;
pub mod spec;

pub use conclude::analysis::{RunLog, sweep};
pub use conclude::findings::{Outcome, Point, PointId, Points, Stage, Verdict};
pub use conclude::metrics::{Run, recorded_runs};
pub use plan::experiment::{Estimate, Plan, run_time};
pub use plan::factor::{Factor, SYSTEM_CHOICE, Scale, Setting};
pub use plan::run_length::RunLength;
pub use plan::space::{HostChoices, SettingSpace, TooFewCongestionControls};
pub use run::explore::explore;
pub use run::runner::{Observation, Progress, RunError, Runner};
pub use spec::{LOSS_PERCENT_MAX, SweepSpec, TestSettings};

#[cfg(test)]
mod paths_tests;
#[cfg(test)]
mod surfaces_tests;
