//! One point of the experiment: what was set, the runs of it, and their middle.

use linerate_macros::stored;

use super::units::payload_name;
use super::{CellVerdict, EndpointStats, Flag, LoadResult};
use crate::stored_name;

/// Part of the experiment.
#[stored(Copy, Default, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Payloads at one number of connections.
    #[default]
    Payload,
    /// Payloads by connections.
    Matrix,
    /// Connections that are only held.
    Idle,
    /// Many connections, few requests.
    LowRate,
    /// Many connections that are all busy.
    Active,
}

/// Identity of a cell.
#[stored(Copy, Default, Eq, PartialOrd, Ord, Hash)]
pub struct CellKey {
    /// Part of the experiment.
    pub phase: Phase,
    /// Bytes of a body.
    pub payload_bytes: u64,
    /// Connections.
    pub connections: u32,
    /// Requests per second of an open loop; absent in a closed one.
    pub rate_per_s: Option<u32>,
}

impl CellKey {
    /// A cell of a closed loop, or of connections that are only held.
    pub const fn new(phase: Phase, payload_bytes: u64, connections: u32) -> Self {
        Self {
            phase,
            payload_bytes,
            connections,
            rate_per_s: None,
        }
    }

    /// Its name in messages and file names: `matrix-10k-c64`.
    pub fn name(&self) -> String {
        format!(
            "{}-{}-c{}",
            stored_name(self.phase),
            payload_name(self.payload_bytes),
            self.connections
        )
    }
}

/// End state of a run.
#[stored(Copy, Default, Eq)]
pub enum RunState {
    /// As planned.
    Done,
    /// Ended before its time; its statistics are kept and not used.
    Aborted,
    /// Not made: see [`CellRun::reason`].
    #[default]
    Skipped,
}

/// One run of a cell.
#[stored(Default)]
pub struct CellRun {
    /// The cell.
    pub key: CellKey,
    /// Which of its repeats, from 1.
    pub repeat: u32,
    /// Its end state.
    pub state: RunState,
    /// Why it was skipped or aborted.
    pub reason: Option<String>,
    /// Start, wall clock of the client.
    pub started_unix_ms: u64,
    /// Result of the generator; absent when skipped.
    pub load: Option<LoadResult>,
    /// Resource usage of the client.
    pub client: EndpointStats,
    /// Resource usage of the server; absent without an agent there.
    pub server: Option<EndpointStats>,
    /// Reservations about it, those of [`LoadResult::flags`] included.
    pub flags: Vec<Flag>,
}

impl CellRun {
    /// A run of which nothing but its end is known. `repeat` is from 1.
    pub fn new(key: CellKey, repeat: u32, state: RunState) -> Self {
        Self {
            key,
            repeat,
            state,
            ..Self::default()
        }
    }
}

/// The middle of the finished runs of a cell.
#[stored(Copy, Default)]
pub struct Medians {
    /// Runs it is made of.
    pub runs: u32,
    /// Complete 2xx responses per second.
    pub ok_per_s: Option<f64>,
    /// `(max − min) / median` of these over the runs; absent with one run.
    pub spread: Option<f64>,
    /// Bytes of bodies per second.
    pub payload_bytes_per_s: Option<f64>,
    /// Bytes of heads and bodies per second.
    pub http_bytes_per_s: Option<f64>,
    /// Bits per second on the wire in the busier direction, frames and gaps included.
    pub wire_bps: Option<f64>,
    /// Share of the link in the busier direction.
    pub nic_util: Option<f64>,
    /// Answers per second as a share of the network's ceiling.
    pub of_ceiling: Option<f64>,
    /// Median latency.
    pub p50_ns: Option<u64>,
    /// 99th percentile of the latency.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile of the latency.
    pub p999_ns: Option<u64>,
    /// Mean latency.
    pub mean_ns: Option<f64>,
    /// Failures as a share of all that ended.
    pub error_share: Option<f64>,
    /// CPU time of the server's program over the window; 1 is one CPU.
    pub server_cpus: Option<f64>,
    /// CPU time of the generator over the window; 1 is one CPU.
    pub client_cpus: Option<f64>,
    /// CPU time of the server's program per response.
    pub server_cpu_ns_per_request: Option<f64>,
    /// CPU time of the generator per response.
    pub client_cpu_ns_per_request: Option<f64>,
}

/// A cell with all that is known of it.
#[stored]
pub struct Cell {
    /// Which one.
    pub key: CellKey,
    /// Its runs in the order they were made.
    pub runs: Vec<CellRun>,
    /// The middle of the finished ones.
    pub median: Medians,
    /// Answers per second the network allows for this payload; absent where that cannot be
    /// computed.
    pub ceiling_per_s: Option<f64>,
    /// Its limit.
    pub verdict: CellVerdict,
}

impl Cell {
    /// A cell without runs.
    pub fn new(key: CellKey, verdict: CellVerdict) -> Self {
        Self {
            key,
            runs: Vec::new(),
            median: Medians::default(),
            ceiling_per_s: None,
            verdict,
        }
    }
}
