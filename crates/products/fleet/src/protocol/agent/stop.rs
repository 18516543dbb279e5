//! Deadlines of an agent, and the end of a round or run before its time.

use super::round::Round;
use super::{
    Action, Agent, AgentState, BEAT_DEFAULT_MS, LeaveReason, Pending, STOP_TIMEOUT_NS, Service,
    Stop, StopReason,
};
use crate::MS_NS;
use crate::protocol::message::AgentMessage;

/// Bounds of the period of BEAT.
const BEAT_MIN_MS: u64 = 100;
const BEAT_MAX_MS: u64 = 60_000;

impl Agent {
    /// Takes the time. Nothing is due before [`Self::poll_timeout`].
    pub fn handle_timeout(&mut self, now_ns: u64) {
        if self.is_closed {
            return;
        }

        if self.stop_until_ns().is_some_and(|at_ns| now_ns >= at_ns) {
            // The owner has not reported the end of its processes in time.
            self.complete_stop(true);
        }

        if self.plan_until_ns.is_some_and(|at_ns| now_ns >= at_ns) {
            return self.leave(LeaveReason::NoPlan);
        }

        if self.lease.is_some_and(|lease| lease.is_expired(now_ns)) {
            // The owner of the lease is silent, so the report has no command to answer.
            self.stop(now_ns, None, None, StopReason::Lease);
        }

        self.end_late_tasks(now_ns);
        if now_ns >= self.next_beat_ns && !self.is_closed {
            // The next beat counts from now: a late call does not send several at once.
            self.next_beat_ns = now_ns.saturating_add(self.beat_period_ns());
            self.send(AgentMessage::Beat {});
        }
    }

    /// When [`Self::handle_timeout`] is to be called.
    pub fn poll_timeout(&self) -> Option<u64> {
        if self.is_closed {
            return None;
        }

        let deadlines = [
            self.stop_until_ns(),
            self.plan_until_ns,
            self.lease.map(|lease| lease.expires_at_ns()),
            self.round.as_ref().and_then(Round::next_deadline_ns),
            Some(self.next_beat_ns),
        ];
        deadlines.into_iter().flatten().min()
    }

    fn beat_period_ns(&self) -> u64 {
        let plan = self.plan.as_ref();
        let period_ms = plan.map_or(BEAT_DEFAULT_MS, |plan| plan.beat_ms);
        // A plan could ask for a beat in each millisecond, or for none during a lease.
        period_ms.clamp(BEAT_MIN_MS, BEAT_MAX_MS) * MS_NS
    }

    fn stop_until_ns(&self) -> Option<u64> {
        match &self.pending {
            Some(Pending::Stop(stop)) => Some(stop.until_ns),
            _ => None,
        }
    }

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
        self.pending = Some(Pending::Stop(Stop {
            seq,
            round,
            reason,
            until_ns: now_ns.saturating_add(STOP_TIMEOUT_NS),
        }));
        self.actions.push_back(Action::Stop { round, reason });

        if round.is_some() {
            return self.become_idle(AgentState::Planned);
        }
        self.become_idle(AgentState::Done);
        // Nothing renews the lease after the end of the run, and its expiry would end it twice.
        self.lease = None;
        self.plan_until_ns = None;
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
    fn complete_stop(&mut self, unconfirmed: bool) {
        let pending = &mut self.pending;
        let Some(Pending::Stop(stop)) =
            pending.take_if(|pending| matches!(pending, Pending::Stop(_)))
        else {
            return;
        };
        let round = stop.round;
        self.unconfirmed_round = round.filter(|_| unconfirmed);
        let done = AgentMessage::Done { round, unconfirmed };

        match stop.seq {
            Some(seq) => self.answer(seq, done),
            // An end without a CANCEL answers no command.
            None => drop(self.send(done)),
        }

        match (round, self.service) {
            // The end of a round leaves the run with its plan.
            (Some(_), _) => {}
            (None, Service::Stream) => self.leave(LeaveReason::RunEnded(stop.reason)),
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
