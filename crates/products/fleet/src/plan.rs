//! Rounds of tests.

mod colour;
mod estimate;
mod fleet_plan;
pub mod ladder;
mod racks;
mod rounds;
pub mod sample;
mod tournament;
mod variants;

pub use estimate::{Estimate, estimate};
pub use fleet_plan::{FleetPlan, PlanHost, Topology, task_id};
pub use racks::rounds_min;
pub use rounds::{Caps, rounds};

#[cfg(test)]
mod tests;
