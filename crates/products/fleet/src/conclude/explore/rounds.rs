//! State of a run: cells, hosts, time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use linerate_model::finding::Finding;
use linerate_model::fleet::{
    Cell, CellFlag, CellOutcome, FLEET_SCHEMA, FleetHeader, FleetHost, FleetMode, FleetReport,
    HostId, NotRun, NotRunReason, Round, Task,
};

use crate::conclude::runner::{FleetProgress, RoundRunner};
use crate::conclude::{because, groups, ranked};
use crate::plan::ladder::{self, Step};
use crate::plan::{PlannedRun, rounds};

/// A run that is being made.
pub(super) struct Run<'a, R> {
    pub planned: &'a PlannedRun,
    pub runner: &'a mut R,
    pub cells: BTreeMap<Task, Cell>,
    pub alive: BTreeSet<HostId>,
    pub ended: Option<NotRun>,
    started: Duration,
    rounds_done: usize,
}

impl<'a, R: RoundRunner> Run<'a, R> {
    pub(super) fn new(planned: &'a PlannedRun, finished: Vec<Cell>, runner: &'a mut R) -> Self {
        let mut cells = BTreeMap::new();
        for cell in finished {
            // A resumed run repeats the tests that have no result.
            if cell.measurement().is_some() {
                cells.insert(cell.task.clone(), cell);
            }
        }

        Self {
            planned,
            cells,
            alive: runner.alive(),
            started: runner.now(),
            runner,
            ended: None,
            rounds_done: 0,
        }
    }

    /// Runs tasks that have no cell yet, and once more those that a host did not confirm in time.
    pub(super) fn tasks(&mut self, mut tasks: Vec<Task>) {
        tasks.retain(|task| !self.cells.contains_key(task));
        let unconfirmed = self.passes(tasks.clone(), false);
        // The second pass repeats nothing any more, so a host that stays slow does not hold the
        // run.
        self.passes(unconfirmed.into_iter().collect(), true);
        self.give_up(&tasks, self.planned.plan.mode);
    }

    /// Runs tasks in rounds, which are recomputed when hosts leave or return. Returns the tasks
    /// that may be run once more.
    fn passes(&mut self, mut open: Vec<Task>, is_catch_up: bool) -> BTreeSet<Task> {
        let plan = &self.planned.plan;
        let mut again = BTreeSet::new();
        loop {
            let planned = rounds(&open, &self.alive, plan);
            let is_changed = self.pass(&planned, is_catch_up, &mut again);
            if !is_changed {
                return again;
            }

            open.retain(|task| !self.cells.contains_key(task) && !again.contains(task));
        }
    }

    /// Runs rounds until the hosts change. Whether they did.
    fn pass(&mut self, planned: &[Round], is_catch_up: bool, again: &mut BTreeSet<Task>) -> bool {
        for (at, round) in planned.iter().enumerate() {
            let left = planned.get(at..).unwrap_or_default();
            let Some(cells) = self.run(round, left, again.len()) else {
                return false;
            };
            let (unconfirmed, cells): (Vec<Cell>, _) = cells
                .into_iter()
                // In the catch-up pass every outcome is final.
                .partition(|cell| !is_catch_up && is_transient(cell));
            again.extend(unconfirmed.into_iter().map(|cell| cell.task));
            self.keep(cells, is_catch_up);

            if self.has_changed() {
                return true;
            }
        }

        false
    }

    fn keep(&mut self, mut cells: Vec<Cell>, is_catch_up: bool) {
        for cell in &mut cells {
            if let CellOutcome::Measured(measurement) = &mut cell.outcome
                && is_catch_up
            {
                // A catch-up round has other tests beside it than the planned one.
                measurement.flags.push(CellFlag::CaughtUp);
            }
        }

        self.runner.keep(&cells);
        for cell in cells {
            self.cells.insert(cell.task.clone(), cell);
        }
    }

    /// Looks which hosts are alive. Whether others are than before.
    fn has_changed(&mut self) -> bool {
        let alive = self.runner.alive();
        let has_changed = alive != self.alive;
        self.alive = alive;
        has_changed
    }

    /// Runs steps of a ladder that have no result yet and whose hosts are alive, and once more
    /// those that a host did not confirm in time.
    pub(super) fn steps(&mut self, steps: &[Step]) {
        let finished = self.finished();
        self.pass_of_steps(&ladder::rounds(steps, &finished), false);
        let is_unconfirmed = |task: &Task| self.cells.get(task).is_some_and(is_transient);
        let mut again = ladder::rounds(steps, &BTreeSet::new());
        // A step is comparable only as a whole, so all of its tasks run again.
        again.retain(|round| round.tasks.iter().any(is_unconfirmed));
        self.pass_of_steps(&again, true);

        let tasks: Vec<Task> = steps.iter().flat_map(|step| &step.tasks).cloned().collect();
        self.give_up(&tasks, FleetMode::Ladder);
    }

    /// Tasks with a result.
    pub(super) fn finished(&self) -> BTreeSet<Task> {
        let cells = self.cells.iter();
        let finished = cells.filter(|(_, cell)| cell.measurement().is_some());
        finished.map(|(task, _)| task.clone()).collect()
    }

    fn pass_of_steps(&mut self, planned: &[Round], is_catch_up: bool) {
        for (at, round) in planned.iter().enumerate() {
            // A step without one of its hosts would be another step.
            if round.tasks.iter().any(|task| !self.can_run(task)) {
                continue;
            }

            let Some(cells) = self.run(round, planned.get(at..).unwrap_or_default(), 0) else {
                return;
            };
            self.keep(cells, is_catch_up);
            self.has_changed();
        }
    }

    fn can_run(&self, task: &Task) -> bool {
        self.alive.contains(&task.source) && self.alive.contains(&task.sink)
    }

    /// One cell for each task of a round, the first of those that are left; `None` when the run has
    /// ended. `unconfirmed` tasks of other rounds run once more.
    fn run(&mut self, round: &Round, left: &[Round], unconfirmed: usize) -> Option<Vec<Cell>> {
        if self.ended.is_some() {
            return None;
        }

        let elapsed = self.runner.now().saturating_sub(self.started);
        let plan = &self.planned.plan;
        if elapsed + plan.round_time > plan.budget {
            self.ended = Some(NotRun::new(NotRunReason::Budget));
            return None;
        }

        let mut cells_left = unconfirmed;
        for task in left.iter().flat_map(|round| &round.tasks) {
            cells_left += usize::from(!self.cells.contains_key(task));
        }
        let rounds_left = u32::try_from(left.len()).unwrap_or(u32::MAX);
        self.runner.progress(&FleetProgress {
            rounds_done: self.rounds_done,
            rounds_planned: self.rounds_done + left.len(),
            cells_left,
            left: plan.round_time.saturating_mul(rounds_left),
        });
        match self.runner.run(round) {
            Ok(cells) => {
                self.rounds_done += 1;
                Some(complete(round, cells))
            }
            Err(error) => {
                self.ended = Some(error.into());
                None
            }
        }
    }

    /// Gives tasks without a cell their reason.
    pub(super) fn give_up(&mut self, tasks: &[Task], mode: FleetMode) {
        for task in tasks {
            let reason = match &self.ended {
                // A host that left explains more than the end of the run.
                _ if !self.can_run(task) => NotRunReason::Unreachable,
                Some(ended) => ended.reason,
                None => NotRunReason::Failed,
            };
            let outcome = CellOutcome::NotRun(NotRun::new(reason));
            self.cells
                .entry(task.clone())
                .or_insert_with(|| Cell::new(task.clone(), mode, outcome));
        }
    }

    /// The finding about two groups of hosts, with what separates them.
    pub(super) fn groups(&self, cells: &[&Cell], hub: Option<&HostId>) -> Option<Finding> {
        let (groups, finding) = groups::finding(cells, hub)?;
        let separating = self.runner.separating(&groups.fast, &groups.slow);
        Some(because(finding, separating))
    }

    /// The report, without what the owner of the run knows alone.
    pub(super) fn into_report(self, findings: Vec<Finding>) -> FleetReport {
        let plan = &self.planned.plan;
        let mut hosts = Vec::new();
        for host in &plan.hosts {
            hosts.push(FleetHost {
                id: host.id.clone(),
                rack: host.rack.clone(),
                link_bps: self.runner.link_bps(&host.id),
                is_target_only: host.is_target_only,
            });
        }
        let header = FleetHeader {
            hosts,
            run_id: None,
            plan: self.planned.hash,
            topology: (&plan.topology).into(),
            mode: plan.mode,
            direction: plan.direction,
            is_control_shared: false,
            rounds: self.rounds_done,
            elapsed_ns: 0,
            seed: plan.seed,
            ended: self.ended,
        };

        FleetReport {
            schema: FLEET_SCHEMA.to_owned(),
            header,
            cells: self.cells.into_values().collect(),
            effects: Vec::new(),
            ladder: Vec::new(),
            poisonings: Vec::new(),
            findings: ranked(findings),
        }
    }
}

/// A task has no result for a reason that another round may not have.
fn is_transient(cell: &Cell) -> bool {
    let CellOutcome::NotRun(not_run) = &cell.outcome else {
        return false;
    };
    matches!(
        not_run.reason,
        NotRunReason::SlowControl | NotRunReason::Late | NotRunReason::Lease
    )
}

/// The cells of a round, in the order of its tasks. Cells of other tasks are left out.
fn complete(round: &Round, cells: Vec<Cell>) -> Vec<Cell> {
    let mut by_task: BTreeMap<Task, Cell> = BTreeMap::new();
    for cell in cells {
        by_task.insert(cell.task.clone(), cell);
    }

    let mut complete = Vec::new();
    for task in &round.tasks {
        let mut cell = by_task.remove(task).unwrap_or_else(|| {
            let not_run = NotRun {
                reason: NotRunReason::Failed,
                detail: Some("no result".to_owned()),
            };
            Cell::new(task.clone(), round.mode, CellOutcome::NotRun(not_run))
        });
        cell.mode = round.mode;
        complete.push(cell);
    }

    complete
}
