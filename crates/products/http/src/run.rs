//! Experiments and loads as they run.

pub mod experiment;
