//! The end of a round or run before its time.

use super::{
    Action, Agent, AgentState, LeaveReason, Pending, STOP_TIMEOUT_NS, Service, Stop, StopReason,
};
use crate::protocol::message::{AgentMessage, Done};

impl Agent {
    /// The stream of the coordinator ended. On a bus the lease decides.
    pub fn handle_lost(&mut self, now_ns: u64) {
        // A test continues while the broker of a bus is away; the lease bounds that.
        if self.is_closed || self.is_lost || self.service == Service::Bus {
            return;
        }

        self.is_lost = true;
        match &self.pending {
            // The run ends already, so its end needs no second request.
            Some(Pending::Stop(Stop { round: None, .. })) => {}
            _ => self.stop(now_ns, None, None, StopReason::Lost),
        }
    }

    /// Ends a round, or the run without one, and reports its tasks.
    pub(super) fn stop(
        &mut self,
        now_ns: u64,
        seq: Option<u64>,
        round: Option<u32>,
        reason: StopReason,
    ) {
        self.abort_tasks(reason);
        let stop = Stop {
            seq,
            round,
            reason,
            until_ns: now_ns.saturating_add(STOP_TIMEOUT_NS),
        };
        self.pending = Some(Pending::Stop(stop));

        match round {
            Some(round) => {
                self.become_idle(AgentState::Planned);
                self.actions.push_back(Action::StopRound { round, reason });
            }
            None => {
                self.become_idle(AgentState::Done);
                // Nothing renews the lease after the end of the run, and its expiry would end it
                // twice.
                self.lease = None;
                self.plan_until_ns = None;
                self.actions.push_back(Action::StopAll { reason });
            }
        }
    }

    /// The owner reported an end. A report about a round is none about the run.
    pub(super) fn handle_stopped(&mut self, round: Option<u32>) {
        if matches!(&self.pending, Some(Pending::Stop(stop)) if stop.round == round) {
            self.complete_stop(false);
        } else {
            self.unconfirmed_round.take_if(|open| round == Some(*open));
        }
    }

    /// A round or the run has ended, as far as is known.
    pub(super) fn complete_stop(&mut self, unconfirmed: bool) {
        let Some(Pending::Stop(Stop {
            seq, round, reason, ..
        })) = self
            .pending
            .take_if(|pending| matches!(pending, Pending::Stop(_)))
        else {
            return;
        };
        self.unconfirmed_round = round.filter(|_| unconfirmed);
        let done = Done { round, unconfirmed };

        match seq {
            Some(seq) => self.answer(seq, AgentMessage::Done(done)),
            // An end without a CANCEL answers no command.
            None => drop(self.send(AgentMessage::Done(done))),
        }

        match (round, self.service) {
            // The end of a round leaves the run with its plan.
            (Some(_), _) => {}
            (None, Service::Stream) => self.leave(LeaveReason::RunEnded(reason)),
            (None, Service::Bus) => self.forget_run(),
        }
    }

    /// The agent of a bus is ready for another run. The epoch stays: an older coordinator starts
    /// nothing.
    pub(super) fn forget_run(&mut self) {
        self.become_idle(AgentState::Idle);
        self.run = None;
        self.plan = None;
        self.partners = Vec::new();
        self.lease = None;
        self.faults = 0;
    }
}
