//! Effect of a line of the coordinator in each state.

use std::collections::VecDeque;

use super::{Action, Agent, AgentState, Pending, Service, StopReason};
use crate::protocol::lease::Lease;
use crate::protocol::line::Excess;
use crate::protocol::message::{
    AgentMessage, CoordinatorMessage, Envelope, FAULTS_MAX, Fail, FailCode, Plan, Preflight, decode,
};
use linerate_model::record::RunId;

impl Agent {
    /// Takes a line of the coordinator without its end.
    pub fn handle_line(&mut self, now_ns: u64, line: &[u8]) {
        if self.is_closed {
            return;
        }

        match decode::<CoordinatorMessage>(line) {
            Ok(envelope) => self.handle_message(now_ns, envelope),
            Err(fail) => self.handle_fault(fail),
        }
    }

    /// Takes a line that exceeds the bound of its length.
    pub fn handle_too_long(&mut self) {
        if !self.is_closed {
            self.handle_fault(Fail::new(FailCode::Limit, None, Excess::Line.to_string()));
        }
    }

    /// Answers the first lines that are no message; all of them change nothing.
    fn handle_fault(&mut self, fail: Fail) {
        self.faults = self.faults.saturating_add(1);
        if self.faults <= FAULTS_MAX {
            self.fail(fail);
        }
    }

    fn handle_message(&mut self, now_ns: u64, envelope: Envelope<CoordinatorMessage>) {
        let Envelope {
            run,
            epoch,
            seq,
            message,
        } = envelope;
        // Before run and epoch are checked: a new coordinator asks agents of an earlier run too.
        if matches!(message, CoordinatorMessage::Solicit {}) {
            return self.actions.push_back(Action::Describe);
        }

        // A coordinator that lost its lease does not know that another one has taken over.
        if epoch < self.epoch {
            let text = format!("epoch {epoch}, but {} is in charge", self.epoch);
            return self.fail(Fail::new(FailCode::Epoch, Some(seq), text));
        }

        let Some(run) = run.filter(|run| self.run.is_none_or(|own| own == *run)) else {
            return self.fail(Fail::new(FailCode::Run, Some(seq), "another run, or none"));
        };
        match message {
            CoordinatorMessage::Beat {} => {
                // A BEAT without a plan has no lease to renew.
                if self.run.is_some() {
                    self.epoch = epoch;
                    self.renew(now_ns);
                }
            }
            // Readings are not executed once: a repeated CLOCK needs fresh readings.
            CoordinatorMessage::Clock { c1_ns } if self.run.is_some() => {
                let a2_ns = now_ns;
                self.actions.push_back(Action::ReadClock { c1_ns, a2_ns });
            }
            command => self.handle_command(now_ns, (run, epoch, seq), command),
        }
    }

    /// Commands that are executed once.
    fn handle_command(&mut self, now_ns: u64, id: (RunId, u64, u64), command: CoordinatorMessage) {
        let (run, epoch, seq) = id;
        match self.commands.check_sequence(run, epoch, seq) {
            SequenceCheck::Pending => {}
            // The answer was lost; the command is not executed twice.
            SequenceCheck::Answered(line) => self.actions.push_back(Action::Send(line)),
            SequenceCheck::Old => {
                let text = "a later command was executed";
                self.fail(Fail::new(FailCode::Order, Some(seq), text));
            }
            SequenceCheck::New => {
                // The number is kept before the execution, so a repeated command finds it pending.
                self.epoch = epoch;
                self.commands.begin(run, epoch, seq);
                self.renew(now_ns);

                if let Err((code, text)) = self.execute(now_ns, run, seq, command) {
                    self.refuse(seq, code, text);
                }
            }
        }
    }

    fn execute(
        &mut self,
        now_ns: u64,
        run: RunId,
        seq: u64,
        command: CoordinatorMessage,
    ) -> Result<(), (FailCode, String)> {
        match (self.state, &self.pending, command) {
            // CANCEL fits every state; other commands fit one state without a pending command.
            (_, _, CoordinatorMessage::Cancel { round }) => self.cancel(now_ns, seq, round),
            (AgentState::Idle, None, CoordinatorMessage::Plan(plan)) => {
                self.plan(now_ns, run, seq, plan);
            }
            (AgentState::Planned, None, CoordinatorMessage::Preflight(preflight)) => {
                self.preflight(seq, preflight);
            }
            (AgentState::Planned, None, CoordinatorMessage::Arm(arm)) => {
                return self.arm(now_ns, seq, *arm);
            }
            (AgentState::Armed, None, CoordinatorMessage::Go(go)) => return self.go(now_ns, &go),
            (state, ..) => {
                let text = format!("does not fit the state {state:?}");
                return Err((FailCode::State, text));
            }
        }

        Ok(())
    }

    fn plan(&mut self, now_ns: u64, run: RunId, seq: u64, plan: Box<Plan>) {
        self.run = Some(run);
        // The deadline for a plan has been met; the lease bounds the time from here on.
        self.plan_until_ns = None;
        self.last_round = 0;
        self.unconfirmed_round = None;
        self.faults = 0;
        self.lease = Some(Lease::new(now_ns, plan.lease_ms));
        self.actions.push_back(Action::Prepare(plan.clone()));
        self.pending = Some(Pending::Plan { seq, plan });
    }

    fn preflight(&mut self, seq: u64, preflight: Preflight) {
        // ARM is checked against these addresses, so they are known before the probes answer.
        self.partners.clone_from(&preflight.partners);
        self.pending = Some(Pending::Preflight { seq });
        self.actions.push_back(Action::Probe(Box::new(preflight)));
    }

    fn cancel(&mut self, now_ns: u64, seq: u64, round: Option<u32>) {
        let present = self.round.as_ref().map(|round| round.number);
        match &mut self.pending {
            // The run ends already, or this round does: the answer belongs to the latest CANCEL,
            // whose number is the one that is awaited.
            Some(Pending::Stop(stop)) if stop.round.is_none() || stop.round == round => {
                stop.seq = Some(seq);
            }
            _ if round.is_none() => {
                // The agent of a bus stays after a run, so a repeated CANCEL finds none.
                if self.run.is_none() && self.service == Service::Bus {
                    let unconfirmed = false;
                    return self.answer(seq, AgentMessage::Done { round, unconfirmed });
                }
                self.stop(now_ns, Some(seq), None, StopReason::Cancel);
            }
            _ if round == present => self.stop(now_ns, Some(seq), round, StopReason::Cancel),
            // The round has ended as far as is known, or was never here.
            _ => {
                let unconfirmed = self.unconfirmed_round == round;
                self.answer(seq, AgentMessage::Done { round, unconfirmed });
            }
        }
    }

    fn renew(&mut self, now_ns: u64) {
        if let Some(lease) = &mut self.lease {
            lease.renew(now_ns);
        }
    }

    /// Sends the answer to a command and keeps it.
    pub(super) fn answer(&mut self, seq: u64, message: AgentMessage) {
        match self.send(message) {
            Some(line) => self.commands.answer(seq, line),
            None => {
                let text = "the answer is beyond the bounds of a message";
                self.refuse(seq, FailCode::Failed, text.to_owned());
            }
        }
    }

    /// Sends FAIL as the answer to a command and keeps it.
    pub(super) fn refuse(&mut self, seq: u64, code: FailCode, text: String) {
        let fail = Fail::new(code, Some(seq), text);
        if let Some(line) = self.send(AgentMessage::Fail(fail)) {
            self.commands.answer(seq, line);
        }
    }

    fn fail(&mut self, fail: Fail) {
        self.send(AgentMessage::Fail(fail));
    }
}

/// Commands whose answers are kept.
const RECENT_MAX: usize = 16;

/// Meaning of a number.
pub(super) enum SequenceCheck {
    /// Execute it.
    New,
    /// It is executed and has no answer, or none yet.
    Pending,
    /// It was executed: repeat the answer.
    Answered(String),
    /// A later command was executed before it.
    Old,
}

/// Latest commands of one coordinator.
#[derive(Debug, Default)]
pub(super) struct Commands {
    of: Option<(RunId, u64)>,
    highest: u64,
    recent: VecDeque<(u64, Option<String>)>,
}

impl Commands {
    fn check_sequence(&self, run: RunId, epoch: u64, seq: u64) -> SequenceCheck {
        // Numbers of another coordinator begin at 1 and say nothing about those of this one.
        if self.of != Some((run, epoch)) {
            return SequenceCheck::New;
        }

        match self.recent.iter().find(|(known, _)| *known == seq) {
            Some((_, Some(answer))) => SequenceCheck::Answered(answer.clone()),
            Some((_, None)) => SequenceCheck::Pending,
            None if seq > self.highest => SequenceCheck::New,
            // The command left the window of kept answers or was overtaken; its answer is not
            // known.
            None => SequenceCheck::Old,
        }
    }

    /// Notes a command that is new.
    pub(super) fn begin(&mut self, run: RunId, epoch: u64, seq: u64) {
        if self.of != Some((run, epoch)) {
            *self = Self {
                of: Some((run, epoch)),
                ..Self::default()
            };
        }

        self.highest = seq;
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }

        self.recent.push_back((seq, None));
    }

    /// Keeps the answer to a command.
    pub(super) fn answer(&mut self, seq: u64, line: String) {
        if let Some((_, answer)) = self.recent.iter_mut().find(|(known, _)| *known == seq) {
            *answer = Some(line);
        }
    }
}
