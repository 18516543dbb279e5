//! Findings from the cells of a fleet.

mod blocks;
mod clearance;
pub mod collision;
mod discovery;
mod effects;
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

pub use blocks::SlowUplink;
pub use effects::{Analysis, analyse};
pub(crate) use findings::because;
pub use findings::{NO_FINDING, headline, ranked};
pub use signatures::{contention, findings};
