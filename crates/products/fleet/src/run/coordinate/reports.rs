//! Reports that arrive about the tasks of a round.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::cell::{Received, TaskReport, cells};
use super::rounds::Rounds;
use crate::TaskId;
use crate::conclude::RoundRunner;
use crate::plan::{PlannedRun, task_id};
use crate::protocol::coordinator::{
    Action, Coordinator, KeptResult, NotRun, is_plausible, kept_results,
};
use crate::protocol::message::Role;
use linerate_model::fleet::{Cell, Task};
use linerate_model::printable::printable;
use linerate_sys::clock::monotonic_ns;

/// Reports of the tasks of a round.
#[derive(Default)]
pub(super) struct Reports {
    pub tasks: BTreeMap<TaskId, TaskReport>,
    /// Text of the last FAIL.
    refusal: Option<String>,
}

impl Reports {
    /// Takes an action of the coordinator; returns true if the round has ended.
    pub(super) fn take(&mut self, coordinator: &Coordinator, action: Action) -> bool {
        match action {
            // The tasks that it ends follow.
            Action::Failed { fail, .. } => self.refusal = Some(printable(&fail.text)),
            Action::Result(result) => {
                let estimate = coordinator.clock(result.host, monotonic_ns());
                let offset_ns = estimate.map(|estimate| estimate.offset_ns);
                let of = *result;
                let received =
                    Received::new(of.role, of.end, &of.record, of.is_plausible, offset_ns);
                self.tasks.entry(of.task).or_default().take(received);
            }
            Action::NotRun { task, reason } => {
                let detail = match reason {
                    // FAIL has the words of the host; the code alone would not explain the refusal.
                    NotRun::Refused(_) => self.refusal.clone().unwrap_or_default(),
                    _ => reason.to_string(),
                };
                self.tasks.entry(task).or_default().not_run = Some((reason, detail));
            }
            Action::RoundDone { .. } => return true,
            _ => {}
        }

        false
    }
}

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
