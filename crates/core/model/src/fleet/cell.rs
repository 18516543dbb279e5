//! Result of one task.

use linerate_macros::{sparse, stored};

use super::{FleetMode, Task};

/// A task with its result.
#[stored]
pub struct Cell {
    /// The planned measurement.
    pub task: Task,
    /// Concurrent tests.
    #[serde(default)]
    pub mode: FleetMode,
    /// The result, or the reason why there is none.
    pub outcome: CellOutcome,
}

impl Cell {
    /// The outcome of `task` in a round of `mode`.
    pub fn new(task: Task, mode: FleetMode, outcome: CellOutcome) -> Self {
        Self {
            task,
            mode,
            outcome,
        }
    }

    /// The measurement; `None` of a task that has none.
    pub fn measurement(&self) -> Option<&Measurement> {
        match &self.outcome {
            CellOutcome::Measured(measurement) => Some(measurement),
            CellOutcome::NotRun(_) => None,
        }
    }

    /// The measurement, if it belongs into statistics.
    pub fn usable(&self) -> Option<&Measurement> {
        let is_excluded =
            |flag: &CellFlag| matches!(flag, CellFlag::Implausible | CellFlag::NoCommonPeriod);
        let is_usable = |of: &&Measurement| {
            of.goodput_bps.is_finite() && of.goodput_bps >= 0.0 && !of.flags.iter().any(is_excluded)
        };
        self.measurement().filter(is_usable)
    }
}

/// Outcome of a task.
#[stored]
pub enum CellOutcome {
    /// It reached its end.
    Measured(Measurement),
    /// It has no result.
    NotRun(NotRun),
}

/// Result of one test.
#[sparse(Vec)]
#[stored(Default)]
pub struct Measurement {
    /// Payload that the sink received, in bit/s.
    pub goodput_bps: f64,
    /// The smaller of the highest rates that the links of both hosts support, in bit/s; absent
    /// where one is not known. A link that negotiated less than it supports is slow against it.
    pub nominal_bps: Option<f64>,
    /// Retransmitted segments; absent of UDP and where the source does not report them.
    pub retransmits: Option<u64>,
    /// Mean smoothed round-trip time in µs.
    pub rtt_us: Option<u64>,
    /// Busiest CPU of the source, 0..=1.
    pub source_cpu: Option<f64>,
    /// Busiest CPU of the sink, 0..=1.
    pub sink_cpu: Option<f64>,
    /// When it was to start and when it did; absent where the start was not agreed.
    pub start: Option<StartTimes>,
    /// Why its values need care.
    pub flags: Vec<CellFlag>,
}

/// Start of a test in ns of the coordinator's monotonic clock.
#[stored(Copy, Eq)]
pub struct StartTimes {
    /// Planned.
    pub planned_ns: u64,
    /// Actual.
    pub actual_ns: u64,
}

/// Why a value needs care.
#[stored(Copy, Eq, PartialOrd, Ord, Hash)]
#[serde(rename_all = "kebab-case")]
pub enum CellFlag {
    /// More than the path can carry or the time allows; in no statistic.
    Implausible,
    /// The tests of its round have less than half of their time in common; in no statistic.
    NoCommonPeriod,
    /// It started later than the budget of the clock allows.
    LateStart,
    /// The wall clock of one end was set during the test.
    ClockStep,
    /// The clock of the client is not known: its start is absent, and its rate is that of its whole
    /// test.
    NoClock,
    /// It ran in a catch-up round, beside other tests than planned.
    CaughtUp,
}

/// A task without a result.
#[stored(Eq)]
pub struct NotRun {
    /// Why, as a word.
    pub reason: NotRunReason,
    /// Message of the host or the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl NotRun {
    /// A reason without a message.
    pub const fn new(reason: NotRunReason) -> Self {
        Self {
            reason,
            detail: None,
        }
    }
}

/// Why a task has no result.
#[stored(Copy, Eq, PartialOrd, Ord, Hash)]
#[serde(rename_all = "kebab-case")]
pub enum NotRunReason {
    /// One of its hosts has no control connection.
    Unreachable,
    /// The other host left during the test.
    PeerLost,
    /// A host did not confirm its part in time.
    SlowControl,
    /// The start had passed when the command arrived.
    Late,
    /// The lease of a host expired.
    Lease,
    /// The test did not end before its deadline.
    Deadline,
    /// A host refused it.
    Refused,
    /// It failed; see the detail.
    Failed,
    /// The user cancelled the run.
    Cancelled,
    /// The time of the run had ended.
    Budget,
}
