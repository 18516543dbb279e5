//! Experiment design without input and output.
//!
//! [`proof`] compares a setting of a host with a fix of it, [`path`] plans and judges the examination
//! of a path, and [`fleet`] measures many hosts as one system.

#![forbid(unsafe_code)]

pub mod fleet;
#[cfg(any(test, fuzzing))]
#[path = "../fuzzing/mod.rs"]
pub mod fuzzing;
pub mod path;
pub mod proof;
