//! `linerate fleet`: many hosts measured as one system.
//!
//! * [`spec`] has the hosts of a fleet and the options of its runs.
//! * [`plan`] makes rounds of tests out of a specification: which pairs run at the same time.
//! * [`protocol`] holds the machines of coordinator and agent, and their messages.
//! * [`conclude`] runs a plan over a [`RoundRunner`](conclude::RoundRunner) and makes findings out
//!   of its cells.
//! * [`report`] writes findings and cells as text, JSON, comma-separated values and HTML.
//! * [`run`] joins them with hosts: control connections, clocks, processes.
//!
//! All but [`run`] are functions of their input: they open no socket, read no clock and start no
//! thread, and the same plan, seed and cells give the same rounds and the same findings.

#![forbid(unsafe_code)]

pub mod conclude;
#[cfg(test)]
#[path = "tests/fixtures.rs"]
mod fixtures;
pub mod plan;
pub mod protocol;
pub mod report;
pub mod run;
pub mod spec;

pub use linerate_model::fleet::{HostId, TaskId};

/// One second in ns.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;
/// One millisecond in ns.
pub(crate) const MS_NS: u64 = 1_000_000;
