//! The result of a sweep: every figure its reports show.

use std::fmt;
use std::ops::RangeInclusive;

use linerate_model::sweep::Reason;
use serde::Serialize;

use super::grammar::SweptFactor;
use super::spec::SweepSpec;
use crate::runner::RunError;
use crate::stats::Interval;

/// A sweep and what it found.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    /// The specification.
    pub spec: SweepSpec,
    /// When it was run, and between which hosts.
    pub provenance: Provenance,
    /// The values count CPU time of the client alone, because the server does not report its own.
    pub is_client_cpu_only: bool,
    /// What was to be varied, in order.
    pub planned: Vec<SweptFactor>,
    /// How sure an answer must be, 0 to 1.
    pub confidence: f64,
    /// Settings this close to the best one are as good, 0 to 1.
    pub tolerance: f64,
    /// Estimated beforehand.
    pub estimate: Cost,
    /// What it took.
    pub cost: Cost,
    /// Cores the client may use.
    pub client_cores: Option<u32>,
    /// Cores of the server, where it reports them.
    pub server_cores: Option<u32>,
    /// The answer.
    pub answer: Recommendation,
    /// One per factor that was explored, in the order of the plan.
    pub factors: Vec<FactorResult>,
    /// Largest share of a run's bytes that may have arrived after the end of the run, at the best setting: the round-trip
    /// time over the duration. Servers that count until their sockets are empty count these bytes, too.
    pub in_flight_share: Option<f64>,
    /// Last round over first round, where that can hardly be chance.
    pub drift_ratio: Option<f64>,
    /// The time ran out before everything planned had been run.
    pub is_cut_short: bool,
    /// Why it ended early, when it did for another reason than time.
    pub ended_by: Option<String>,
    /// Every run, in the order of time; the first one is the warm-up.
    pub runs: Vec<Run>,
}

/// When it was run, and between which hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Provenance {
    /// Start in UTC, as RFC 3339 writes it.
    pub started_at: String,
    /// This host.
    pub client: HostIdentity,
    /// The other host as it reports itself: only servers of linerate do.
    pub server: HostIdentity,
}

/// A host and its software. `None` was not reported.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
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
        let kernel = self.kernel.as_ref().map(|release| format!("kernel {release}"));
        let known: Vec<&str> = [&self.name, &self.program, &kernel].into_iter().flatten().map(String::as_str).collect();
        f.write_str(if known.is_empty() { "version not reported" } else { "" })?;
        f.write_str(&known.join(", "))
    }
}

/// Runs and time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cost {
    /// Runs.
    pub runs: u64,
    /// Seconds.
    pub seconds: f64,
}

/// The answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Recommendation {
    /// Use this.
    Use {
        /// The level of every factor, in their order.
        levels: Vec<String>,
        /// What it brings.
        value: f64,
        /// Holds the true median with the confidence of the sweep.
        interval: Interval,
        /// The command that does it again.
        command: String,
    },
    /// The runs do not allow an answer.
    Inconclusive {
        /// Why.
        reason: String,
        /// The highest median all the same, with its command.
        leader: Option<(Vec<String>, f64, String)>,
    },
}

/// What was found about one factor, with the others held.
#[derive(Debug, Clone, PartialEq)]
pub struct FactorResult {
    /// Its name.
    pub name: &'static str,
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
    /// Confidence that it is as good as each other level, 0 to 1.
    pub confidence: f64,
    /// Levels at which every run failed, each with the reason of the first.
    pub failed: Vec<FailedLevel>,
    /// Place of the level that `limits` are about: the advised one, and of rates the last one of the plateau.
    pub limited: usize,
    /// What limits that level, as far as it is known.
    pub limits: Vec<Reason>,
    /// Levels that are clearly worse.
    pub degradations: Vec<Degradation>,
}

/// A level at which every run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedLevel {
    /// As on a command line.
    pub level: String,
    /// Failed runs.
    pub runs: usize,
    /// Why the first one failed.
    pub error: String,
}

/// One level and the medians of its runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Level {
    /// As on a command line, `auto` for what the system chooses.
    #[serde(rename = "level")]
    pub label: String,
    /// The amount, or the place in the list of choices; 0 of an amount for what the system chooses.
    #[serde(skip)]
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
    #[serde(flatten)]
    pub metrics: RunMetrics,
}

/// Metrics of a run, or medians of several. `None` was not reported.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
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
    /// Mean smoothed round-trip time in µs.
    pub rtt_us: Option<f64>,
    /// Lost datagrams in percent.
    pub lost_percent: Option<f64>,
}

/// Which side of the plateau.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PlateauSide {
    /// Less than the plateau.
    Below,
    /// More than the plateau.
    Above,
    /// Anywhere but at the best level.
    Elsewhere,
}

/// Where it is worse, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Degradation {
    /// On which side.
    pub side: PlateauSide,
    /// Place of the plateau's last level on this side; the best level where it is alone.
    pub edge: usize,
    /// Place of the worst level on this side.
    pub worst: usize,
    /// How the worst one differs from the best, in percent of the best; negative is less.
    pub change_percent: f64,
    /// Why.
    pub reasons: Vec<Reason>,
}

/// One run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Level of every factor, in their order.
    pub levels: Vec<String>,
    /// Seconds from the start of the sweep to the start of this run.
    pub started_s: f64,
    /// It came first, and is not counted.
    pub is_warm_up: bool,
    /// Value and metrics, or why there are none.
    pub outcome: Result<(f64, RunMetrics), RunError>,
}
