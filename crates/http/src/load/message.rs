//! Messages between coordinator and workers; one line of JSON each between processes.

use serde::{Deserialize, Serialize};

use super::second::SecondPart;
use super::spec::LoadSpec;
use super::stats::LoadStats;

/// From a worker.
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

/// First line of input of a worker process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WorkerAssignment {
    pub(crate) spec: LoadSpec,
    /// Workers of the process.
    pub(crate) workers: std::ops::Range<u32>,
    /// Workers of all processes.
    pub(crate) workers_total: u32,
}
