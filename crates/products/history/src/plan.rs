//! When the runs of a watch start.

pub mod quiet;
pub mod schedule;
