//! Runs a plan over a [`RoundRunner`] and analyses its cells.

mod rounds;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use linerate_model::finding::{Evidence, Finding};
use linerate_model::fleet::{
    Cell, FleetEffects, FleetMode, HostId, HostPoisoning, NotRunReason, Round, Task,
};
use thiserror::Error;

use super::effects::Analysis;
use super::ladder::{self as ladder_analysis, LadderRow};
use crate::plan::{FleetPlan, ladder, sample};
use rounds::Run;

/// Runs rounds of tests and reads the clock.
pub trait RoundRunner {
    /// Runs all tests of a round at the same time and waits for their cells. A task without a cell
    /// counts as failed.
    ///
    /// # Errors
    /// When no other round can be run; see [`RoundError`].
    fn run(&mut self, round: &Round) -> Result<Vec<Cell>, RoundError>;

    /// Called after each round with its cells as they count. Those that may run once more are not
    /// among them.
    fn keep(&mut self, _cells: &[Cell]) {}

    /// Hosts that can take part in a round now.
    fn alive(&self) -> BTreeSet<HostId>;

    /// Time since an arbitrary moment; never goes back.
    fn now(&self) -> Duration;

    /// Called before every round.
    fn progress(&mut self, progress: &FleetProgress);

    /// Highest rate of the link of a host in bit/s, where that is known.
    fn link_bps(&self, _: &HostId) -> Option<f64> {
        None
    }

    /// Facts that the hosts of each of two groups share and that differ between the groups, as
    /// statements. Empty where no facts are known.
    fn separating(&self, _fast: &[HostId], _slow: &[HostId]) -> Vec<String> {
        Vec::new()
    }
}

/// Why no more rounds can be run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RoundError {
    /// The user cancelled the run.
    #[error("cancelled")]
    Cancelled,
    /// The coordinator cannot continue. With the reason.
    #[error("{0}")]
    Failed(String),
}

/// Where a run is.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetProgress {
    /// The next round.
    pub round: Round,
    /// Rounds that have ended.
    pub rounds_done: usize,
    /// Rounds that are planned now; grows when results need more.
    pub rounds_planned: usize,
    /// Tasks without a cell that are planned now, each once.
    pub cells_left: usize,
    /// Time that the remaining ones will take.
    pub left: Duration,
}

/// All results of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetOutcome {
    /// A cell of every task, with a result or a reason, in the order of the tasks.
    pub cells: Vec<Cell>,
    /// Effects of hosts and pairs, one for each path and variant; empty of a ladder.
    pub effects: Vec<FleetEffects>,
    /// Rows of a ladder.
    pub ladder: Vec<LadderRow>,
    /// Effect of each suspect of a ladder on the others.
    pub poisonings: Vec<HostPoisoning>,
    /// Findings, strongest first.
    pub findings: Vec<Finding>,
    /// Rounds that were run.
    pub rounds: usize,
    /// Why the run ended before all of its rounds.
    pub ended: Option<FleetEnd>,
}

/// Why a run ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FleetEnd {
    /// Its time had passed.
    Budget,
    /// The user cancelled it.
    Cancelled,
    /// The coordinator could not continue. With the reason.
    Failed(String),
}

impl FleetEnd {
    /// The reason of the tasks that were not run.
    fn reason(&self) -> NotRunReason {
        match self {
            Self::Budget => NotRunReason::Budget,
            Self::Cancelled => NotRunReason::Cancelled,
            Self::Failed(_) => NotRunReason::Failed,
        }
    }
}

/// Runs a plan. `finished` are the cells of an earlier part of the same run: their tasks are not
/// run again, except those without a result and those of a ladder step that is not complete.
///
/// All tasks run first. A task that a host did not confirm in time runs once more after them. Then
/// follow, as the plan allows, tests of suspects with good hosts, and the same tests alone; of a
/// ladder, rounds without each suspect.
pub fn explore<R: RoundRunner>(
    plan: &FleetPlan,
    finished: Vec<Cell>,
    runner: &mut R,
) -> FleetOutcome {
    let mut run = Run::new(plan, finished, runner);
    match plan.topology.hub() {
        Some(hub) => explore_ladder(plan, hub, run),
        None => {
            run.tasks(plan.tasks(), plan.mode);
            explore_suspects(plan, &mut run);
            let control = match plan.has_control && matches!(plan.mode, FleetMode::Rounds) {
                true => sample::control(plan, &plan.tasks()),
                false => Vec::new(),
            };
            run.tasks(control, FleetMode::Isolated);
            conclude(plan, run)
        }
    }
}

/// Tests of suspects with good hosts, in stages: each is a function of the cells before it.
fn explore_suspects<R: RoundRunner>(plan: &FleetPlan, run: &mut Run<'_, R>) {
    for _ in 0..sample::STAGES_MAX {
        let analyses = analyses(plan, run.cells.values());
        let suspects: BTreeSet<HostId> = analyses.iter().flat_map(Analysis::suspects).collect();
        let suspects: Vec<HostId> = suspects
            .into_iter()
            .filter(|host| run.alive.contains(host))
            .collect();
        let mut references = analyses.first().map_or_else(Vec::new, Analysis::references);
        references.retain(|host| run.alive.contains(host));

        let known: BTreeSet<Task> = run.cells.keys().cloned().collect();
        let tasks = sample::adaptive(plan, &suspects, &references, &known);
        if !plan.is_adaptive || tasks.is_empty() || run.ended.is_some() {
            return;
        }

        run.tasks(tasks, plan.mode);
    }
}

/// One analysis for each path and variant.
fn analyses<'a>(plan: &FleetPlan, cells: impl Iterator<Item = &'a Cell>) -> Vec<Analysis> {
    let mut treatments: BTreeMap<(&str, &str), Vec<&Cell>> = BTreeMap::new();
    for cell in cells.filter(|cell| cell.mode == plan.mode) {
        treatments
            .entry((&cell.task.path, &cell.task.variant))
            .or_default()
            .push(cell);
    }

    let racks = plan.racks();
    treatments
        .into_values()
        .filter_map(|cells| super::analyse(&cells, &racks))
        .collect()
}

fn conclude<R: RoundRunner>(plan: &FleetPlan, run: Run<'_, R>) -> FleetOutcome {
    let analyses = analyses(plan, run.cells.values());
    let racks = plan.racks();
    let mut findings: Vec<Finding> = Vec::new();

    for analysis in &analyses {
        let effects = &analysis.effects;
        let before = findings.len();
        findings.extend(super::findings(analysis, &racks));

        let is_of =
            |cell: &&Cell| *cell.task.path == effects.path && *cell.task.variant == effects.variant;
        let (alone, together): (Vec<&Cell>, Vec<&Cell>) = run
            .cells
            .values()
            .filter(is_of)
            .partition(|cell| cell.mode != plan.mode);
        findings.extend(super::contention(&together, &alone));

        // Hosts behind a slow uplink are a group that is explained.
        if analysis.uplinks.is_empty() {
            findings.extend(run.groups(&together, None));
        }

        if analyses.len() > 1 {
            let varied = if effects.variant.is_empty() {
                String::new()
            } else {
                format!(", {}", effects.variant)
            };
            let place = Evidence::statement(format!("path {}{varied}", effects.path));
            findings
                .iter_mut()
                .skip(before)
                .for_each(|finding| finding.evidence.insert(0, place.clone()));
        }
    }

    let effects = analyses
        .into_iter()
        .map(|analysis| analysis.effects)
        .collect();
    run.into_outcome(findings, effects, Vec::new(), Vec::new())
}

fn explore_ladder<R: RoundRunner>(
    plan: &FleetPlan,
    hub: &HostId,
    mut run: Run<'_, R>,
) -> FleetOutcome {
    let steps = ladder::among(ladder::steps(plan, &[]), &run.alive, &run.finished());
    run.steps(&steps);
    run.give_up(&plan.tasks(), FleetMode::Ladder);

    let rows = ladder_analysis::rows(&steps, &run.cells);
    let mut findings = Vec::new();
    let mut poisonings = Vec::new();

    for (direction, suspect) in ladder_analysis::suspects(&rows) {
        for (path, variant) in plan.treatments() {
            let poison = ladder::poison(plan, direction, &suspect);
            let mut steps = ladder::among(poison, &run.alive, &run.finished());
            steps.retain(|step| step.path == *path && step.variant == *variant);
            run.steps(&steps);

            let Some((rates, finding)) = ladder_analysis::poisoning(&steps, &suspect, &run.cells)
            else {
                continue;
            };
            poisonings.push(HostPoisoning {
                direction,
                suspect: suspect.clone(),
                rates,
            });
            findings.extend(finding);
        }
    }

    findings.extend(ladder_analysis::findings(hub, &rows));
    let alone = ladder_analysis::alone(&steps, &run.cells);
    findings.extend(
        alone
            .iter()
            .filter_map(|cells| run.groups(cells, Some(hub))),
    );

    let line_bps = run.runner.link_bps(hub);
    findings.extend(
        line_bps
            .map(|bps| ladder_analysis::asymmetries(hub, &rows, bps))
            .unwrap_or_default(),
    );
    run.into_outcome(findings, Vec::new(), rows, poisonings)
}
