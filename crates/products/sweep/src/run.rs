//! Sequence of an experiment: which setting is run next, and when the answer is known.

pub mod explore;
pub mod runner;
