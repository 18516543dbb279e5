//! `linerate fleet run`: connects to the hosts, runs the rounds of a plan, and makes its report.

mod cell;
mod execute;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod history_record;
mod plan;
mod replayed_results;
mod reports;
mod resume;
mod rounds;

use std::time::Duration;

use crate::inventory::Reach;
use crate::plan::Topology;
use crate::protocol::message::Caps;
use linerate_model::fleet::{FleetMode, FleetReport, NotRunReason, PairDirection, PlanHash};
use linerate_sys::signal::Signals;
use serde::{Deserialize, Serialize};

use super::connect::FleetHosts;
use execute::execute;
use history_record::KeptRun;
use linerate_document::progress::Progress;
use linerate_history::run::record::RecordOptions;
use linerate_model::outcome::{Error, Outcome};
use plan::{Links, announced, plan};
pub use resume::resume;

/// Specification of a run. A record has it as the inputs of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The hosts.
    pub hosts: FleetHosts,
    /// Which of them exchange data.
    pub topology: Topology,
    /// Which tests run at the same time.
    pub mode: FleetMode,
    /// The two directions of a pair: at the same time or one after the other.
    pub direction: PairDirection,
    /// Varied settings, `cc=bbr`; empty where nothing is.
    pub variants: Vec<String>,
    /// Rounds of a mesh that is sampled.
    pub sample_rounds: Option<u32>,
    /// Tests of each pair.
    pub repetitions: u32,
    /// Decides the order.
    pub seed: u64,
    /// Each test.
    pub test: TestOptions,
    /// No round is started that would end later; `None` for no limit.
    pub budget: Option<Duration>,
    /// Most payload of all tests in bytes; absent for a terabyte, where the rates are known.
    pub bytes_max: Option<u64>,
}

impl RunSpec {
    /// One test of each pair, both ways at once, in rounds; nothing is varied and no budget is set.
    #[must_use]
    pub fn new(hosts: FleetHosts, topology: Topology, test: TestOptions) -> Self {
        Self {
            hosts,
            topology,
            mode: FleetMode::Rounds,
            direction: PairDirection::Both,
            variants: Vec::new(),
            sample_rounds: None,
            repetitions: 1,
            seed: 1,
            test,
            budget: None,
            bytes_max: None,
        }
    }
}

/// Options of each test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestOptions {
    /// Measured time.
    pub time: Duration,
    /// Time before it that does not count.
    pub omit: Duration,
    /// Parallel streams.
    pub streams: u32,
    /// Highest rate of each direction in bit/s; absent without a limit.
    pub rate_bps: Option<u64>,
    /// Time between the starts of two tests of a ladder step.
    pub stagger: Duration,
}

/// A run and how it ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RunResult {
    /// The report.
    pub report: FleetReport,
    /// Outcome of the run.
    pub outcome: Outcome,
    /// Message for the user about its record.
    pub message: Option<String>,
}

impl TestOptions {
    /// One stream for `time` without a limit of its rate, all of it measured.
    #[must_use]
    pub const fn new(time: Duration) -> Self {
        Self {
            time,
            omit: Duration::ZERO,
            streams: 1,
            rate_bps: None,
            stagger: Duration::ZERO,
        }
    }

    fn time_ms(self) -> u64 {
        u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX)
    }

    fn omit_ms(self) -> u64 {
        u64::try_from(self.omit.as_millis()).unwrap_or(u64::MAX)
    }

    fn time_ns(self) -> u64 {
        self.time_ms().saturating_mul(1_000_000)
    }

    fn omit_ns(self) -> u64 {
        self.omit_ms().saturating_mul(1_000_000)
    }

    fn caps(self) -> Caps {
        Caps {
            rate_bps: self.rate_bps,
            time_ms: Some(self.time_ms().saturating_add(self.omit_ms())),
            bytes: None,
        }
    }
}

/// Time and data of a run, in a line, before any connection.
///
/// # Errors
/// A path or a host is not known, or the run may move more data than is allowed.
pub fn dry_run(spec: &RunSpec) -> Result<String, Error> {
    check_hub(spec)?;
    let links_bps = Links::new();
    let plan = plan(spec, &spec.hosts.path_names()?, &links_bps);
    let all = plan.hosts.iter().map(|host| host.id.clone()).collect();
    announced(&plan, &plan.tasks(), spec, &all, &links_bps).map(|(line, _)| line)
}

/// The hub of a ladder is a host of the inventory that can have several tests at a time.
fn check_hub(spec: &RunSpec) -> Result<(), Error> {
    let Some(hub) = spec.topology.hub() else {
        return Ok(());
    };
    match spec
        .hosts
        .inventory
        .hosts
        .iter()
        .find(|host| host.id == *hub)
    {
        None => Err(Error::usage(format!("{hub} is no host of the inventory"))),
        Some(host) if matches!(host.reach, Reach::Server(_)) => Err(Error::usage(format!(
            "{hub} is a server without an agent, which has one test at a time: no ladder is \
             possible; try `linerate fleet run pairs`"
        ))),
        Some(_) => Ok(()),
    }
}

/// Runs a plan. Signals cancel it.
///
/// # Errors
/// Fewer than two hosts can be tested, or this host lacks what the coordinator needs.
pub fn run(
    spec: &RunSpec,
    record: RecordOptions,
    signals: &Signals,
    progress: &mut Progress,
) -> Result<RunResult, Error> {
    check_hub(spec)?;
    let kept = KeptRun::begin(record, spec, identity(spec)?)?;
    execute(spec, Vec::new(), kept, signals, progress)
}

/// Hash of the plan as far as it does not depend on what the hosts report.
fn identity(spec: &RunSpec) -> Result<PlanHash, Error> {
    Ok(plan(spec, &spec.hosts.path_names()?, &Links::new()).hash())
}

fn outcome_of(report: &FleetReport) -> Outcome {
    let without = report
        .cells
        .iter()
        .filter(|cell| cell.measurement().is_none())
        .count();
    match report.header.ended.as_ref().map(|ended| ended.reason) {
        Some(NotRunReason::Cancelled) => Outcome::Interrupted,
        Some(NotRunReason::Failed) => Outcome::NotCompleted,
        _ if without.saturating_mul(5) > report.cells.len() => Outcome::TooManyInvalid,
        _ => Outcome::Done,
    }
}
