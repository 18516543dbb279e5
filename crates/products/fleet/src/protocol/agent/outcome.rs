//! Ends of tasks and their results.

use super::record_parts::parts;
use super::tasks::{Finish, RunTask};
use super::{Action, Agent, AgentState, StopReason};
use crate::TaskId;
use crate::protocol::message::{AgentMessage, TaskEnd, TaskResult, shortened};

impl Agent {
    /// A worker ended. Tasks that have ended are not reported again.
    pub(super) fn finish(&mut self, mut finish: Finish) {
        let Some(round) = &mut self.round else {
            return;
        };
        let Some(task) = round.task(finish.task) else {
            return;
        };
        task.is_over = true;
        finish.end.planned_ns = finish.end.planned_ns.or(task.planned_ns);

        let number = round.number;
        if round.is_over() {
            self.become_idle(AgentState::Planned);
        }

        self.send_result(number, finish);
    }

    /// Ends tasks that take too long. `now_ns` is at or after their deadline.
    pub(super) fn end_late_tasks(&mut self, now_ns: u64) {
        let Some(round) = &self.round else {
            return;
        };
        let is_late = |task: &&RunTask| !task.is_over && now_ns >= task.deadline_ns;
        let late: Vec<TaskId> = round
            .tasks
            .iter()
            .filter(is_late)
            .map(|task| task.spec.task)
            .collect();
        for task in late {
            self.actions.push_back(Action::StopTask {
                task,
                reason: StopReason::Deadline,
            });
            let end = TaskEnd::aborted(StopReason::Deadline.as_str());
            // The result does not wait for the worker, whose end may take up to the limit of
            // SIGKILL.
            self.finish(Finish::without_record(task, end));
        }
    }

    /// Reports all tasks of the round that have no result.
    pub(super) fn abort_tasks(&mut self, reason: StopReason) {
        let Some(round) = &mut self.round else {
            return;
        };
        let number = round.number;

        let open: Vec<(TaskId, Option<u64>)> = round
            .tasks
            .iter_mut()
            .filter(|task| !task.is_over)
            .map(|task| {
                task.is_over = true;
                (task.spec.task, task.planned_ns)
            })
            .collect();
        for (task, planned_ns) in open {
            let end = TaskEnd {
                planned_ns,
                ..TaskEnd::aborted(reason.as_str())
            };
            self.send_result(number, Finish::without_record(task, end));
        }
    }

    fn send_result(&mut self, round: u32, finish: Finish) {
        let Finish {
            task,
            mut end,
            record,
        } = finish;
        end.reason = end.reason.map(shortened);

        // A record beyond the bound is not cut: a part of JSON is of no value to its reader.
        let pieces = parts(&record).unwrap_or_else(|| {
            end.leave_out_record();
            vec![Vec::new()]
        });
        let count = u32::try_from(pieces.len()).unwrap_or(u32::MAX);
        let mut end = Some(end);

        for (part, record) in (0..).zip(pieces) {
            self.send(AgentMessage::Result(Box::new(TaskResult {
                round,
                task,
                part,
                parts: count,
                // It belongs to part 0; the later parts have pieces of the record only.
                end: end.take(),
                record,
            })));
        }
    }
}
