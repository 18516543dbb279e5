//! Ends of tasks and their results.

use super::record_parts::parts;
use super::tasks::{Finish, PendingResult, RunTask};
use super::{Action, Agent, HOST_WINDOW_TIMEOUT_NS, StopReason};
use crate::TaskId;
use crate::protocol::message::{
    AgentMessage, AgentState, JsonText, TaskEnd, TaskResult, shortened,
};

/// Longest counters of a host in bytes.
const HOST_WINDOW_MAX_BYTES: usize = 32 << 10;

impl Agent {
    /// A worker ended. Tasks that have ended are not reported again.
    pub(super) fn finish(&mut self, now_ns: u64, mut finish: Finish) {
        let Some(round) = &mut self.round else {
            return;
        };
        let Some(task) = round.task(finish.task) else {
            return;
        };
        task.is_over = true;
        finish.end.planned_ns = finish.end.planned_ns.or(task.planned_ns);

        let number = round.number;
        // Further tasks run, so this result is sent without counters of the host.
        if !round.is_over() {
            return self.send_result(number, finish, None);
        }

        // The counters of the host cover the whole round, so its last result waits for them.
        round.held = Some(PendingResult {
            finish,
            until_ns: now_ns.saturating_add(HOST_WINDOW_TIMEOUT_NS),
        });
        self.actions.push_back(Action::ReadHost {
            round: number,
            is_after: true,
        });
    }

    /// The counters of the host arrived, or do not arrive: the round ends.
    pub(super) fn release(&mut self, window: Option<JsonText>) {
        let Some(round) = &mut self.round else {
            return;
        };
        let Some(held) = round.held.take() else {
            // A second call finds nothing held: counters that arrive after the deadline are
            // dropped.
            return;
        };
        let number = round.number;

        self.become_idle(AgentState::Planned);
        self.send_result(number, held.finish, window);
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
            self.finish(now_ns, Finish::without_record(task, end));
        }
    }

    /// Reports all tasks of the round that have no result, and what is held.
    pub(super) fn abort_tasks(&mut self, reason: StopReason) {
        // A held result is complete and is sent before the aborted ones.
        self.release(None);
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
            self.send_result(number, Finish::without_record(task, end), None);
        }
    }

    fn send_result(&mut self, round: u32, finish: Finish, window: Option<JsonText>) {
        let Finish {
            task,
            mut end,
            record,
        } = finish;
        end.reason = end.reason.map(shortened);

        // A record beyond the bound is not cut: a part of JSON is of no value to its reader.
        let pieces = parts(&record).unwrap_or_else(|| {
            end.reason
                .get_or_insert_with(|| format!("the record is left out: {} bytes", record.len()));
            vec![Vec::new()]
        });
        let count = u32::try_from(pieces.len()).unwrap_or(u32::MAX);
        let mut end = Some(end);
        // The bound leaves room: pieces take up to 192 KiB of a line of 256 KiB.
        let mut window = window.filter(|window| window.as_str().len() <= HOST_WINDOW_MAX_BYTES);

        for (part, record) in (0..).zip(pieces) {
            // Both belong to part 0; the later parts have pieces of the record only.
            let (end, host_window) = (end.take(), window.take());
            let result = TaskResult {
                round,
                task,
                part,
                parts: count,
                end,
                host_window,
                record,
            };
            let plain = result.host_window.is_some().then(|| TaskResult {
                host_window: None,
                ..result.clone()
            });
            let is_sent = self.send(AgentMessage::Result(Box::new(result))).is_some();

            // Counters beyond the bounds of a message are left out.
            if let Some(plain) = plain.filter(|_| !is_sent) {
                self.send(AgentMessage::Result(Box::new(plain)));
            }
        }
    }
}
