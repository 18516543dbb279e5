//! Many hosts measured as one system: which pairs run at the same time.
//!
//! [`schedule`] makes rounds of tests out of a plan: the same plan, seed and tasks give the same rounds.

pub mod schedule;

pub use schedule::{FleetPlan, PlanHost, Topology};
