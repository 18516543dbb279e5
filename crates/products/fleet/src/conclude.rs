//! From rounds of tests to findings.

mod blocks;
pub mod changes;
mod classification;
mod effects;
mod explore;
mod findings;
pub mod groups;
pub mod hash_collision;
pub mod hosts;
pub mod ladder;
mod matrix;
pub mod period;
mod runner;
pub mod shared_slot;
pub mod trials;

#[cfg(test)]
mod explore_tests;
#[cfg(test)]
mod golden_tests;

pub use classification::findings;
pub use effects::analyse;
pub(crate) use effects::{is_slow, strength};
pub use explore::explore;
pub(crate) use explore::{by_treatment, treatment_name};
pub use findings::{NO_FINDING, headline, ranked};
pub(crate) use findings::{because, seen};
pub use runner::{FleetProgress, RoundError, RoundRunner, add_hosts};
