//! Rounds of tests.

mod colour;
mod fleet_plan;
pub mod ladder;
mod planned_run;
mod rounds;
pub mod sample;
mod tournament;
mod variants;

pub use fleet_plan::{FleetPlan, PlanHost, task_id};
pub use planned_run::{Estimate, Links, PlannedRun};
pub use rounds::rounds;

#[cfg(test)]
mod tests;
