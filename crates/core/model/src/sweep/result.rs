//! Result of a sweep: every value its reports show but those of its runs, which are trials of the
//! record.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use linerate_macros::{sparse, stored};

use super::Reason;
use crate::numbers::Interval;

/// The level of every factor by the name of the factor, both as on a command line.
pub type SettingLevels = BTreeMap<String, String>;

/// A sweep and what it found.
#[sparse]
#[stored]
pub struct Sweep {
    /// The plan.
    pub plan: SweepPlan,
    /// When it was run, and between which hosts.
    pub provenance: Provenance,
    /// The values count CPU time of the client alone, because the server does not report its own.
    pub is_client_cpu_only: bool,
    /// Estimated beforehand.
    pub estimate: Cost,
    /// Time and data that it took.
    pub cost: Cost,
    /// Cores the client may use.
    pub client_cores: Option<u32>,
    /// Cores of the server, where it reports them.
    pub server_cores: Option<u32>,
    /// The answer.
    pub answer: Recommendation,
    /// One per factor that was explored, in the order of the plan.
    pub factors: Vec<FactorResult>,
    /// Share of a run's bytes that was on the way at its end, at the setting that is ahead: the
    /// round-trip time over the duration.
    pub in_flight_share: Option<f64>,
    /// Measured part of the last runs in seconds, where the path needed longer ones than planned.
    pub run_time_s: Option<u32>,
    /// Late values of one setting over early ones, where all settings changed alike and that can
    /// hardly be chance.
    pub drift_ratio: Option<f64>,
    /// The time ran out before everything planned had been run.
    pub is_cut_short: bool,
    /// Why it ended early, when it did for another reason than time.
    pub ended_by: Option<String>,
}

/// The plan and the server.
#[stored(Default)]
pub struct SweepPlan {
    /// The server as the user named it.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// UDP instead of TCP.
    pub is_udp: bool,
    /// The server sends.
    pub is_reverse: bool,
    /// Objective; it defines the unit of the values.
    pub objective: Objective,
    /// Factors, in order.
    pub factors: Vec<PlannedFactor>,
    /// Order of the runs.
    pub seed: u64,
    /// Runs per setting.
    pub repetitions: u32,
    /// Measured part of a run in seconds.
    pub time_s: u32,
    /// Warm-up of a run in seconds.
    pub omit_s: u32,
    /// Time for all runs in ns.
    pub budget_ns: u64,
    /// Confidence that an answer must have, 0 to 1.
    pub confidence: f64,
    /// Settings this close to the best one are as good, 0 to 1.
    pub tolerance: f64,
}

impl SweepPlan {
    /// `TCP` or `UDP`.
    pub fn protocol(&self) -> &'static str {
        if self.is_udp { "UDP" } else { "TCP" }
    }
}

/// A factor and its levels.
#[stored(Eq)]
pub struct PlannedFactor {
    /// Its name.
    pub name: String,
    /// Its levels as on a command line.
    pub levels: String,
}

/// Objective of a sweep.
#[stored(Copy, Default, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// Most received bits per second.
    #[default]
    Throughput,
    /// Most received bits per second of runs that lose less than 0.1 % of the datagrams.
    LowLoss,
    /// Least CPU seconds per GiB received.
    CpuPerByte,
    /// Least round-trip time in µs.
    Latency,
}

impl Objective {
    /// True if a setting is better the higher its value is.
    pub const fn is_higher_better(self) -> bool {
        match self {
            Self::Throughput | Self::LowLoss => true,
            Self::CpuPerByte | Self::Latency => false,
        }
    }

    /// Name of a value with its unit, for keys and columns.
    pub fn key(self) -> &'static str {
        match self {
            Self::Throughput => "received_bps",
            Self::LowLoss => "low_loss_bps",
            Self::CpuPerByte => "cpu_s_per_gib",
            Self::Latency => "rtt_us",
        }
    }
}

/// When it was run, and between which hosts.
#[stored(Default, Eq)]
pub struct Provenance {
    /// Start in UTC, as RFC 3339 writes it.
    pub started_at: String,
    /// This host.
    pub client: HostIdentity,
    /// The other host as it reports itself: only servers of linerate do.
    pub server: HostIdentity,
}

/// A host and its software. `None` was not reported.
#[sparse]
#[stored(Default, Eq)]
pub struct HostIdentity {
    /// Its name.
    pub name: Option<String>,
    /// The program that ran the tests, with its version where that is known.
    pub program: Option<String>,
    /// Release of its kernel.
    pub kernel: Option<String>,
}

/// `lab1, linerate 0.1.0, kernel 6.1.0`
impl fmt::Display for HostIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernel = self
            .kernel
            .as_ref()
            .map(|release| format!("kernel {release}"));
        let known: Vec<&str> = [&self.name, &self.program, &kernel]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        f.write_str(if known.is_empty() {
            "version not reported"
        } else {
            ""
        })?;

        f.write_str(&known.join(", "))
    }
}

/// Runs and time.
#[stored(Copy)]
pub struct Cost {
    /// Runs.
    pub runs: u64,
    /// Seconds.
    pub seconds: f64,
}

impl Cost {
    /// `runs` that take `seconds` together.
    pub const fn new(runs: u64, seconds: f64) -> Self {
        Self { runs, seconds }
    }
}

/// The answer.
#[stored]
#[serde(rename_all = "kebab-case")]
pub enum Recommendation {
    /// Use this.
    Use {
        /// The setting.
        leader: Leader,
        /// Holds the true median with the confidence of the plan.
        interval: Interval,
    },
    /// No setting does what is looked for, for example loses little enough.
    Unmet {
        /// Which were run, and what they have instead.
        reason: String,
    },
    /// The runs do not allow an answer.
    Inconclusive {
        /// Why.
        reason: String,
        /// The highest median all the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        leader: Option<Leader>,
    },
}

impl Recommendation {
    /// The best setting, if there is one.
    pub fn leader(&self) -> Option<&Leader> {
        match self {
            Self::Use { leader, .. } => Some(leader),
            Self::Inconclusive { leader, .. } => leader.as_ref(),
            Self::Unmet { .. } => None,
        }
    }
}

/// A setting that is ahead of the others.
#[stored]
pub struct Leader {
    /// Its levels.
    pub setting: SettingLevels,
    /// Its median, in the unit of the objective.
    pub value: f64,
    /// Medians of its metrics.
    #[serde(default)]
    pub metrics: RunMetrics,
    /// The command that does it again.
    pub command: String,
}

/// Result of one factor, with the others constant.
#[sparse]
#[stored]
pub struct FactorResult {
    /// Its name.
    pub name: String,
    /// Its levels have an order.
    pub is_amount: bool,
    /// The levels that were run, in order.
    pub levels: Vec<Level>,
    /// Place of the best median.
    pub best: usize,
    /// Places of the neighbours that are as good.
    pub plateau: RangeInclusive<usize>,
    /// Place of what to use.
    pub advised: usize,
    /// A test has it when the command line names none.
    #[serde(default)]
    pub is_default: bool,
    /// Places of levels whose medians differ from that of the advised one by no more than the
    /// tolerance, or than what was in flight.
    #[serde(default)]
    pub ties: Vec<usize>,
    /// Place of the tie that loads the path clearly less, if there is one.
    pub lighter: Option<usize>,
    /// Most by which another level may be better, as a share of the advised one; absent of too few
    /// runs.
    pub excess_max: Option<f64>,
    /// Confidence that no other level is better by more than twice the tolerance, 0 to 1.
    pub confidence: f64,
    /// Levels that were not run, because doubling twice had gained nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spared: Vec<String>,
    /// Levels at which every run failed, each with the reason of the first.
    pub failed: Vec<FailedLevel>,
    /// Place of the level that `limits` are about: the advised one, and of rates the last one of
    /// the plateau.
    pub limited: usize,
    /// Limit of that level, as far as it is known.
    pub limits: Vec<Reason>,
    /// Levels that are clearly worse.
    pub degradations: Vec<Degradation>,
}

/// A level at which every run failed.
#[stored(Eq)]
pub struct FailedLevel {
    /// As on a command line.
    pub level: String,
    /// Failed runs.
    pub runs: usize,
    /// Why the first one failed.
    pub error: String,
}

/// One level and the medians of its runs.
#[sparse(Vec)]
#[stored(Default)]
pub struct Level {
    /// As on a command line, `auto` for what the system chooses.
    pub label: String,
    /// The amount, or the place in the list of choices; 0 of an amount for what the system chooses.
    pub level: u64,
    /// Median in the unit of the objective.
    pub median: f64,
    /// Lowest and highest run.
    pub range: Option<Interval>,
    /// Runs with a result.
    pub runs: usize,
    /// Why others have none.
    pub failures: Vec<String>,
    /// Medians of the metrics.
    pub metrics: RunMetrics,
}

/// Metrics of a run, or medians of several. `None` was not reported.
#[sparse]
#[stored(Copy, Default)]
pub struct RunMetrics {
    /// Received payload in bit/s.
    pub received_bps: f64,
    /// Payload that the sender passed to its system, in bit/s.
    pub sent_bps: Option<f64>,
    /// CPU time of the client in percent of one core.
    pub cpu_client_percent: Option<f64>,
    /// CPU time of the server in percent of one core.
    pub cpu_server_percent: Option<f64>,
    /// Retransmitted segments.
    pub retransmits: Option<f64>,
    /// Retransmitted segments per second.
    pub retransmits_per_s: Option<f64>,
    /// Mean smoothed round-trip time in µs.
    pub rtt_us: Option<f64>,
    /// Share of the received payload that one round-trip time carries: so much may be on the way
    /// when a run ends.
    pub in_flight_share: Option<f64>,
    /// Largest window that the receiver announced, in bytes, mean of the streams.
    pub window_bytes: Option<f64>,
    /// Share of the time in which senders waited for the receiver's window, mean of the streams.
    pub window_limited_share: Option<f64>,
    /// Share of the time in which senders waited for room in their send buffers, mean of the
    /// streams.
    pub buffer_limited_share: Option<f64>,
    /// Lost datagrams in percent.
    pub lost_percent: Option<f64>,
}

/// Which side of the plateau.
#[stored(Copy, Eq)]
pub enum PlateauSide {
    /// Less than the plateau.
    Below,
    /// More than the plateau.
    Above,
    /// Anywhere but at the best level.
    Elsewhere,
}

/// Where it is worse, and why.
#[stored]
pub struct Degradation {
    /// On which side.
    pub side: PlateauSide,
    /// Place of the plateau's last level on this side; the best level where it is alone.
    pub edge: usize,
    /// Place of the worst level on this side.
    pub worst: usize,
    /// Difference of the worst one from the best, in percent of the best; negative is less.
    pub change_percent: f64,
    /// Why.
    pub reasons: Vec<Reason>,
}
