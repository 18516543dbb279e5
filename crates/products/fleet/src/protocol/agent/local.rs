//! Inputs of the owner. One that arrives too late has no effect.

use super::{Action, Agent, AgentState, Input, Pending, StopReason};
use crate::TaskId;
use crate::protocol::message::{
    AgentMessage, Armed, Clocked, FailCode, Planned, Preflighted, Started,
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
            } if self.run.is_some() => {
                self.send(AgentMessage::Clocked(Clocked {
                    c1_ns,
                    a2_ns,
                    a3_ns,
                }));
            }
            // A reading after the end of the run has no coordinator that waits for it.
            Input::Clock { .. } => {}
            Input::Started { task, at_ns } => self.report_start(task, at_ns),
            // A worker that ends before all are ready has not started.
            Input::Finished(finish) if matches!(self.pending, Some(Pending::Arm { .. })) => {
                let text = finish
                    .end
                    .reason
                    .unwrap_or_else(|| "a worker ended".to_owned());
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
                self.answer(seq, AgentMessage::Planned(Planned { ports }));
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
                let Some(round) = self.round.as_ref().map(|round| round.number) else {
                    return;
                };
                self.answer(seq, AgentMessage::Armed(Armed { round }));
            }
            (Some(Pending::Arm { seq }), Input::ArmFailed { text }) => {
                // Workers of the round that did start have to end before the next ARM.
                if let Some(round) = self.round.as_ref().map(|round| round.number) {
                    let reason = StopReason::Failed;
                    self.actions.push_back(Action::StopRound { round, reason });
                }
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
        let is_running = self.state == AgentState::Running;
        // Data after the end of a round belongs to no task.
        let Some(round) = self.round.as_mut().filter(|_| is_running) else {
            return;
        };
        let number = round.number;
        // A task starts once; later notices of the same worker change nothing.
        let Some(known) = round.task(task).filter(|task| !task.is_started) else {
            return;
        };
        known.is_started = true;
        self.send(AgentMessage::Started(Started {
            round: number,
            task,
            at_ns,
        }));
    }
}
