//! Datagrams, requests and searches for the highest rate.

use linerate_macros::{sparse, stored};

use super::Delay;
use super::{LossByPlace, PathDirection, PhaseKind};

/// Paced datagrams of one direction.
#[sparse]
#[stored]
pub struct Datagrams {
    /// `datagrams`, `pps` or `pace`.
    pub kind: PhaseKind,
    /// Their direction.
    pub direction: PathDirection,
    /// IP packets sent, bit/s.
    pub sent_bps: f64,
    /// IP packets that arrived, bit/s.
    pub received_bps: f64,
    /// Datagrams that arrived per second.
    pub received_per_s: Option<f64>,
    /// Datagrams by place.
    pub loss: LossByPlace,
    /// Share that arrived behind a later one, 0 to 1, RFC 4737; against a server of iperf3 with
    /// those that arrived twice.
    pub reordered_share: f64,
    /// Largest number of later datagrams that arrived before one of them.
    pub reordering_extent: Option<u64>,
    /// Share that arrived more than once.
    pub duplicate_share: Option<f64>,
    /// Most datagrams missing in a row.
    pub longest_loss_burst: Option<u64>,
    /// Jitter, RFC 3550, ns.
    pub jitter_ns: Option<u64>,
    /// Lateness of sends against their schedule.
    pub lateness: Option<Delay>,
    /// Gaps between datagrams that arrived.
    pub gaps: Option<Delay>,
    /// Most datagrams that arrived together.
    pub longest_train: Option<u64>,
}

/// Requests and responses.
#[sparse]
#[stored]
pub struct Transactions {
    /// `rr` or `crr`.
    pub kind: PhaseKind,
    /// Connections or flows at the same time.
    pub flows: u32,
    /// Completed per second.
    pub per_s: f64,
    /// From request to response.
    pub latency: Delay,
    /// CPU time of this process per transaction, ns.
    pub client_cpu_ns: Option<u64>,
    /// CPU time of the server's process per transaction, ns.
    pub server_cpu_ns: Option<u64>,
}

/// A search for the highest rate.
#[sparse]
#[stored]
pub struct RateLadder {
    /// `cps`, `pps` or `capacity`.
    pub kind: PhaseKind,
    /// Direction of datagrams.
    pub direction: Option<PathDirection>,
    /// Highest clean rate: connections or datagrams per second, or bit/s of IP packets.
    pub highest: Option<f64>,
    /// Rates tried, and the share that failed.
    pub steps: Vec<(f64, f64)>,
    /// What limits it, one sentence.
    pub limit: Option<String>,
}

impl RateLadder {
    /// Rates that were tried, each with the share that failed.
    pub const fn new(
        kind: PhaseKind,
        direction: Option<PathDirection>,
        steps: Vec<(f64, f64)>,
    ) -> Self {
        Self {
            kind,
            direction,
            highest: None,
            steps,
            limit: None,
        }
    }
}
