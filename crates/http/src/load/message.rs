//! What the parts of a generator tell the one that leads them. Between processes each is a line of JSON.

use serde::{Deserialize, Serialize};

use super::second::SecondPart;
use super::spec::LoadSpec;
use super::tally::Tally;

/// From a lane, or from a worker process for one of its lanes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// Its connections are open, as far as they could be opened.
    Ramped {
        /// Those that are.
        opened: u64,
    },
    /// A second is over.
    Second(SecondPart),
    /// It is through.
    Finished(Box<Tally>),
    /// It could not run.
    Failed(String),
}

/// To a lane, or to a worker process for all of its lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The load begins at this time of the monotonic clock, which all processes of a host share.
    Begin {
        /// Nanoseconds.
        at_ns: u64,
    },
    /// Nothing more is sent.
    Stop,
}

/// What a worker process is given first.
#[derive(Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// The whole load.
    pub spec: LoadSpec,
    /// Its lanes.
    pub lanes: std::ops::Range<u32>,
    /// All lanes of all processes.
    pub lanes_total: u32,
}
