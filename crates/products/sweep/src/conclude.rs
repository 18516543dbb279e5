//! Metrics of the runs of a sweep, and the result that follows from them.

pub mod analysis;
pub mod findings;
pub mod metrics;
