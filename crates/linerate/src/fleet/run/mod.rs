//! `linerate fleet run`: connects to the hosts, runs the rounds of a plan, and makes its report.

mod cell;
mod history;
mod kept;
mod plan;
mod resume;
mod rounds;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use linerate_carrier::Carrier;
use linerate_fleet::inventory::Host;
use linerate_fleet::message::Caps;
use linerate_lab::fleet::analysis::hosts::HostFindings;
use linerate_lab::fleet::analysis::ranked;
use linerate_lab::fleet::analysis::shared_slot::{self, Forwarder};
use linerate_lab::fleet::{FleetOutcome, FleetPlan, Topology, explore};
use linerate_model::finding::Finding;
use linerate_model::fleet::{
    Cell, CellOutcome, FleetMode, FleetReport, HostId, NotRun, NotRunReason, PairDirection, PlanHash, Task,
};
use linerate_model::record::HostPart;
use linerate_record::keys;
use linerate_report::fleet::{RunFacts, report};
use linerate_sys::signal::Signals;
use serde::{Deserialize, Serialize};

use super::connect::{FleetHosts, connect};
use super::control::Control;
use super::host_rules::{forwarders, host_findings};
use super::members::{Member, Prepared};
use super::prepare::{Planned, is_shared};
use crate::record::RecordOptions;
use crate::{Error, Outcome, Progress};
use kept::KeptRun;
use plan::{Links, announced, plan};
pub use resume::resume;
use rounds::Rounds;

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
    /// What is varied, `cc=bbr`; empty where nothing is.
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

    fn caps(self) -> Caps {
        Caps { rate_bps: self.rate_bps, time_ms: Some(self.time_ms().saturating_add(self.omit_ms())), bytes: None }
    }
}

/// What a run takes, in a line, before any connection.
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

/// The hub of a ladder is a host of the inventory.
fn check_hub(spec: &RunSpec) -> Result<(), Error> {
    let is_known = |hub: &HostId| spec.hosts.inventory.hosts.iter().any(|host| host.id == *hub);
    match spec.topology.hub().filter(|hub| !is_known(hub)) {
        Some(hub) => Err(Error::usage(format!("{hub} is no host of the inventory"))),
        None => Ok(()),
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

/// Runs the tasks of a plan but the finished ones.
fn execute(
    spec: &RunSpec,
    finished: Vec<Cell>,
    mut kept: KeptRun,
    signals: &Signals,
    progress: &mut Progress,
) -> Result<RunResult, Error> {
    match all_rounds(spec, finished, &mut kept, signals, progress) {
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
    mut finished: Vec<Cell>,
    kept: &mut KeptRun,
    signals: &Signals,
    progress: &mut Progress,
) -> Result<(FleetReport, Vec<HostId>), Error> {
    let started = Instant::now();
    let paths = spec.hosts.path_names()?;
    let hosts = &spec.hosts.inventory.hosts;
    let planned = Planned { paths: &paths, caps: spec.test.caps() };
    let run_id = kept.id().to_string();
    let run = (kept.id(), Some(identity(spec)?));
    let (control, prepared) = connect(run, &spec.hosts, planned, signals, &mut |note| progress.line(note))?;
    let found = host_findings(&control, &prepared, &spec.hosts.inventory);
    let absent = reasons(&control, hosts);
    absent.iter().chain(&notes(&prepared, &found, hosts)).for_each(|note| progress.line(note));
    kept.between(host_parts(&control, &prepared, hosts), &paths.join(","));
    if prepared.members.len() < found.excluded.len() + 2 {
        control.finish();
        return Err(Error::new(Outcome::Unreachable, "fewer than two hosts can be tested"));
    }
    let forwarders = forwarders(&prepared, hosts);
    let links_bps = links_bps(&prepared, spec);
    let plan = plan(spec, &paths, &links_bps);
    let alive = prepared.ids(hosts).map(|(_, id)| id.clone()).filter(|id| !found.excluded.contains_key(id)).collect();
    let (line, cells_planned) = match announced(&plan, &open_tasks(&plan, &finished), spec, &alive, &links_bps) {
        Ok(announced) => announced,
        Err(error) => {
            control.finish();
            return Err(error);
        }
    };
    progress.line(&line);
    let mut rounds = Rounds {
        control,
        prepared,
        hosts,
        plan: plan.hash(),
        options: spec.test,
        excluded: &found.excluded,
        progress,
        cells_planned,
        cells_done: 0,
        number: 0,
        unconfirmed: Vec::new(),
        kept,
    };
    finished.extend(rounds.finished(&plan));
    let outcome = explore(&plan, finished, &mut rounds);
    let Rounds { control, prepared, progress, mut unconfirmed, .. } = rounds;
    let lost = reasons(&control, hosts);
    unconfirmed.extend(control.finish());
    progress.clear();
    lost.difference(&absent).for_each(|reason| progress.line(reason));
    let of_plan = prepared.ids(hosts).filter(|(index, _)| unconfirmed.contains(index));
    let unconfirmed: Vec<HostId> = of_plan.map(|(_, id)| id.clone()).collect();
    unconfirmed.iter().for_each(|id| progress.line(&format!("{id}: did not confirm its end")));
    let facts = RunFacts {
        run_id: Some(run_id),
        elapsed: started.elapsed(),
        is_control_shared: is_shared(&spec.hosts.inventory),
        links_bps,
    };
    Ok((report(&plan, with_hosts(outcome, &found, &forwarders), facts), unconfirmed))
}

/// Why hosts take no part, a line each.
fn reasons<C: Carrier>(control: &Control<'_, C>, hosts: &[Host]) -> BTreeSet<String> {
    let line = |(index, reason): (&usize, &String)| {
        Some(linerate_report::printable(&format!("{}: {reason}", hosts.get(*index)?.id)))
    };
    control.reasons.iter().filter_map(line).collect()
}

/// What else is known about the hosts before the first round, a line each.
fn notes(prepared: &Prepared, found: &HostFindings, hosts: &[Host]) -> Vec<String> {
    let excluding = found.findings.iter().filter(|finding| found.excluded.values().any(|id| *id == finding.id));
    let lines = prepared.unreached(hosts).into_iter().chain(excluding.map(finding_line));
    lines.map(|line| linerate_report::printable(&line)).collect()
}

fn open_tasks(plan: &FleetPlan, finished: &[Cell]) -> Vec<Task> {
    let known: BTreeSet<&Task> = finished.iter().map(|cell| &cell.task).collect();
    plan.tasks().into_iter().filter(|task| !known.contains(task)).collect()
}

/// `h2: tests use the port of the control connection (FLT-13): route to …; next: …`
fn finding_line(finding: &Finding) -> String {
    let seen = finding.evidence.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let next = finding.advice.as_deref().unwrap_or_default();
    format!("{}: {} ({}): {seen}; next: {next}", finding.subject, finding.title, finding.id)
}

/// Adds what was found about the hosts: the findings, and why cells of excluded hosts have no result.
fn with_hosts(mut outcome: FleetOutcome, found: &HostFindings, forwarders: &[Forwarder]) -> FleetOutcome {
    outcome.findings.extend(found.findings.iter().cloned());
    outcome.findings.extend(shared_slot::findings(forwarders, &outcome.cells.iter().collect::<Vec<_>>()));
    outcome.findings = ranked(outcome.findings);
    for cell in &mut outcome.cells {
        let ends = [&cell.task.source, &cell.task.sink];
        let Some((host, id)) = ends.iter().find_map(|host| found.excluded.get_key_value(*host)) else { continue };
        let detail = Some(format!("{host} is excluded ({id})"));
        cell.outcome = CellOutcome::NotRun(NotRun { reason: NotRunReason::Refused, detail });
    }
    outcome
}

fn outcome_of(report: &FleetReport) -> Outcome {
    let without = report.cells.iter().filter(|cell| cell.measurement().is_none()).count();
    match report.header.ended.as_ref().map(|ended| ended.reason) {
        Some(NotRunReason::Cancelled) => Outcome::Interrupted,
        Some(NotRunReason::Failed) => Outcome::NotCompleted,
        _ if without.saturating_mul(5) > report.cells.len() => Outcome::TooManyInvalid,
        _ => Outcome::Done,
    }
}

fn links_bps(prepared: &Prepared, spec: &RunSpec) -> Links {
    let hosts = prepared.ids(&spec.hosts.inventory.hosts);
    hosts.filter_map(|(index, id)| Some((id.clone(), prepared.members.get(&index)?.link_bps()?))).collect()
}

/// The hosts that can be tested, as their record has them.
fn host_parts<C: Carrier>(control: &Control<'_, C>, prepared: &Prepared, hosts: &[Host]) -> Vec<HostPart> {
    let part = |(index, member): (&usize, &Member)| {
        let hello = control.coordinator.hello(*index)?;
        Some(HostPart {
            role: hosts.get(*index)?.id.to_string(),
            name: hello.host.clone(),
            host_key: hello.host_key.clone(),
            facts_key: member.facts.as_ref().map(keys::facts_key),
            snapshot: member.facts.clone().map(Box::new),
            is_same_host: false,
        })
    };
    prepared.members.iter().filter_map(part).collect()
}
