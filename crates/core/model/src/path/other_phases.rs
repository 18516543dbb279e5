//! Datagrams, requests and searches for the highest rate.

use serde::{Deserialize, Serialize};

use super::Delay;
use super::{LossByPlace, PathDirection, PhaseKind};

/// Paced datagrams of one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_per_s: Option<f64>,
    /// Datagrams by place.
    pub loss: LossByPlace,
    /// Share that arrived behind a later one, 0 to 1, RFC 4737; against a server of iperf3 with
    /// those that arrived twice.
    pub reordered_share: f64,
    /// Largest number of later datagrams that arrived before one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reordering_extent: Option<u64>,
    /// Share that arrived more than once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate_share: Option<f64>,
    /// Most datagrams missing in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_loss_burst: Option<u64>,
    /// Jitter, RFC 3550, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<u64>,
    /// Lateness of sends against their schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Delay>,
    /// Gaps between datagrams that arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaps: Option<Delay>,
    /// Most datagrams that arrived together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_train: Option<u64>,
}

impl Datagrams {
    /// Datagrams of which nothing but their loss is known.
    pub const fn new(kind: PhaseKind, direction: PathDirection, loss: LossByPlace) -> Self {
        Self {
            kind,
            direction,
            sent_bps: 0.0,
            received_bps: 0.0,
            received_per_s: None,
            loss,
            reordered_share: 0.0,
            reordering_extent: None,
            duplicate_share: None,
            longest_loss_burst: None,
            jitter_ns: None,
            lateness: None,
            gaps: None,
            longest_train: None,
        }
    }
}

/// Requests and responses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cpu_ns: Option<u64>,
    /// CPU time of the server's process per transaction, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu_ns: Option<u64>,
}

impl Transactions {
    /// `per_s` transactions per second over `flows` connections or flows.
    pub const fn new(kind: PhaseKind, flows: u32, per_s: f64, latency: Delay) -> Self {
        Self {
            kind,
            flows,
            per_s,
            latency,
            client_cpu_ns: None,
            server_cpu_ns: None,
        }
    }
}

/// A search for the highest rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RateLadder {
    /// `cps`, `pps` or `capacity`.
    pub kind: PhaseKind,
    /// Direction of datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<PathDirection>,
    /// Highest clean rate: connections or datagrams per second, or bit/s of IP packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub highest: Option<f64>,
    /// Rates tried, and the share that failed.
    pub steps: Vec<(f64, f64)>,
    /// What limits it, one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
