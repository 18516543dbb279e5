//! `linerate fleet run`: connects to the hosts, runs the rounds of a plan, and makes its report.

mod cell;
mod kept;
mod resume;
mod rounds;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use linerate_carrier::Carrier;
use linerate_fleet::inventory::{Host, Reach};
use linerate_lab::fleet::schedule::estimate;
use linerate_lab::fleet::{FleetPlan, PlanHost, Topology, explore};
use linerate_model::fleet::{Cell, FleetMode, FleetReport, HostId, PairDirection, Task};
use linerate_model::record::HostPart;
use linerate_record::keys;
use linerate_report::fleet::{Announced, RunFacts, announcement, report};
use linerate_sys::signal::Signals;
use serde::{Deserialize, Serialize};

use super::connect::{FleetHosts, connect};
use super::control::Control;
use super::prepare::{Member, Prepared, is_shared};
use crate::progress::style;
use crate::record::RecordOptions;
use crate::{Error, Outcome, Progress};
use kept::KeptRun;
pub use resume::resume;
use rounds::Rounds;

/// Time of a round beside its tests.
const ROUND_OVERHEAD: Duration = Duration::from_millis(1_000);

/// What is run. A record has it as the inputs of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The hosts.
    pub hosts: FleetHosts,
    /// Which of them exchange data.
    pub topology: Topology,
    /// Which tests run at the same time.
    pub mode: FleetMode,
    /// Whether the two directions of a pair do.
    pub direction: PairDirection,
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
}

/// A run and how it ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RunResult {
    /// The report.
    pub report: FleetReport,
    /// How it ended.
    pub outcome: Outcome,
    /// What the user should know about its record.
    pub message: Option<String>,
}

impl TestOptions {
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
}

/// What a run takes, in a line, before any connection.
///
/// # Errors
/// The path is not known.
pub fn dry_run(spec: &RunSpec) -> Result<String, Error> {
    let plan = plan(spec)?;
    let all = plan.hosts.iter().map(|host| host.id.clone()).collect();
    Ok(announced(&plan, &plan.tasks(), spec, &all).0)
}

/// Runs a plan over ssh. Signals cancel it.
///
/// # Errors
/// Fewer than two hosts can be tested, or this host lacks what the coordinator needs.
pub fn run(
    spec: &RunSpec,
    record: RecordOptions,
    signals: &Signals,
    progress: &mut Progress,
) -> Result<RunResult, Error> {
    let plan = plan(spec)?;
    let kept = KeptRun::begin(record, spec, plan.hash())?;
    execute(spec, &plan, Vec::new(), kept, signals, progress)
}

/// Runs the tasks of a plan but the finished ones.
fn execute(
    spec: &RunSpec,
    plan: &FleetPlan,
    finished: Vec<Cell>,
    mut kept: KeptRun,
    signals: &Signals,
    progress: &mut Progress,
) -> Result<RunResult, Error> {
    match all_rounds(spec, plan, finished, &mut kept, signals, progress) {
        Ok((report, unconfirmed)) => Ok(kept.finish(report, unconfirmed)),
        Err(error) => {
            kept.fail(&error);
            Err(error)
        }
    }
}

/// The report, and the hosts that did not confirm their end.
fn all_rounds(
    spec: &RunSpec,
    plan: &FleetPlan,
    finished: Vec<Cell>,
    kept: &mut KeptRun,
    signals: &Signals,
    progress: &mut Progress,
) -> Result<(FleetReport, Vec<HostId>), Error> {
    let started = Instant::now();
    let path = spec.hosts.path_name()?;
    let hosts = &spec.hosts.inventory.hosts;
    let test_ms = spec.test.time_ms().saturating_add(spec.test.omit_ms());
    let run_id = kept.id().to_string();
    let (control, prepared) = connect(kept.id(), &spec.hosts, &path, test_ms, signals)?;
    for (index, reason) in &control.reasons {
        let id = hosts.get(*index).map_or("", |host| host.id.as_str());
        progress.line(&linerate_report::printable(&format!("{id}: {reason}")));
    }
    prepared.unreached(hosts).iter().for_each(|note| progress.line(note));
    kept.between(host_parts(&control, &prepared, hosts), &path);
    if prepared.members.len() < 2 {
        control.finish();
        return Err(Error::new(Outcome::Unreachable, "fewer than two hosts can be tested"));
    }
    let links_bps = links_bps(&prepared, spec);
    let alive = prepared.ids(hosts).map(|(_, id)| id.clone()).collect();
    let known: BTreeSet<&Task> = finished.iter().map(|cell| &cell.task).collect();
    let mut open = plan.tasks();
    open.retain(|task| !known.contains(task));
    let (line, cells_planned) = announced(plan, &open, spec, &alive);
    progress.line(&line);
    let mut rounds = Rounds {
        control,
        prepared,
        hosts,
        plan: plan.hash(),
        options: spec.test,
        progress,
        cells_planned,
        cells_done: 0,
        number: 0,
        unconfirmed: Vec::new(),
        kept,
    };
    let outcome = explore(plan, finished, &mut rounds);
    let Rounds { control, prepared, progress, mut unconfirmed, .. } = rounds;
    unconfirmed.extend(control.finish());
    progress.clear();
    let of_plan = prepared.ids(hosts).filter(|(index, _)| unconfirmed.contains(index));
    let unconfirmed: Vec<HostId> = of_plan.map(|(_, id)| id.clone()).collect();
    unconfirmed.iter().for_each(|id| progress.line(&format!("{id}: did not confirm its end")));
    let facts = RunFacts {
        run_id: Some(run_id),
        elapsed: started.elapsed(),
        is_control_shared: is_shared(&spec.hosts.inventory),
        links_bps,
    };
    Ok((report(plan, outcome, facts), unconfirmed))
}

fn outcome_of(report: &FleetReport) -> Outcome {
    use linerate_model::fleet::NotRunReason;
    let without = report.cells.iter().filter(|cell| cell.measurement().is_none()).count();
    match report.header.ended.as_ref().map(|ended| ended.reason) {
        Some(NotRunReason::Cancelled) => Outcome::Interrupted,
        Some(NotRunReason::Failed) => Outcome::NotCompleted,
        _ if without.saturating_mul(5) > report.cells.len() => Outcome::TooManyInvalid,
        _ => Outcome::Done,
    }
}

fn plan(spec: &RunSpec) -> Result<FleetPlan, Error> {
    let host = |host: &Host| PlanHost {
        id: host.id.clone(),
        rack: host.rack.clone(),
        is_target_only: matches!(host.reach, Reach::Server(_)),
    };
    let crossing = spec.hosts.inventory.racks.iter().filter_map(|(name, rack)| Some((name.clone(), rack.crossing?)));
    Ok(FleetPlan {
        hosts: spec.hosts.inventory.hosts.iter().map(host).collect(),
        topology: spec.topology.clone(),
        mode: spec.mode,
        direction: spec.direction,
        paths: vec![spec.hosts.path_name()?],
        variants: Vec::new(),
        repetitions: spec.repetitions,
        crossing: crossing.collect(),
        sample_rounds: spec.sample_rounds,
        is_adaptive: true,
        has_control: false,
        seed: spec.seed,
        options: format!("{:?}", spec.test),
        round_time: spec.test.time + spec.test.omit + ROUND_OVERHEAD,
        budget: spec.budget.unwrap_or(Duration::MAX),
    })
}

/// What these tasks of the plan take, and the number of their cells.
fn announced(plan: &FleetPlan, open: &[Task], spec: &RunSpec, alive: &BTreeSet<HostId>) -> (String, usize) {
    let estimate = estimate(plan, open, alive);
    let test_time = spec.test.time + spec.test.omit;
    let announced = Announced { plan, estimate, test_time, bytes_max: None, host_bps_max: None };
    (announcement(&announced, style()), estimate.cells)
}

fn links_bps(prepared: &Prepared, spec: &RunSpec) -> BTreeMap<HostId, f64> {
    let hosts = prepared.members.iter().filter_map(|(index, member)| {
        Some((spec.hosts.inventory.hosts.get(*index)?.id.clone(), member.link_bps? as f64))
    });
    hosts.collect()
}

/// The hosts that can be tested, as their record has them.
fn host_parts<C: Carrier>(control: &Control<'_, C>, prepared: &Prepared, hosts: &[Host]) -> Vec<HostPart> {
    let part = |(index, member): (&usize, &Member)| {
        let hello = control.coordinator.hello(*index)?;
        Some(HostPart {
            role: hosts.get(*index)?.id.to_string(),
            name: hello.host.clone(),
            host_key: hello.host_key.clone(),
            facts_key: member.snapshot.as_ref().map(|snapshot| keys::facts_key(snapshot)),
            snapshot: member.snapshot.clone(),
            is_same_host: false,
        })
    };
    prepared.members.iter().filter_map(part).collect()
}
