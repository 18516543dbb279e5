//! From rounds of tests to findings.

mod blocks;
mod clearance;
pub mod collision;
mod discovery;
mod effects;
mod explore;
pub mod fairness;
mod findings;
pub mod groups;
pub mod hosts;
pub mod ladder;
mod matrix;
pub mod period;
pub mod poison;
mod reference;
pub mod shared_slot;
mod signatures;
pub mod trials;

#[cfg(test)]
mod explore_tests;
#[cfg(test)]
mod golden_tests;

pub use blocks::SlowUplink;
pub use effects::{Analysis, analyse};
pub use explore::{FleetEnd, FleetOutcome, FleetProgress, RoundError, RoundRunner, explore};
pub(crate) use findings::because;
pub use findings::{NO_FINDING, headline, ranked};
pub use signatures::{contention, findings};
