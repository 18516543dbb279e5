//! `linerate fleet run`: connects to the hosts, runs the rounds of a plan, and makes its report.

mod cell;
mod control;
mod prepare;
mod rounds;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use linerate_carrier::ssh::{AgentProgram, SshCarrier, SshOptions};
use linerate_fleet::coordinator::{Coordinator, Settings};
use linerate_fleet::inventory::{Inventory, Reach};
use linerate_lab::fleet::schedule::estimate;
use linerate_lab::fleet::{FleetPlan, PlanHost, Topology, explore};
use linerate_model::fleet::{FleetMode, FleetReport, HostId, PairDirection};
use linerate_model::record::RunId;
use linerate_report::fleet::{Announced, RunFacts, announcement, report};
use linerate_sys::clock::{monotonic_ns, unix_ns};
use linerate_sys::random;
use linerate_sys::signal::Signals;

use super::agent::sha256_of_program;
use crate::progress::style;
use crate::{Error, Outcome, Progress};
use control::{Control, Ended};
use prepare::{CONTROL_PATH, Prepared, is_shared, prepare};
use rounds::Rounds;

/// Longest wait for the first message of a host: several attempts to connect, and a copy of the agent.
const HELLO_TIMEOUT_NS: u64 = 30_000_000_000;
/// Period of the renewal of leases.
const BEAT_NS: u64 = 1_000_000_000;
/// Silence of a host after which it is dropped.
const SILENCE_MAX_NS: u64 = 10_000_000_000;
/// How far starts may be apart.
const CLOCK_BUDGET_NS: u64 = 10_000_000;
/// Time of a round beside its tests.
const ROUND_OVERHEAD: Duration = Duration::from_millis(1_000);

/// What is run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSpec {
    /// The hosts.
    pub inventory: Inventory,
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
    /// Name of the path; `None` for the only one of the inventory.
    pub path: Option<String>,
    /// Each test.
    pub test: TestOptions,
    /// No round is started that would end later.
    pub budget: Duration,
    /// Configuration of ssh instead of the user's.
    pub ssh_config: Option<PathBuf>,
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
    let plan = plan(spec, &path_of(spec)?);
    Ok(announced(&plan, spec, &plan.hosts.iter().map(|host| host.id.clone()).collect()).0)
}

/// Runs a plan over ssh. Signals cancel it.
///
/// # Errors
/// Fewer than two hosts can be tested, or this host lacks what the coordinator needs.
pub fn run(spec: &RunSpec, signals: &Signals, progress: &mut Progress) -> Result<RunResult, Error> {
    let started = Instant::now();
    let path = path_of(spec)?;
    let program = AgentProgram::own(sha256_of_program().map_err(Error::failed)?).map_err(Error::failed)?;
    let hosts = &spec.inventory.hosts;
    let destination = |host: &linerate_fleet::inventory::Host| match &host.reach {
        Reach::Ssh(destination) => Ok(destination.clone()),
        Reach::Server(_) => Err(Error::usage(format!("{}: servers without an agent cannot be tested yet", host.id))),
    };
    let destinations = hosts.iter().map(destination).collect::<Result<Vec<_>, _>>()?;
    let options = SshOptions { config: spec.ssh_config.clone(), is_path_shared: is_shared(&spec.inventory) };
    let carrier = SshCarrier::new(options, program, destinations).map_err(Error::failed)?;
    let run = RunId::new(unix_ns() / 1_000_000, random::bytes());
    let settings = Settings {
        run,
        epoch: 1,
        hello_timeout_ns: HELLO_TIMEOUT_NS,
        silence_max_ns: SILENCE_MAX_NS,
        beat_ns: BEAT_NS,
        clock_budget_ns: CLOCK_BUDGET_NS,
    };
    let ids = hosts.iter().map(|host| host.id.clone()).collect();
    let mut control = Control::new(Coordinator::new(monotonic_ns(), settings, ids), carrier, signals);
    let duration_ms = spec.test.time_ms().saturating_add(spec.test.omit_ms());
    let prepared = match prepare(&mut control, &spec.inventory, &path, duration_ms) {
        Ok(prepared) => prepared,
        Err(ended) => {
            control.finish();
            return Err(error_of(ended));
        }
    };
    for (index, reason) in &control.reasons {
        let id = hosts.get(*index).map_or("", |host| host.id.as_str());
        progress.line(&linerate_report::printable(&format!("{id}: {reason}")));
    }
    prepared.notes.iter().for_each(|note| progress.line(note));
    if prepared.members.len() < 2 {
        control.finish();
        return Err(Error::new(Outcome::Unreachable, "fewer than two hosts can be tested"));
    }
    let plan = plan(spec, &path);
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
    let outcome = explore(&plan, Vec::new(), &mut rounds);
    let Rounds { control, progress, mut unconfirmed, .. } = rounds;
    unconfirmed.extend(control.finish());
    progress.clear();
    for host in unconfirmed.iter().filter_map(|index| hosts.get(*index)) {
        progress.line(&format!("{}: did not confirm its end", host.id));
    }
    let facts = RunFacts {
        run_id: Some(run.to_string()),
        elapsed: started.elapsed(),
        is_control_shared: is_shared(&spec.inventory),
        links_bps,
    };
    let report = report(&plan, outcome, facts);
    let outcome = outcome_of(&report);
    Ok(RunResult { report, outcome })
}

fn error_of(ended: Ended) -> Error {
    match ended {
        Ended::Cancelled(_) => Error::new(Outcome::Interrupted, "interrupted"),
        Ended::Failed(text) => Error::failed(text),
    }
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

/// The path that is tested: that of the command line, else the only one of the inventory.
fn path_of(spec: &RunSpec) -> Result<String, Error> {
    let names: BTreeSet<&String> = spec.inventory.hosts.iter().flat_map(|host| host.paths.keys()).collect();
    match (&spec.path, names.into_iter().collect::<Vec<_>>().as_slice()) {
        (Some(path), names) if names.contains(&path) => Ok(path.clone()),
        (Some(path), _) => Err(Error::usage(format!("no host has the path {path}"))),
        (None, []) => Ok(CONTROL_PATH.to_owned()),
        (None, [only]) => Ok((*only).clone()),
        (None, names) => Err(Error::usage(format!("{} paths in the inventory; name one with --path", names.len()))),
    }
}

fn plan(spec: &RunSpec, path: &str) -> FleetPlan {
    let host = |host: &linerate_fleet::inventory::Host| PlanHost {
        id: host.id.clone(),
        rack: host.rack.clone(),
        is_target_only: matches!(host.reach, Reach::Server(_)),
    };
    let crossing = spec.inventory.racks.iter().filter_map(|(name, rack)| Some((name.clone(), rack.crossing?)));
    FleetPlan {
        hosts: spec.inventory.hosts.iter().map(host).collect(),
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
    let hosts = prepared
        .members
        .iter()
        .filter_map(|(index, member)| Some((spec.inventory.hosts.get(*index)?.id.clone(), member.link_bps? as f64)));
    hosts.collect()
}
