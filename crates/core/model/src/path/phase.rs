//! Phases of an examination: what both ends agree on, and what an end measured.

use std::net::IpAddr;
use std::time::Duration;

use linerate_macros::{sparse, stored};
use serde::{Deserialize, Serialize};

use super::{HopAnswers, LoadSample, PathDirection, PhaseKind, StreamTotals};

/// Transport of a load.
#[stored(Copy, Default, Eq)]
pub enum PhaseTransport {
    /// TCP.
    #[default]
    Tcp,
    /// Multipath TCP.
    Mptcp,
    /// TLS 1.3 over TCP.
    Tls,
    /// UDP.
    Udp,
}

/// Parameters of a phase that both ends agree on; sent to the server.
#[sparse]
#[stored(Default)]
pub struct PhaseSpec {
    /// Subject of the measurement.
    pub kind: PhaseKind,
    /// Direction of the datagrams of `datagrams`, `pps`, `pace` and `capacity`; absent for other
    /// kinds, whose name is their direction.
    pub direction: Option<PathDirection>,
    /// Transport of the load or of the transactions.
    pub transport: PhaseTransport,
    /// Most streams per direction; 0 for a phase without load.
    pub streams_max: u32,
    /// Probe flows over UDP.
    pub probe_flows: u32,
    /// Longest time of the phase; the server ends it then.
    #[serde(rename = "duration_max_ns", with = "crate::units::whole_ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub duration_max: Duration,
    /// Rate of each direction in bit/s: payload of a stream, IP packets of datagrams.
    pub rate_bps: Option<u64>,
    /// New connections per second of a step of `cps`.
    pub connections_per_s: Option<u64>,
    /// UDP payload of a datagram in bytes; 0 without datagrams.
    #[serde(default)]
    pub datagram_bytes: u32,
    /// Most bytes per direction that the phase moves.
    pub bytes_max: Option<u64>,
    /// Congestion control of the server's streams.
    pub congestion: Option<String>,
    /// DSCP of load and probes, 0 to 63.
    #[serde(default)]
    pub dscp: u8,
    /// Load without frames.
    #[serde(default)]
    pub raw: bool,
    /// Both ends trace the hops of the path meanwhile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hops: bool,
    /// Requests and responses of `rr` and `crr`.
    pub transaction: Option<TransactionSpec>,
}

/// Sizes of a transaction.
#[stored(Copy, Eq)]
pub struct TransactionSpec {
    /// Bytes of a request.
    pub request_bytes: u32,
    /// Bytes of a response.
    pub response_bytes: u32,
}

/// One round trip of a probe. Times are monotonic clocks of the two ends, in ns; each end has its
/// own zero.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ProbeSample {
    /// When the probe left this end (t1).
    pub sent_ns: u64,
    /// When it arrived at the other end (t2); absent where the other end does not report it.
    pub peer_received_ns: Option<u64>,
    /// When the reply left the other end (t3).
    pub peer_sent_ns: Option<u64>,
    /// When the reply arrived (t4); absent of one that was lost.
    pub received_ns: Option<u64>,
}

impl ProbeSample {
    /// Round trip without the time at the other end, RFC 8762: (t4 - t1) - (t3 - t2). `None` of one
    /// that was lost.
    pub fn rtt_ns(&self) -> Option<i64> {
        let whole = signed(self.received_ns?) - signed(self.sent_ns);
        let inside = match (self.peer_received_ns, self.peer_sent_ns) {
            (Some(received), Some(sent)) => signed(sent) - signed(received),
            // Without the other end's times its own delay is a part of the round trip.
            _ => 0,
        };
        Some(whole - inside)
    }
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// Round trips over new connections, each a sample of its own kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ConcurrentProbes {
    /// TCP handshakes.
    pub tcp: Vec<ProbeSample>,
    /// TLS handshakes, one round trip each.
    pub tls: Vec<ProbeSample>,
    /// Echo of one message over the connection made.
    pub echo: Vec<ProbeSample>,
}

/// Datagrams of one direction by the place where they were lost. The parts add up to what is
/// missing. A place without a counter is absent, and its losses are among those of `network`.
#[stored(Default, Eq)]
pub struct LossByPlace {
    /// Datagrams that the program handed to its kernel.
    pub sent: u64,
    /// Distinct datagrams that arrived.
    pub received: u64,
    /// Dropped by the sending host: send errors and its own queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<u64>,
    /// Dropped between the hosts, or at a place without a counter.
    pub network: u64,
    /// Dropped by the receiving host before a socket: NIC and packet backlog. Shared counters: at
    /// most this many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nic: Option<u64>,
    /// Dropped for lack of room in the receiving socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<u64>,
    /// Places whose count is exact and not a bound: `sender`, `network`, `nic`, `socket`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exact: Vec<String>,
}

/// Measurements of one end in a phase.
#[sparse(Vec)]
#[stored(Default)]
pub struct EndpointPhase {
    /// Length of the phase at this end in ns.
    pub elapsed_ns: u64,
    /// Load over time, on a grid of 100 ms, at most 6,000 samples.
    pub load: Vec<LoadSample>,
    /// Streams of the load.
    pub streams: Vec<StreamTotals>,
    /// Subflows of its Multipath TCP connections at the end of the phase.
    pub subflows: Vec<super::SubflowRow>,
    /// Datagrams that this end sent.
    #[serde(default)]
    pub datagrams_sent: u64,
    /// Send calls for datagrams that the kernel refused.
    #[serde(default)]
    pub send_errors: u64,
    /// Distinct datagrams that arrived at this end.
    #[serde(default)]
    pub datagrams_received: u64,
    /// Datagrams that arrived behind a later one, RFC 4737.
    #[serde(default)]
    pub reordered: u64,
    /// Largest number of later datagrams that arrived before one of them, RFC 4737 section 4.2.2.
    #[serde(default)]
    pub reordering_extent: u64,
    /// Datagrams that arrived more than once.
    #[serde(default)]
    pub duplicates: u64,
    /// Most datagrams missing in a row.
    #[serde(default)]
    pub longest_loss_burst: u64,
    /// Jitter of the datagrams that arrived, RFC 3550 section 6.4.1, ns.
    pub jitter_ns: Option<u64>,
    /// Drops of the receiving socket (`SK_MEMINFO_DROPS`, sock_diag(7)).
    pub socket_drops: Option<u64>,
    /// Drops of NIC and packet backlog of this host meanwhile.
    pub host_drops: Option<u64>,
    /// Drops of the queueing discipline of this host meanwhile.
    pub qdisc_drops: Option<u64>,
    /// Connections that this host dropped meanwhile because an accept queue was full
    /// (`ListenOverflows`).
    pub accept_queue_drops: Option<u64>,
    /// Connections that this host dropped meanwhile because a queue of half-open ones was full
    /// (`TCPReqQFullDrop`).
    pub syn_queue_drops: Option<u64>,
    /// Packets that connection tracking of this host dropped meanwhile.
    pub conntrack_drops: Option<u64>,
    /// Lateness of sends against their schedule.
    pub lateness: Option<super::Delay>,
    /// Gaps between datagrams that arrived.
    pub gaps: Option<super::Delay>,
    /// Most datagrams that arrived together: at most a tenth of their gap apart.
    pub longest_train: Option<u64>,
    /// Completed transactions of a client; may be more than the samples that are kept.
    pub transactions: Option<u64>,
    /// Most other tests that a server ran at the same time until the end of the phase; absent of a
    /// client.
    pub concurrent_max: Option<u32>,
    /// CPU time of this process meanwhile, ns.
    #[serde(default)]
    pub cpu_ns: u64,
    /// Answers of the hops of the path, from this end, by distance.
    pub hops: Vec<HopAnswers>,
    /// Failures of parts of it, one sentence each.
    pub notes: Vec<String>,
}

/// Outcome of datagrams of one size.
#[stored(Copy, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum SizeSignal {
    /// The sending host's own interface has this MTU.
    Interface,
    /// A message of ICMP states the limit.
    Reported,
    /// Larger datagrams disappear without a message.
    BlackHole,
    /// The largest size that was tried passes.
    Unlimited,
}

/// Largest IP packet of one direction.
#[stored(Copy, Eq)]
pub struct SizeResult {
    /// In bytes with the IP header.
    pub mtu: u32,
    /// Evidence of the limit.
    pub how: SizeSignal,
    /// Router that reported it; absent for other evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_by: Option<IpAddr>,
}

/// Result of a phase, both ends together, before it is judged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseResult {
    /// Agreed parameters.
    pub spec: PhaseSpec,
    /// When the phase started: monotonic clock of this end in ns, as in [`ProbeSample::sent_ns`].
    /// For a phase with load the moment from which [`LoadSample::at_ns`] counts.
    #[serde(default)]
    pub started_ns: u64,
    /// Control of its load; absent without load.
    #[serde(default)]
    pub load: Option<super::LoadOutcome>,
    /// The queue of the load was empty before the next phase; absent without probes.
    #[serde(default)]
    pub is_drained: Option<bool>,
    /// This end.
    pub local: EndpointPhase,
    /// The other end; absent if it did not send it.
    pub remote: Option<EndpointPhase>,
    /// UDP probes.
    pub udp: Vec<ProbeSample>,
    /// UDP probes of further flows, by DSCP.
    pub udp_by_dscp: Vec<(u8, Vec<ProbeSample>)>,
    /// Probes over new connections.
    pub foreign: ConcurrentProbes,
    /// Echoes within the streams of the load.
    pub in_band: Vec<ProbeSample>,
    /// Path MTU found, by direction.
    pub size: Vec<(PathDirection, SizeResult)>,
    /// TOS bytes of IP headers: direction, as sent, as received.
    pub tos: Vec<(PathDirection, u8, u8)>,
    /// Transactions: completed ones.
    pub transactions: Vec<ProbeSample>,
    /// Streams and connections that the server refused, for which a part of the phase lacks.
    #[serde(default)]
    pub refused: u64,
    /// Why a part is missing: figure and reason.
    pub absent: Vec<(String, String)>,
}

impl PhaseResult {
    /// Result of a phase that begins.
    pub fn of(spec: PhaseSpec) -> Self {
        Self {
            spec,
            ..Self::default()
        }
    }
}
