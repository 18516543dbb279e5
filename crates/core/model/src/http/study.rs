//! A whole experiment, judged.

use linerate_macros::stored;

use super::{Cell, Check, Environment, NegotiatedProtocol};

/// Schema name of a [`Study`] on disk.
pub const HTTP_SCHEMA: &str = "linerate.http/1";

/// One TCP test without HTTP.
#[stored(Default)]
pub struct Baseline {
    /// The server sends.
    pub is_reverse: bool,
    /// Streams in parallel.
    pub streams: u32,
    /// Received payload in bit/s.
    pub goodput_bps: f64,
    /// The same as a share of what the link carries at most; absent where that is unknown.
    pub of_theory: Option<f64>,
    /// Segments sent again.
    pub retransmits: Option<u64>,
    /// The same as a share of all segments.
    pub retransmit_share: Option<f64>,
    /// Loss at a tenth of the rate, where the queues of the path are empty; absent where it was not
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_load: Option<LossWithoutLoad>,
    /// CPU time of the client over the time of the test; 1 is one CPU.
    pub client_cpus: Option<f64>,
    /// CPU time of the server over the time of the test; 1 is one CPU.
    pub server_cpus: Option<f64>,
}

/// Segments that the server sent while the path was nearly idle.
#[stored(Copy, Eq)]
pub struct LossWithoutLoad {
    /// Segments sent.
    pub segments: u64,
    /// Segments sent again.
    pub retransmits: u64,
}

impl LossWithoutLoad {
    /// Fewer are chance: the last segment of an exchange, or a host that was late.
    const RETRANSMITS_MIN: u64 = 5;
    /// Segments may be sent again for this share of all.
    pub const SHARE_MAX: f64 = 0.001;

    /// Retransmitted segments as a share of all.
    pub fn share(&self) -> f64 {
        self.retransmits as f64 / self.segments.max(1) as f64
    }

    /// The path loses segments without a full queue.
    pub fn is_lossy(&self) -> bool {
        self.retransmits >= Self::RETRANSMITS_MIN && self.share() > Self::SHARE_MAX
    }
}

/// One payload over numbers of connections.
#[stored(Default)]
pub struct Row {
    /// Bytes of a body.
    pub payload_bytes: u64,
    /// Most responses per second of any valid cell.
    pub best_per_s: Option<f64>,
    /// Difference that counts as equal, as a share.
    pub tolerance: f64,
    /// Fewest connections that reach the best within the tolerance.
    pub knee_connections: Option<u32>,
    /// Connections the smallest cell's latency predicts for the best (Little's law).
    pub predicted_connections: Option<f64>,
    /// Connections past which only latency grows.
    pub queueing_connections: Vec<u32>,
    /// The step over which latency jumps, in words: `c64 → c128: +1 % throughput, 6.2 × p99`.
    pub cliff: Option<String>,
    /// Connections at which latency has jumped.
    #[serde(default)]
    pub cliff_connections: Option<u32>,
    /// Fewest connections that are fast, steady and without failures.
    pub best_stable_connections: Option<u32>,
    /// The wanted latency excluded all, so the fastest within it stands there.
    pub is_limited_by_objective: bool,
}

/// Memory against connections, fitted by least squares.
#[stored(Copy)]
pub struct MemoryLine {
    /// Bytes for each connection.
    pub bytes_per_connection: f64,
    /// Bytes without any.
    pub base_bytes: f64,
    /// Coefficient of determination, 0 to 1.
    pub r2: f64,
}

impl MemoryLine {
    /// Memory grows with the connections. Otherwise they took what the program had free before, and
    /// what each takes was not measured.
    pub fn grows(&self) -> bool {
        self.bytes_per_connection >= 1.0
    }
}

/// One number of idle connections.
#[stored]
pub struct IdleStep {
    /// Connections wanted.
    pub wanted: u32,
    /// Connections open at the end.
    pub open: u64,
    /// Connections lost meanwhile.
    pub dropped: u64,
    /// Resident memory of the server's program.
    pub server_rss_bytes: Option<u64>,
    /// Memory of the server's kernel: sockets and unreclaimable slab.
    pub server_kernel_bytes: Option<u64>,
    /// CPU time of the server's program; 1 is one CPU.
    pub server_cpus: Option<f64>,
    /// Resident memory of the generator.
    pub client_rss_bytes: Option<u64>,
    /// CPU time of the generator; 1 is one CPU.
    pub client_cpus: Option<f64>,
}

/// The idle steps and what they cost.
#[stored(Default)]
pub struct Idle {
    /// From few to many.
    pub steps: Vec<IdleStep>,
    /// Memory of the server's program.
    pub server_user: Option<MemoryLine>,
    /// Memory of the server's kernel.
    pub server_kernel: Option<MemoryLine>,
    /// Memory of the generator.
    pub client_user: Option<MemoryLine>,
}

/// Bound of the network for a payload.
#[stored(Copy)]
pub struct CeilingPoint {
    /// Bytes of a body.
    pub payload_bytes: u64,
    /// Answers per second at most.
    pub responses_per_s: f64,
}

/// Something that is met or not.
#[stored(Eq)]
pub struct Pass {
    /// What, in words.
    pub what: String,
    /// Whether; absent when it is unknown.
    pub is_met: Option<bool>,
    /// The values it rests on.
    pub evidence: String,
}

impl Pass {
    /// True if `what` is met; `None` when it is unknown.
    pub fn new(what: impl Into<String>, is_met: Option<bool>, evidence: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            is_met,
            evidence: evidence.into(),
        }
    }
}

/// A whole experiment, judged.
#[stored]
pub struct Study {
    /// `linerate.http/1`.
    pub schema: String,
    /// The server, as the user wrote it.
    pub target: String,
    /// Start, wall clock of the client.
    pub started_unix_ms: u64,
    /// Time all of it took.
    pub elapsed_ns: u64,
    /// Order of cells and arrivals.
    pub seed: u64,
    /// The plan, resolved, as TOML.
    pub plan: String,
    /// Negotiated protocols of its runs, each once; empty where no connection was established.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protocol: Vec<NegotiatedProtocol>,
    /// It ran to its end.
    pub is_complete: bool,
    /// Observations before it.
    pub checks: Vec<Check>,
    /// The client's host.
    pub client: Environment,
    /// The server's host; absent without an agent there.
    pub server: Option<Environment>,
    /// TCP alone.
    pub baseline: Vec<Baseline>,
    /// All cells of HTTP: payload, matrix, low rate, active; by phase, payload, connections.
    pub cells: Vec<Cell>,
    /// Most responses per second that the network allows from the smallest payload to the largest,
    /// through those that were run; empty with one payload, and where the link is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ceiling: Vec<CeilingPoint>,
    /// Why what the network allows is known for no cell, in words; absent where it is known for
    /// one, or none was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_missing: Option<String>,
    /// Conclusion from the cells of each payload.
    pub rows: Vec<Row>,
    /// Idle connections.
    pub idle: Option<Idle>,
    /// Requirements of a C10K or of a wanted latency.
    pub passes: Vec<Pass>,
    /// One sentence for each chapter: baseline, isolation, whole picture; absent for one that was
    /// not run.
    pub sentences: [Option<String>; 3],
    /// Further remarks, for instance that two environments are mixed.
    pub notes: Vec<String>,
}
