//! The HTTP lab without input and output: what to run in which order, what the network allows, what
//! the hosts must be able to do. Verdicts come from the rules that the caller passes in
//! ([`study::Setup::judge`]).

pub mod c10k;
pub mod ceiling;
pub mod cells;
pub mod compare;
pub mod environment;
pub mod estimate;
pub mod experiment;
mod facts;
#[cfg(test)]
mod fixture;
pub mod knee;
pub mod medians;
pub mod plan;
pub mod study;
pub mod trials;

pub use linerate_model::http::units;
