//! Rounds of tests.

mod colour;
mod estimate;
pub mod ladder;
mod plan;
mod racks;
mod rounds;
pub mod sample;
mod tournament;
mod variants;

pub use estimate::{Estimate, estimate};
pub use plan::{FleetPlan, PlanHost, Topology, task_id};
pub use racks::rounds_min;
pub use rounds::{Caps, rounds};
