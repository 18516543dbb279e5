//! A run in a list.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{RunId, RunKind, RunState};
use crate::measure::MeasureName;

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunRow {
    /// Identity.
    pub run_id: RunId,
    /// Kind of run.
    pub kind: RunKind,
    /// Its end state.
    pub state: RunState,
    /// Why it did not.
    pub reason: Option<String>,
    /// Title given by the user.
    pub title: Option<String>,
    /// Start in ms since 1970.
    pub started_unix_ms: u64,
    /// Time from start to end in ns.
    pub elapsed_ns: u64,
    /// Name of the client's host.
    pub client: Option<String>,
    /// The server as the user named it.
    pub server: Option<String>,
    /// Name of the watch that started it.
    pub watch: Option<String>,
    /// Number of trials.
    pub trials: u32,
    /// The measure that represents the run, and its median over the trials.
    pub primary: Option<(MeasureName, f64)>,
    /// Medians of that measure from client to server and from server to client, of a test that
    /// measured both; absent where they were not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub both_ways: Option<(f64, f64)>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
}
