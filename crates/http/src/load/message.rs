//! Messages between coordinator and workers; one line of JSON each between processes.

use serde::{Deserialize, Serialize};

use super::second::SecondPart;
use super::spec::LoadSpec;
use super::stats::LoadStats;

/// From a worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// All connections that could be opened are open.
    Ramped {
        /// Their number.
        opened: u64,
    },
    /// A second is complete.
    Second(SecondPart),
    /// The worker has finished.
    Finished(Box<LoadStats>),
    /// The worker failed.
    Failed(String),
}

/// To one worker, or to all workers of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerCommand {
    /// The load begins at this time of the monotonic clock, which all processes share.
    Begin {
        /// Nanoseconds.
        at_ns: u64,
    },
    /// Nothing more is sent.
    Stop,
}

/// First line of input of a worker process.
#[derive(Debug, Serialize, Deserialize)]
pub struct WorkerAssignment {
    /// The whole load.
    pub spec: LoadSpec,
    /// Workers of the process.
    pub workers: std::ops::Range<u32>,
    /// Workers of all processes.
    pub workers_total: u32,
}
