//! A setting of a sweep, why it is worse than another, and what a sweep found.

mod result;

use linerate_macros::stored;

pub use result::{
    Cost, Degradation, FactorResult, FailedLevel, HostIdentity, Leader, Level, Objective,
    PlannedFactor, PlateauSide, Provenance, Recommendation, RunMetrics, SettingLevels, Sweep,
    SweepPlan,
};

/// A setting with the medians of its runs.
#[stored(Default)]
pub struct SettingFacts {
    /// Streams.
    pub streams: u32,
    /// Requested socket buffer in bytes.
    pub requested_window_bytes: Option<u64>,
    /// Rate limit of each stream at the sender, in bit/s.
    pub stream_rate_bps: Option<u64>,
    /// What its runs measured.
    #[serde(flatten)]
    pub metrics: RunMetrics,
}

/// The hosts.
#[stored(Copy, Eq, Default)]
pub struct Hosts {
    /// Cores the client may use.
    pub client_cores: Option<u32>,
    /// Cores of the server, where it reports them.
    pub server_cores: Option<u32>,
    /// Client and server run on the same host and share its cores.
    pub is_same_host: bool,
}

/// Why a setting is worse than the best one, or what limits the best one.
#[stored]
pub struct Reason {
    /// Its name for programs: `window-below-bdp`.
    #[serde(rename = "reason")]
    pub name: ReasonName,
    /// The reason with its values.
    pub sentence: String,
    /// The values of `window-below-bdp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowDeficit>,
}

impl Reason {
    /// A reason without the values of a window.
    pub fn new(name: ReasonName, sentence: impl Into<String>) -> Self {
        Self {
            name,
            sentence: sentence.into(),
            window: None,
        }
    }
}

/// Names of reasons.
#[stored(Copy, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum ReasonName {
    /// The sender reached the rate it was given.
    SenderLimited,
    /// The sender could not send what it wanted to.
    SenderBackPressure,
    /// The window is below the bandwidth-delay product.
    WindowBelowBdp,
    /// The senders wait for room in their send buffers.
    SendBuffer,
    /// More streams than CPUs.
    StreamsBeyondCores,
    /// All CPUs of a host are busy.
    CoresBusy,
    /// One CPU is fully used.
    CoreSaturated,
    /// More segments were sent again.
    RetransmitsRise,
    /// Datagrams were lost.
    Loss,
    /// The facts allow no reason.
    NotKnown,
}

/// A window below the bandwidth-delay product.
#[stored(Copy)]
pub struct WindowDeficit {
    /// The window in bytes.
    pub window_bytes: u64,
    /// Round-trip time with it, in µs.
    pub rtt_us: f64,
    /// Payload that each stream has to carry for the total of the best setting, in bit/s.
    pub stream_rate_bps: f64,
    /// Bandwidth-delay product of the two, in bytes.
    pub bdp_bytes: f64,
}

impl WindowDeficit {
    /// The window of one stream, with the bandwidth-delay product of its rate and its round trip.
    pub const fn new(window_bytes: u64, rtt_us: f64, stream_rate_bps: f64) -> Self {
        Self {
            window_bytes,
            rtt_us,
            stream_rate_bps,
            bdp_bytes: stream_rate_bps / 8.0 * rtt_us / 1e6,
        }
    }
}

/// Rules that give the reasons: why a setting is worse than `best`, or without `best` what limits
/// it.
pub type ReasonRules =
    fn(best: Option<&SettingFacts>, here: &SettingFacts, hosts: &Hosts) -> Vec<Reason>;
