//! Commands to the workers of a load, and what they report.

use serde::{Deserialize, Serialize};

use super::second::SecondPart;
use super::stats::LoadStats;

/// From a worker to the coordinator; one line of JSON each between processes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Message {
    /// All connections that could be opened are open.
    Ramped {
        opened: u64,
    },
    /// A second is complete.
    Second(SecondPart),
    Finished(Box<LoadStats>),
    Failed(String),
}

/// To one worker, or to all workers of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkerCommand {
    /// The load begins at this time of the monotonic clock, which all processes share.
    Begin { at_ns: u64 },
    /// Nothing more is sent.
    Stop,
}
