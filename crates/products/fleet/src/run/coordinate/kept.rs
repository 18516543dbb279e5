//! Results that agents kept while the coordinator was away.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::cell::{Received, TaskReport, cells};
use super::rounds::Rounds;
use crate::TaskId;
use crate::conclude::RoundRunner;
use crate::plan::{PlannedRun, task_id};
use crate::protocol::coordinator::{KeptResult, is_plausible, kept_results};
use crate::protocol::message::Role;
use linerate_model::fleet::{Cell, Task};
use linerate_sys::clock::monotonic_ns;

impl Rounds<'_> {
    /// Cells of the tasks that have a result. They are kept like those of a round.
    pub(super) fn take_over(&mut self, run: &PlannedRun) -> Vec<Cell> {
        let results = kept_results(std::mem::take(&mut self.connected.control.history));
        if results.is_empty() {
            return Vec::new();
        }

        let mut tasks: HashMap<TaskId, &Task> = HashMap::new();
        for task in &run.tasks {
            tasks.insert(task_id(self.plan, task), task);
        }
        let mut rounds: BTreeMap<(u64, u32), BTreeMap<TaskId, TaskReport>> = BTreeMap::new();
        for result in results {
            let (round, id) = (result.round, result.task);
            let task = tasks.get(&id);
            if let Some(received) = task.and_then(|task| self.received(task, result)) {
                let reports = rounds.entry(round).or_default();
                reports.entry(id).or_default().take(received);
            }
        }

        let mut finished = Vec::new();
        for reports in rounds.into_values() {
            let mut of_round = Vec::new();
            for id in reports.keys() {
                of_round.push(self.planned_cell(tasks[id], *id));
            }
            finished.extend(cells(run.plan.mode, &of_round, reports, self.test));
        }

        finished.retain(|cell| cell.measurement().is_some());
        self.keep(&finished);
        finished
    }

    fn received(&self, task: &Task, result: KeptResult) -> Option<Received> {
        let round_task = self.round_task(task, result.task, Duration::ZERO)?;
        let (host, end) = (result.host, result.end);
        let role = match round_task.client.host == host {
            true => Role::Client,
            false => Role::Server,
        };

        let is_plausible = is_plausible(&end, &round_task.client.spec, round_task.nominal_bps);
        let coordinator = &self.connected.control.coordinator;
        let estimate = coordinator.clock(host, monotonic_ns());
        let offset_ns = estimate.map(|estimate| estimate.offset_ns);
        Some(Received::new(
            role,
            end,
            &result.record,
            is_plausible,
            offset_ns,
        ))
    }
}
