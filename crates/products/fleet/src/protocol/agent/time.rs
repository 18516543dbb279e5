//! Deadlines of an agent.

use super::tasks::Round;
use super::{Agent, BEAT_DEFAULT_MS, LeaveReason, Pending, StopReason};
use crate::MS_NS;
use crate::protocol::message::{AgentMessage, Heartbeat};

/// Bounds of the period of BEAT.
const BEAT_MIN_MS: u64 = 100;
const BEAT_MAX_MS: u64 = 60_000;

impl Agent {
    /// Takes the time. Nothing is due before [`Self::poll_timeout`].
    pub fn handle_timeout(&mut self, now_ns: u64) {
        if self.is_closed {
            return;
        }

        let is_due =
            |deadline_ns: Option<u64>| deadline_ns.is_some_and(|deadline_ns| now_ns >= deadline_ns);
        if is_due(self.stop_until_ns()) {
            // The owner has not reported the end of its processes in time.
            self.complete_stop(true);
        }

        if is_due(self.plan_until_ns) {
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
            self.send(AgentMessage::Beat(Heartbeat {}));
        }
    }

    /// When [`Self::handle_timeout`] is to be called.
    pub fn poll_timeout(&self) -> Option<u64> {
        if self.is_closed {
            return None;
        }

        let lease = self.lease.map(|lease| lease.expires_at_ns());
        let deadlines = [
            self.stop_until_ns(),
            self.plan_until_ns,
            lease,
            self.round.as_ref().and_then(Round::next_deadline_ns),
            Some(self.next_beat_ns),
        ];
        deadlines.into_iter().flatten().min()
    }

    fn beat_period_ns(&self) -> u64 {
        let period_ms = self
            .plan
            .as_ref()
            .map_or(BEAT_DEFAULT_MS, |plan| plan.beat_ms);
        // A plan could ask for a beat in each millisecond, or for none during a lease.
        period_ms.clamp(BEAT_MIN_MS, BEAT_MAX_MS) * MS_NS
    }

    fn stop_until_ns(&self) -> Option<u64> {
        match &self.pending {
            Some(Pending::Stop(stop)) => Some(stop.until_ns),
            _ => None,
        }
    }
}
