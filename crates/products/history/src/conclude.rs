//! Conclusions from records: which side is worse, when a measure changed, which limits are missed.

pub mod change_point;
pub mod compare;
pub mod expect;
pub mod limits;
pub mod trend;
