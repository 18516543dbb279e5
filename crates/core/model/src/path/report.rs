//! What an examination of a path found: `linerate.path/1`.

use std::collections::BTreeMap;

use linerate_macros::{sparse, stored};

use super::PathHops;
use super::PhaseKind;
use super::clock::ClockEstimate;
use super::load_phase::LoadPhase;
use super::other_phases::{Datagrams, RateLadder, Transactions};
use super::packets::{Marks, PathMtu};
use super::stamp::StampResult;
use super::target::PathTarget;
use super::{Delay, Profile};

/// Schema name of a [`PathReport`].
pub const PATH_SCHEMA: &str = "linerate.path/1";

/// How good a path is, and between whom. Absent values have a reason in [`PathReport::absent`].
#[sparse(Vec)]
#[stored(Default)]
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
    pub concurrent_max: Option<u32>,
    /// Number of times that the control connection was re-established.
    pub resumed: u32,
    /// The other end.
    pub target: PathTarget,
    /// Relation of the two clocks.
    pub clock: Option<ClockEstimate>,
    /// Largest packets.
    #[serde(default)]
    pub size: PathMtu,
    /// What becomes of DSCP and ECN.
    pub marks: Option<Marks>,
    /// Hops of the path, and the queues at them.
    #[serde(flatten)]
    pub path: PathHops,
    /// Without load.
    pub idle: Option<IdleDelays>,
    /// What only a STAMP session shows.
    pub stamp: Option<StampResult>,
    /// Under load.
    pub phases: Vec<LoadPhase>,
    /// Paced datagrams, by direction.
    pub datagrams: Vec<Datagrams>,
    /// Requests and responses.
    pub transactions: Vec<Transactions>,
    /// Ladders of connections or datagrams per second, and capacity.
    pub ladders: Vec<RateLadder>,
    /// By how much the load delays others.
    pub grade: Option<Grade>,
    /// Quality of a call, ITU-T G.107.
    pub voice: Option<CallQuality>,
    /// What could not be measured and why. The keys are those of [`absent`](super::absent) or names
    /// of phases.
    #[serde(default)]
    pub absent: BTreeMap<String, String>,
}

impl PathReport {
    /// A report that has measured nothing of the path to `target` yet.
    pub fn new(state: PathState, profile: Profile, target: PathTarget) -> Self {
        Self {
            schema: PATH_SCHEMA.to_owned(),
            state,
            profile,
            target,
            ..Self::default()
        }
    }
}

/// Whether an examination reached its end.
#[stored(Copy, Default, Eq)]
pub enum PathState {
    /// All phases.
    Complete,
    /// The user ended it, or a phase failed.
    #[default]
    Partial,
}

/// Delays without load.
#[sparse(Vec)]
#[stored(Default)]
pub struct IdleDelays {
    /// Round trip of UDP probes, or of what [`PathReport::grade`] names.
    pub rtt: Option<Delay>,
    /// Client to server.
    pub one_way_up: Option<Delay>,
    /// Server to client.
    pub one_way_down: Option<Delay>,
    /// TCP handshakes.
    pub tcp: Option<Delay>,
    /// TLS handshakes, per round trip.
    pub tls: Option<Delay>,
    /// Echo over a new connection.
    pub echo: Option<Delay>,
    /// Jitter of the probes, RFC 3550, ns.
    pub jitter_ns: Option<u64>,
    /// Round trips per minute.
    pub rpm: Option<f64>,
    /// Round trips over time, as those of [`LoadPhase::rtt_series`].
    pub rtt_series: Vec<(u64, Option<i64>)>,
}

/// What measured a delay.
#[stored(Copy, Eq)]
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
#[stored(Eq)]
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

/// Quality of a call with G.711 and packet loss concealment, ITU-T G.107: mean opinion score, 1 to
/// 4.5.
#[sparse]
#[stored(Copy, Default)]
pub struct CallQuality {
    /// Without load.
    pub idle_mos: Option<f64>,
    /// Under load, the worse direction.
    pub loaded_mos: Option<f64>,
}
