//! The HTTP lab without input and output: what to run in which order, what the network allows, what the hosts must be
//! able to do, and the verdicts the runs allow.

pub mod c10k;
pub mod ceiling;
pub mod cells;
pub mod classify;
pub mod compare;
pub mod environment;
pub mod estimate;
pub mod experiment;
pub mod fixes;
#[cfg(test)]
mod fixture;
pub mod flags;
pub mod knee;
pub mod medians;
pub mod plan;
pub mod preflight;
pub mod study;
pub mod units;
