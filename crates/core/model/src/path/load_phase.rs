//! A load: its rates, and the delays under it.

use linerate_macros::{sparse, stored};

use super::Delay;
use super::{LoadSample, PhaseKind, StreamTotals, SubflowRow};

/// How far a figure can be trusted, draft-ietf-ippm-responsiveness.
#[stored(Copy, Default, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// Fewer intervals than the moving average needs.
    #[default]
    Low,
    /// Rate or responsiveness had not become stable, or other tests ran beside it.
    Medium,
    /// Both were stable.
    High,
}

/// What the rate cannot exceed.
#[stored]
pub struct RateCeiling {
    /// Payload in bit/s.
    pub rate_bps: f64,
    /// `link`, `far-link`, `shaper`, `receive-window`, `send-buffer`, `rate`.
    pub by: String,
}

/// Load in one or both directions.
#[sparse(Vec)]
#[stored(Default)]
pub struct LoadPhase {
    /// `down`, `up` or `both`.
    pub kind: PhaseKind,
    /// How far its values can be trusted.
    pub confidence: Confidence,
    /// Where the method differs from the draft.
    pub deviations: Vec<String>,
    /// Streams per direction at the end.
    pub streams: u32,
    /// Payload from server to client in bit/s, at its receiver.
    pub down_bps: Option<f64>,
    /// Payload from client to server in bit/s, at its receiver.
    pub up_bps: Option<f64>,
    /// The same with one stream, of a phase with one direction.
    pub single_stream_bps: Option<f64>,
    /// What the rate cannot exceed.
    pub ceiling: Option<RateCeiling>,
    /// Segments that the client retransmitted.
    pub up_retransmits: Option<u64>,
    /// Segments that the server retransmitted.
    pub down_retransmits: Option<u64>,
    /// Round trip of UDP probes under load.
    pub rtt: Option<Delay>,
    /// Increase of its median over that without load, ns.
    pub added_p50_ns: Option<i64>,
    /// Delay above the smallest of its direction, client to server.
    pub queue_up: Option<Delay>,
    /// Delay above the smallest of its direction, server to client.
    pub queue_down: Option<Delay>,
    /// Responsiveness in round trips per minute, draft-ietf-ippm-responsiveness-09: mean of the
    /// next two.
    pub rpm: Option<f64>,
    /// Of probes over new connections.
    pub rpm_foreign: Option<f64>,
    /// Of echoes in the load's own streams.
    pub rpm_self: Option<f64>,
    /// Round trips per minute of the mean of both kinds of round trip, as goresponsiveness computes
    /// it.
    pub rpm_mean_rtt: Option<f64>,
    /// TCP handshakes under load.
    pub tcp: Option<Delay>,
    /// TLS handshakes under load, per round trip.
    pub tls: Option<Delay>,
    /// Echo over a new connection under load.
    pub echo: Option<Delay>,
    /// Echo within the streams of the load.
    pub in_band: Option<Delay>,
    /// UDP probes of further DSCPs.
    pub by_dscp: Vec<(u8, Delay)>,
    /// Streams at this end.
    pub stream_info: Vec<StreamTotals>,
    /// Subflows of Multipath TCP.
    pub subflows: Vec<SubflowRow>,
    /// Load over time, of the receiver of each direction.
    pub series: Vec<LoadSample>,
    /// Round trips of UDP probes over time: ns since the start of the phase, ns; lost ones are
    /// absent.
    pub rtt_series: Vec<(u64, Option<i64>)>,
    /// CPU time of both processes per second of the phase: this end, the other end.
    pub cpu_cores: Option<(f64, Option<f64>)>,
}

impl LoadPhase {
    /// A load that has measured nothing yet.
    pub fn new(kind: PhaseKind, confidence: Confidence) -> Self {
        Self {
            kind,
            confidence,
            ..Self::default()
        }
    }
}
