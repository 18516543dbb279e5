//! Conclusions from records: which side is worse, when a measure changed, which limits are missed,
//! which runs of a watch are worth an alert.

pub mod alarm;
pub mod change_point;
pub mod compare;
pub mod episodes;
pub mod expect;
pub mod grid;
pub mod limits;
pub mod trend;
