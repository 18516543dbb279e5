//! `linerate fleet run`: connects to the hosts, runs the rounds of a plan, and makes its report.

mod cell;
mod history;
mod rounds;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use linerate_fleet::inventory::Reach;
use linerate_lab::fleet::schedule::estimate;
use linerate_lab::fleet::{FleetPlan, PlanHost, Topology, explore};
use linerate_model::fleet::{FleetMode, FleetReport, HostId, PairDirection};
use linerate_report::fleet::{Announced, RunFacts, announcement, report};
use linerate_sys::signal::Signals;

use super::connect::{FleetHosts, HostControl, connect};
use super::prepare::{Prepared, is_shared};
use crate::progress::style;
use crate::{Error, Outcome, Progress};
use rounds::Rounds;

/// Time of a round beside its tests.
const ROUND_OVERHEAD: Duration = Duration::from_millis(1_000);

/// What is run.
#[derive(Debug, Clone, PartialEq)]
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
    /// No round is started that would end later.
    pub budget: Duration,
}

/// Options of each test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    let plan = plan(spec, &spec.hosts.path_name()?);
    Ok(announced(&plan, spec, &plan.hosts.iter().map(|host| host.id.clone()).collect()).0)
}

/// Runs a plan. Signals cancel it.
///
/// # Errors
/// Fewer than two hosts can be tested, or this host lacks what the coordinator needs.
pub fn run(spec: &RunSpec, signals: &Signals, progress: &mut Progress) -> Result<RunResult, Error> {
    let started = Instant::now();
    let path = spec.hosts.path_name()?;
    let hosts = &spec.hosts.inventory.hosts;
    let test_ms = spec.test.time_ms().saturating_add(spec.test.omit_ms());
    let plan = plan(spec, &path);
    let hash = Some(plan.hash().to_string());
    let (run, control, prepared) =
        connect(&spec.hosts, &path, test_ms, hash, signals, &mut |note| progress.line(note))?;
    let reasons = |control: &HostControl<'_>| {
        let line = |(index, reason): (&usize, &String)| {
            let id = hosts.get(*index).map_or("", |host| host.id.as_str());
            linerate_report::printable(&format!("{id}: {reason}"))
        };
        control.reasons.iter().map(line).collect::<BTreeSet<String>>()
    };
    let absent = reasons(&control);
    absent.iter().for_each(|reason| progress.line(reason));
    prepared.unreached(hosts).iter().for_each(|note| progress.line(note));
    if prepared.members.len() < 2 {
        control.finish();
        return Err(Error::new(Outcome::Unreachable, "fewer than two hosts can be tested"));
    }
    let links_bps = links_bps(&prepared, spec);
    let alive = prepared.ids(hosts).map(|(_, id)| id.clone()).collect();
    let (line, cells_planned) = announced(&plan, spec, &alive);
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
    };
    let finished = rounds.finished(&plan);
    let outcome = explore(&plan, finished, &mut rounds);
    let Rounds { control, progress, mut unconfirmed, .. } = rounds;
    let lost = reasons(&control);
    unconfirmed.extend(control.finish());
    progress.clear();
    lost.difference(&absent).for_each(|reason| progress.line(reason));
    for host in unconfirmed.iter().filter_map(|index| hosts.get(*index)) {
        progress.line(&format!("{}: did not confirm its end", host.id));
    }
    let facts = RunFacts {
        run_id: Some(run.to_string()),
        elapsed: started.elapsed(),
        is_control_shared: is_shared(&spec.hosts.inventory),
        links_bps,
    };
    let report = report(&plan, outcome, facts);
    let outcome = outcome_of(&report);
    Ok(RunResult { report, outcome })
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

fn plan(spec: &RunSpec, path: &str) -> FleetPlan {
    let host = |host: &linerate_fleet::inventory::Host| PlanHost {
        id: host.id.clone(),
        rack: host.rack.clone(),
        is_target_only: matches!(host.reach, Reach::Server(_)),
    };
    let crossing = spec.hosts.inventory.racks.iter().filter_map(|(name, rack)| Some((name.clone(), rack.crossing?)));
    FleetPlan {
        hosts: spec.hosts.inventory.hosts.iter().map(host).collect(),
        topology: spec.topology.clone(),
        mode: spec.mode,
        direction: spec.direction,
        paths: vec![path.to_owned()],
        variants: Vec::new(),
        repetitions: spec.repetitions,
        crossing: crossing.collect(),
        sample_rounds: spec.sample_rounds,
        is_adaptive: true,
        has_control: false,
        seed: spec.seed,
        options: format!("{:?}", spec.test),
        round_time: spec.test.time + spec.test.omit + ROUND_OVERHEAD,
        budget: spec.budget,
    }
}

/// What the plan takes, and the number of its cells.
fn announced(plan: &FleetPlan, spec: &RunSpec, alive: &BTreeSet<HostId>) -> (String, usize) {
    let estimate = estimate(plan, &plan.tasks(), alive);
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
