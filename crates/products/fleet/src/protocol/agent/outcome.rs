//! Inputs of the owner, and results of tasks. An input that arrives too late has no effect.

use super::{Action, Agent, AgentState, Finish, Input, Pending, StopReason};
use crate::TaskId;
use crate::protocol::line::STRING_MAX_BYTES;
use crate::protocol::message::{
    AgentMessage, FailCode, PARTS_MAX, Preflighted, TaskEnd, TaskResult, shortened,
};

impl Agent {
    /// Takes what the owner did or measured.
    pub fn handle_local(&mut self, input: Input) {
        if self.is_closed {
            return;
        }

        match input {
            Input::Hello(hello) => drop(self.send(AgentMessage::Hello(hello))),
            Input::Clock {
                c1_ns,
                a2_ns,
                a3_ns,
            } => {
                // A reading after the end of the run has no coordinator that waits for it.
                if self.run.is_some() {
                    self.send(AgentMessage::Clocked {
                        c1_ns,
                        a2_ns,
                        a3_ns,
                    });
                }
            }
            Input::Started { task, at_ns } => self.report_start(task, at_ns),
            // A worker that ends before all are ready has not started.
            Input::Finished(finish) if matches!(self.pending, Some(Pending::Arm { .. })) => {
                let reason = finish.end.reason;
                let text = reason.unwrap_or_else(|| "a worker ended".to_owned());
                self.handle_answer(Input::ArmFailed { text });
            }
            Input::Finished(finish) => self.finish(*finish),
            Input::Stopped(round) => self.handle_stopped(round),
            answer => self.handle_answer(answer),
        }
    }

    /// Answers to PLAN, PREFLIGHT and ARM.
    fn handle_answer(&mut self, input: Input) {
        match (self.pending.take(), input) {
            (Some(Pending::Plan { seq, plan }), Input::Planned { ports }) => {
                self.plan = Some(plan);
                self.state = AgentState::Planned;
                self.answer(seq, AgentMessage::Planned { ports });
            }
            (Some(Pending::Plan { seq, .. }), Input::PlanRefused { text }) => {
                self.refuse(seq, FailCode::Failed, text);
                // A refused plan leaves no trace, so that the agent of a bus accepts another run.
                self.forget_run();
            }
            (Some(Pending::Preflight { seq }), Input::Preflighted(report)) => {
                self.answer_preflight(seq, report);
            }
            (Some(Pending::Arm { seq }), Input::Armed) => {
                let round = self.last_round;
                self.answer(seq, AgentMessage::Armed { round });
            }
            (Some(Pending::Arm { seq }), Input::ArmFailed { text }) => {
                // Workers of the round that did start have to end before the next ARM.
                self.actions.push_back(Action::Stop {
                    round: Some(self.last_round),
                    reason: StopReason::Failed,
                });
                self.become_idle(AgentState::Planned);
                self.refuse(seq, FailCode::Failed, text);
            }
            // An answer that arrives after a CANCEL finds another command pending, or none.
            (pending, _) => self.pending = pending,
        }
    }

    fn answer_preflight(&mut self, seq: u64, report: Box<Preflighted>) {
        let plain = Preflighted {
            peers: report.peers.clone(),
            facts: None,
        };
        match self.send(AgentMessage::Preflighted(report)) {
            Some(line) => self.commands.answer(seq, line),
            // Facts beyond the bounds of a message are left out.
            None => self.answer(seq, AgentMessage::Preflighted(Box::new(plain))),
        }
    }

    fn report_start(&mut self, task: TaskId, at_ns: u64) {
        // Data after the end of a round belongs to no task, and a task starts once.
        if let Some(round) = &mut self.round
            && self.state == AgentState::Running
            && let Some(known) = round.task(task)
            && !std::mem::replace(&mut known.is_started, true)
        {
            let round = round.number;
            self.send(AgentMessage::Started { round, task, at_ns });
        }
    }

    /// A worker ended. Tasks that have ended are not reported again.
    fn finish(&mut self, mut finish: Finish) {
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
        let reason = StopReason::Deadline;
        let mut late = Vec::new();
        for task in self.round.iter().flat_map(|round| &round.tasks) {
            if !task.is_over && now_ns >= task.deadline_ns {
                late.push(task.spec.task);
            }
        }

        for task in late {
            self.actions.push_back(Action::StopTask { task, reason });
            // The result does not wait for the worker, whose end may take up to the limit of
            // SIGKILL.
            let end = TaskEnd::aborted(reason.as_str());
            self.finish(Finish::without_record(task, end));
        }
    }

    /// Reports all tasks of the round that have no result.
    pub(super) fn abort_tasks(&mut self, reason: StopReason) {
        let Some(round) = &mut self.round else {
            return;
        };
        let number = round.number;

        let mut open: Vec<(TaskId, Option<u64>)> = Vec::new();
        for task in &mut round.tasks {
            if !std::mem::replace(&mut task.is_over, true) {
                open.push((task.spec.task, task.planned_ns));
            }
        }

        for (task, planned_ns) in open {
            let mut end = TaskEnd::aborted(reason.as_str());
            end.planned_ns = planned_ns;
            self.send_result(number, Finish::without_record(task, end));
        }
    }

    fn send_result(&mut self, round: u32, finish: Finish) {
        let mut end = finish.end;
        end.reason = end.reason.map(shortened);

        // A record beyond the bound is not cut: a part of JSON is of no value to its reader.
        let pieces = parts(&finish.record).unwrap_or_else(|| {
            end.leave_out_record();
            vec![Vec::new()]
        });
        let parts = u32::try_from(pieces.len()).unwrap_or(u32::MAX);
        let mut end = Some(end);

        for (part, record) in (0..).zip(pieces) {
            self.send(AgentMessage::Result(Box::new(TaskResult {
                round,
                task: finish.task,
                part,
                parts,
                // It belongs to part 0; the later parts have pieces of the record only.
                end: end.take(),
                record,
            })));
        }
    }
}

/// Pieces of one part: 192 KiB, with room for the other members in a line.
const PIECES_PER_PART: usize = 48;

/// The pieces of each part; `None` when the record needs too many parts. An empty record is one
/// part without pieces.
pub(super) fn parts(record: &str) -> Option<Vec<Vec<String>>> {
    let mut parts = vec![Vec::new()];
    let mut rest = record;
    while !rest.is_empty() {
        if parts.last().map(Vec::len) == Some(PIECES_PER_PART) {
            if parts.len() == PARTS_MAX as usize {
                return None;
            }
            parts.push(Vec::new());
        }

        let (piece, behind) = rest.split_at(piece_len(rest));
        parts.last_mut()?.push(piece.to_owned());
        rest = behind;
    }

    Some(parts)
}

/// Bytes of the longest begin that is a string of [`STRING_MAX_BYTES`] as written.
fn piece_len(text: &str) -> usize {
    let mut written = 0;
    for (at, c) in text.char_indices() {
        written += written_bytes(c);
        // The character at this place would exceed the bound, so the piece ends before it.
        if written > STRING_MAX_BYTES {
            return at;
        }
    }

    text.len()
}

/// Bytes of a character in a string of JSON, RFC 8259 section 7.
fn written_bytes(c: char) -> usize {
    match c {
        // Lengths of the escapes of JSON (RFC 8259, section 7).
        '"' | '\\' | '\u{8}' | '\t' | '\n' | '\u{c}' | '\r' => 2,
        '\0'..='\u{1f}' => 6,
        c => c.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_to_the_record_and_fit_as_written() {
        for record in [
            "",
            "{}",
            &"\"".repeat(10_000),
            &"ä\0".repeat(5_000),
            &"x".repeat(1 << 20),
        ] {
            let parts = parts(record).expect("short enough");
            assert_eq!(parts.concat().concat(), *record);

            for piece in parts.iter().flatten() {
                let written = serde_json::to_string(piece).expect("JSON");
                assert!(written.len() <= STRING_MAX_BYTES + 2);
            }
        }
    }

    #[test]
    fn record_that_needs_more_than_sixteen_parts_has_none() {
        let max = PIECES_PER_PART * PARTS_MAX as usize * STRING_MAX_BYTES;
        assert_eq!(parts(&"x".repeat(max)).map(|parts| parts.len()), Some(16));
        assert_eq!(parts(&"x".repeat(max + 1)), None);
    }
}
