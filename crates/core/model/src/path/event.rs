//! Events while a path is examined, for programs that follow it: `linerate.event/1`.

use serde::Serialize;

use super::{
    Datagrams, IdleDelays, LoadPhase, PathMtu, PathReport, PathSpec, PathTarget, PhaseKind,
    RateLadder, Transactions,
};
use crate::finding::Diagnosis;

/// Schema name of the events.
pub const EVENT_SCHEMA: &str = "linerate.event/1";

/// An event of an examination.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum PathEvent<'a> {
    /// The server is reached and the phases are planned.
    Started {
        /// Always [`EVENT_SCHEMA`].
        schema: &'static str,
        /// Number of the repetition, from 0.
        repeat: u32,
        /// The server.
        target: &'a PathTarget,
        /// The request.
        spec: &'a PathSpec,
        /// Longest time of all phases.
        seconds_max: u64,
    },
    /// About a second of a load.
    Interval(LoadInterval),
    /// A phase that ended.
    Phase(FinishedPhase<'a>),
    /// An examination that ended.
    Trial {
        /// Number of the repetition, from 0.
        repeat: u32,
        /// The result.
        report: &'a PathReport,
    },
    /// Limit of the path; the last event.
    Verdict {
        /// Exit code of the program.
        exit_code: u8,
        /// Absent where no load ended.
        #[serde(skip_serializing_if = "Option::is_none")]
        diagnosis: Option<&'a Diagnosis>,
        /// Limits of `--expect` that were missed.
        missed: &'a [String],
    },
}

/// About a second of a load, measured at the client.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LoadInterval {
    /// The phase.
    pub phase: PhaseKind,
    /// Start, ns since that of the load.
    pub start_ns: u64,
    /// End, ns since the start of the load.
    pub end_ns: u64,
    /// Payload that arrived from the server, bit/s.
    pub received_bps: f64,
    /// Payload that was given to the sockets towards the server, bit/s.
    pub sent_bps: f64,
    /// Streams per direction.
    pub streams: u32,
    /// Newest round trip of a probe, ns; absent without a reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_ns: Option<i64>,
}

/// A phase that ended.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishedPhase<'a> {
    /// Largest packets.
    Size(&'a PathMtu),
    /// Delays without load.
    Idle(&'a IdleDelays),
    /// A load.
    Load(&'a LoadPhase),
    /// Paced datagrams of one direction.
    Datagrams(&'a Datagrams),
    /// Requests and responses.
    Transactions(&'a Transactions),
    /// A search for the highest rate.
    Ladder(&'a RateLadder),
    /// A phase without a result.
    Failed {
        /// The phase.
        kind: PhaseKind,
        /// Why.
        reason: &'a str,
    },
}
