//! Many hosts measured as one system: which pairs run at the same time, and what their rates have in common.
//!
//! [`schedule`] makes rounds of tests out of a plan, [`analysis`] makes findings out of their cells. All of it is a function
//! of its input: the same plan, seed and cells give the same rounds and the same findings.

pub mod analysis;
pub mod schedule;

pub use schedule::{FleetPlan, PlanHost, Topology};
