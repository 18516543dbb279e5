//! Cells of a run that an earlier coordinator began, from the results that a bus has kept.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::TaskId;
use crate::conclude::RoundRunner;
use crate::plan::{PlannedRun, task_id};
use crate::protocol::coordinator::{KeptResult, is_plausible, kept_results};
use crate::protocol::message::Role;
use linerate_model::fleet::{Cell, Task};
use linerate_sys::clock::monotonic_ns;

use super::cell::{Received, TaskReport, cells};
use super::rounds::Rounds;

impl Rounds<'_> {
    /// Cells of the tasks that have a result. They are kept like those of a round.
    pub(super) fn take_over(&mut self, run: &PlannedRun) -> Vec<Cell> {
        let results = kept_results(std::mem::take(&mut self.connected.control.history));
        let with_id = |task| (task_id(self.plan, task), task);
        let tasks: HashMap<TaskId, &Task> = match results.is_empty() {
            true => HashMap::new(),
            false => run.tasks.iter().map(with_id).collect(),
        };

        let mut rounds: BTreeMap<(u64, u32), BTreeMap<TaskId, TaskReport>> = BTreeMap::new();
        for result in results {
            let (round, id) = (result.round, result.task);
            let received = tasks.get(&id).and_then(|task| self.received(task, result));
            if let Some(received) = received {
                rounds
                    .entry(round)
                    .or_default()
                    .entry(id)
                    .or_default()
                    .take(received);
            }
        }

        let mut finished = Vec::new();
        for reports in rounds.into_values() {
            let of_round = reports
                .keys()
                .filter_map(|id| Some(self.planned_cell(tasks.get(id)?, *id)));
            let of_round: Vec<_> = of_round.collect();
            finished.extend(cells(run.plan.mode, &of_round, reports, self.test));
        }

        finished.retain(|cell| cell.measurement().is_some());
        self.keep(&finished);
        finished
    }

    fn received(&self, task: &Task, result: KeptResult) -> Option<Received> {
        let round_task = self.round_task(task, result.task, Duration::ZERO)?;
        let KeptResult {
            host, end, record, ..
        } = result;
        let role = if round_task.client.host == host {
            Role::Client
        } else {
            Role::Server
        };

        let is_plausible = is_plausible(&end, &round_task.client.spec, round_task.nominal_bps);
        let offset_ns = self
            .connected
            .control
            .coordinator
            .clock(host, monotonic_ns())
            .map(|estimate| estimate.offset_ns);

        Some(Received::new(role, end, &record, is_plausible, offset_ns))
    }
}
