//! Many hosts measured as one system: which pairs run at the same time, and what their rates have
//! in common.
//!
//! [`schedule`] makes rounds of tests out of a plan, [`analysis`] makes findings out of their
//! cells, and [`explore`] does one after the other over a [`RoundRunner`]. All of it is a function
//! of its input: the same plan, seed and cells give the same rounds and the same findings.

pub mod analysis;
mod explore;
pub mod schedule;
pub mod trials;

pub use explore::{FleetEnd, FleetOutcome, FleetProgress, RoundError, RoundRunner, explore};
pub use schedule::{FleetPlan, PlanHost, Topology};

#[cfg(test)]
mod explore_tests;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod schedule_tests;
