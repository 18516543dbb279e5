//! Experiment design without input and output.
//!
//! A [`Plan`] names the factors, their levels, the repetitions and the time there is. [`explore`]
//! decides what to run and in which order, starts every run through a [`Runner`], and judges them,
//! which may be that they allow nothing: [`Verdict::Inconclusive`] is an answer.
//!
//! The unit of replication is the run. Intervals within a run share its connection, its route and
//! its neighbours, so that their number is no measure of confidence.
//!
//! Plans and runs may be of anything. [`sweep`] applies them to network tests.

#![forbid(unsafe_code)]

mod explore;
mod factor;
mod findings;
mod plan;
mod runner;
mod setting;
pub mod sweep;

pub use explore::explore;
pub use factor::{Factor, SYSTEM_CHOICE, Scale};
pub use findings::{Outcome, Point, Stage, Verdict};
pub use plan::{Better, Estimate, Plan};
pub use runner::{Burden, Observation, Progress, RunError, Runner};
pub use setting::Setting;

#[cfg(test)]
mod paths_tests;
#[cfg(test)]
mod surfaces_tests;
