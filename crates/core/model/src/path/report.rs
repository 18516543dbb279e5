//! What an examination of a path found: `linerate.path/1`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::phase::{LoadSample, LossByPlace, PathDirection, PhaseKind, SizeResult, StreamTotals};
use super::{Delay, Profile};

/// Schema name of a [`PathReport`].
pub const PATH_SCHEMA: &str = "linerate.path/1";

/// How good a path is, and between whom. Absent values have a reason in [`PathReport::absent`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct PathReport {
    /// Always [`PATH_SCHEMA`].
    pub schema: String,
    /// Whether it reached its end.
    pub state: PathState,
    /// Time and data that it was allowed.
    pub profile: Profile,
    /// From start to end in ns.
    pub elapsed_ns: u64,
    /// Payload of all phases from this end.
    pub bytes_sent: u64,
    /// Payload of all phases to this end.
    pub bytes_received: u64,
    /// Most tests of the server at the same time, this one not counted; absent where the server
    /// does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrent_max: Option<u32>,
    /// Number of times that the control connection was re-established.
    pub resumed: u32,
    /// The other end.
    pub target: PathTarget,
    /// Relation of the two clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockEstimate>,
    /// Largest packets.
    #[serde(default)]
    pub size: PathMtu,
    /// What becomes of DSCP and ECN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marks: Option<Marks>,
    /// Without load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<IdleDelays>,
    /// Under load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<LoadPhase>,
    /// Paced datagrams, by direction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub datagrams: Vec<Datagrams>,
    /// Requests and responses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transactions: Vec<Transactions>,
    /// Ladders of connections or datagrams per second, and capacity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ladders: Vec<RateLadder>,
    /// By how much the load delays others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grade: Option<Grade>,
    /// Quality of a call, ITU-T G.107.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voice: Option<Voice>,
    /// What could not be measured and why. The keys are those of [`absent`](super::absent) or names
    /// of phases.
    #[serde(default)]
    pub absent: BTreeMap<String, String>,
}

impl PathReport {
    /// A report that has measured nothing of the path to `target` yet.
    #[must_use]
    pub fn new(state: PathState, profile: Profile, target: PathTarget) -> Self {
        Self {
            schema: PATH_SCHEMA.to_owned(),
            state,
            profile,
            elapsed_ns: 0,
            bytes_sent: 0,
            bytes_received: 0,
            concurrent_max: None,
            resumed: 0,
            target,
            clock: None,
            size: PathMtu::default(),
            marks: None,
            idle: None,
            phases: Vec::new(),
            datagrams: Vec::new(),
            transactions: Vec::new(),
            ladders: Vec::new(),
            grade: None,
            voice: None,
            absent: BTreeMap::new(),
        }
    }
}

/// Whether an examination reached its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PathState {
    /// All phases.
    Complete,
    /// The user ended it, or a phase failed.
    Partial,
}

/// The other end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct PathTarget {
    /// As the user named it.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Address that was reached.
    pub address: String,
    /// `ipv4` or `ipv6`.
    pub family: String,
    /// Protocol of the control connection.
    pub dialect: Dialect,
    /// Program of the other end as it names itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// What is known of the server's identity.
    pub identity: Identity,
    /// Fingerprint of its key: `sha256:…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Time of the TCP handshake of the control connection, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_ns: Option<u64>,
}

impl PathTarget {
    /// A server that was reached at `address` and has not proved its identity.
    #[must_use]
    pub fn new(host: impl Into<String>, port: u16, address: IpAddr, dialect: Dialect) -> Self {
        Self {
            host: host.into(),
            port,
            address: address.to_string(),
            family: if address.is_ipv6() { "ipv6" } else { "ipv4" }.to_owned(),
            dialect,
            program: None,
            identity: Identity::Unproven,
            fingerprint: None,
            connect_ns: None,
        }
    }
}

/// Protocol of an examination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// `linerate/1`.
    Native,
    /// That of iperf3; what only linerate measures is absent.
    Iperf3,
    /// That of a speed test, whose report was imported.
    SpeedTest,
}

/// What is known of the server's identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Identity {
    /// Its key is the one of earlier tests.
    Known,
    /// Its key is the one that the user named.
    Pinned,
    /// It proved that it knows the token.
    Token,
    /// First contact; the key is remembered.
    New,
    /// Nothing.
    Unproven,
}

/// How two clocks were compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ClockMethod {
    /// Both ends read the clock of one kernel.
    OneClock,
    /// Both kernels keep to a time source and state their error (adjtimex(2)).
    Disciplined,
    /// By the bounds that all probes set.
    Exchange,
}

/// Relation of the other end's clock to this one's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ClockEstimate {
    /// How it is known.
    pub method: ClockMethod,
    /// The other clock minus this one, ns.
    pub offset_ns: i64,
    /// The true offset differs by at most this, ns.
    pub error_ns: u64,
    /// How much faster the other clock runs, parts per 10^9.
    pub skew_ppb: i64,
}

impl ClockEstimate {
    /// A clock that runs as fast as this one.
    #[must_use]
    pub const fn new(method: ClockMethod, offset_ns: i64, error_ns: u64) -> Self {
        Self {
            method,
            offset_ns,
            error_ns,
            skew_ppb: 0,
        }
    }
}

/// Largest packets by direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct PathMtu {
    /// From client to server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<SizeResult>,
    /// From server to client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<SizeResult>,
}

/// What becomes of marks in the IP header.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Marks {
    /// Per direction and DSCP sent: what arrived.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dscp: Vec<(PathDirection, u8, u8)>,
    /// Per direction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ecn: Vec<(PathDirection, EcnTreatment)>,
}

/// What becomes of the ECN field, RFC 3168.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EcnTreatment {
    /// Arrives as it was sent.
    Kept,
    /// Arrives as not capable.
    Cleared,
    /// Arrives with another code point.
    Changed,
}

/// Delays without load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct IdleDelays {
    /// Round trip of UDP probes, or of what [`PathReport::grade`] names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<Delay>,
    /// Client to server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way_up: Option<Delay>,
    /// Server to client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way_down: Option<Delay>,
    /// TCP handshakes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<Delay>,
    /// TLS handshakes, per round trip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Delay>,
    /// Echo over a new connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo: Option<Delay>,
    /// Jitter of the probes, RFC 3550, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<u64>,
    /// Round trips per minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpm: Option<f64>,
}

/// How far a figure can be trusted, draft-ietf-ippm-responsiveness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Fewer intervals than the moving average needs.
    Low,
    /// Rate or responsiveness had not become stable, or other tests ran beside it.
    Medium,
    /// Both were stable.
    High,
}

/// What the rate cannot exceed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RateCeiling {
    /// Payload in bit/s.
    pub rate_bps: f64,
    /// `link`, `far-link`, `shaper`, `receive-window`, `send-buffer`, `rate`.
    pub by: String,
}

impl RateCeiling {
    /// A ceiling in bit/s of payload.
    #[must_use]
    pub fn new(rate_bps: f64, by: impl Into<String>) -> Self {
        Self {
            rate_bps,
            by: by.into(),
        }
    }
}

/// Load in one or both directions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct LoadPhase {
    /// `down`, `up` or `both`.
    pub kind: PhaseKind,
    /// How far its values can be trusted.
    pub confidence: Confidence,
    /// Where the method differs from the draft.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deviations: Vec<String>,
    /// Streams per direction at the end.
    pub streams: u32,
    /// Payload from server to client in bit/s, at its receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down_bps: Option<f64>,
    /// Payload from client to server in bit/s, at its receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_bps: Option<f64>,
    /// The same with one stream, of a phase with one direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub single_stream_bps: Option<f64>,
    /// What the rate cannot exceed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<RateCeiling>,
    /// Segments that the client retransmitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_retransmits: Option<u64>,
    /// Segments that the server retransmitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down_retransmits: Option<u64>,
    /// Round trip of UDP probes under load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<Delay>,
    /// Increase of its median over that without load, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_p50_ns: Option<i64>,
    /// Delay above the smallest of its direction, client to server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_up: Option<Delay>,
    /// Delay above the smallest of its direction, server to client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_down: Option<Delay>,
    /// Responsiveness in round trips per minute, draft-ietf-ippm-responsiveness-09: mean of the
    /// next two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpm: Option<f64>,
    /// Of probes over new connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpm_foreign: Option<f64>,
    /// Of echoes in the load's own streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpm_self: Option<f64>,
    /// Round trips per minute of the mean of both kinds of round trip, as goresponsiveness computes
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpm_mean_rtt: Option<f64>,
    /// TCP handshakes under load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<Delay>,
    /// TLS handshakes under load, per round trip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Delay>,
    /// Echo over a new connection under load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo: Option<Delay>,
    /// Echo within the streams of the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_band: Option<Delay>,
    /// UDP probes of further DSCPs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_dscp: Vec<(u8, Delay)>,
    /// Streams at this end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stream_info: Vec<StreamTotals>,
    /// Subflows of Multipath TCP.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subflows: Vec<SubflowRow>,
    /// Load over time, of the receiver of each direction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<LoadSample>,
    /// Round trips of UDP probes over time: ns since the start of the phase, ns; lost ones are
    /// absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rtt_series: Vec<(u64, Option<i64>)>,
    /// CPU time of both processes per second of the phase: this end, the other end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_cores: Option<(f64, Option<f64>)>,
}

impl LoadPhase {
    /// A load that has measured nothing yet.
    #[must_use]
    pub const fn new(kind: PhaseKind, confidence: Confidence) -> Self {
        Self {
            kind,
            confidence,
            deviations: Vec::new(),
            streams: 0,
            down_bps: None,
            up_bps: None,
            single_stream_bps: None,
            ceiling: None,
            up_retransmits: None,
            down_retransmits: None,
            rtt: None,
            added_p50_ns: None,
            queue_up: None,
            queue_down: None,
            rpm: None,
            rpm_foreign: None,
            rpm_self: None,
            rpm_mean_rtt: None,
            tcp: None,
            tls: None,
            echo: None,
            in_band: None,
            by_dscp: Vec::new(),
            stream_info: Vec::new(),
            subflows: Vec::new(),
            series: Vec::new(),
            rtt_series: Vec::new(),
            cpu_cores: None,
        }
    }
}

/// One subflow of a Multipath TCP connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SubflowRow {
    /// Number of the stream.
    pub stream: u32,
    /// Local address.
    pub local: String,
    /// Remote address.
    pub remote: String,
    /// Bytes that its sender saw acknowledged; at a receiver those that arrived.
    pub bytes: u64,
    /// Its part of the bytes of the stream, 0 to 1.
    pub share: f64,
    /// Smoothed round trip in µs.
    pub rtt_us: u32,
    /// Segments sent again.
    pub retransmits: u32,
    /// Used only when no other subflow is; absent where the kernel does not report it (no socket
    /// option does).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_backup: Option<bool>,
}

impl SubflowRow {
    /// A subflow of the stream `stream` between two addresses that has moved nothing.
    #[must_use]
    pub fn new(stream: u32, local: impl Into<String>, remote: impl Into<String>) -> Self {
        Self {
            stream,
            local: local.into(),
            remote: remote.into(),
            bytes: 0,
            share: 0.0,
            rtt_us: 0,
            retransmits: 0,
            is_backup: None,
        }
    }
}

/// Paced datagrams of one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
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
    #[must_use]
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
#[non_exhaustive]
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
    #[must_use]
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
#[non_exhaustive]
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
    #[must_use]
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

/// What measured a delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProbeKind {
    /// UDP probes of linerate.
    Udp,
    /// ICMP echo.
    Icmp,
    /// TCP handshakes.
    Tcp,
    /// TCP handshakes of connections beside the test, which a busy iperf3 server refuses.
    Busy,
}

/// By how much load delays others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Grade {
    /// `A+`, `A`, `B`, `C`, `D` or `F`.
    pub letter: String,
    /// The load that adds most to the delay; absent in reports of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<PhaseKind>,
    /// What that load adds to the median round trip, ns.
    pub added_ns: i64,
    /// What measured it.
    pub probe: ProbeKind,
}

impl Grade {
    /// A grade for a `load` that adds `added_ns` to the median round trip.
    #[must_use]
    pub fn new(
        letter: impl Into<String>,
        load: PhaseKind,
        added_ns: i64,
        probe: ProbeKind,
    ) -> Self {
        Self {
            letter: letter.into(),
            load: Some(load),
            added_ns,
            probe,
        }
    }
}

/// Quality of a call with G.711 and packet loss concealment, ITU-T G.107: mean opinion score, 1 to
/// 4.5.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Voice {
    /// Without load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_mos: Option<f64>,
    /// Under load, the worse direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded_mos: Option<f64>,
}
