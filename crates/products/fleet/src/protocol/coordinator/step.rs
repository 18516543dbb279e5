//! Beginning and end of the steps of a run.

use super::barrier::{Barrier, Step};
use super::host::Host;
use super::{
    Action, Coordinator, DropReason, HostState, PLANNED_TIMEOUT_NS, PREFLIGHTED_TIMEOUT_NS,
};
use crate::protocol::message::{CoordinatorMessage, FailCode, Heartbeat, Plan, Preflight, Solicit};

impl Coordinator {
    /// Takes the time, at or after [`Self::poll_timeout`].
    pub fn handle_timeout(&mut self, now_ns: u64) {
        if self.is_over {
            return;
        }

        if now_ns >= self.next_beat_ns {
            // A period of 0 would make the time due again at once.
            self.next_beat_ns = now_ns.saturating_add(self.settings.beat_ns.max(1));
            self.drop_silent(now_ns);
            // The lease begins with the plan, not with its answer.
            let leased = self
                .hosts_where(|host| host.presence == HostState::Planned || host.has_open_plan());
            self.send(leased, CoordinatorMessage::Beat(Heartbeat::default()));
            self.refresh_clocks(now_ns);
            // A bus stores no commands: an agent that subscribes later has missed the first
            // request.
            self.solicit();
            self.repeat_cancel();
        }

        self.advance(now_ns);
    }

    /// When [`Self::handle_timeout`] is to be called.
    pub fn poll_timeout(&self) -> Option<u64> {
        if self.is_over {
            return None;
        }

        let barrier = self.barrier.as_ref().map(|barrier| barrier.deadline_ns);
        let round = self
            .round
            .as_ref()
            // The deadline of a step precedes that of the round: a step is part of it.
            .filter(|_| barrier.is_none())
            .map(|round| round.until_ns);
        [barrier, round, Some(self.next_beat_ns)]
            .into_iter()
            .flatten()
            .min()
    }

    /// A host receives one plan.
    pub(super) fn send_plan(&mut self, index: usize, plan: Box<Plan>) {
        let is_ready = |host: &Host| host.presence == HostState::Greeted && !host.has_open_plan();
        if self.hosts.get(index).is_some_and(is_ready) {
            self.send_command(index, CoordinatorMessage::Plan(plan));
        }
    }

    /// Waits for the answers that have not arrived while other hosts connected.
    pub(super) fn await_plans(&mut self, now_ns: u64) {
        let open = self.hosts_where(Host::has_open_plan);
        self.open(Step::Plan, open, now_ns.saturating_add(PLANNED_TIMEOUT_NS));
    }

    /// Solicits HELLO of the hosts that have not sent it, where it is due.
    pub(super) fn solicit(&mut self) {
        let awaited = self
            .barrier
            .as_ref()
            .filter(|barrier| barrier.step == Step::Hello);
        let hosts = awaited
            .filter(|_| self.settings.is_solicited)
            .map(|barrier| barrier.waiting.iter().copied().collect());
        if let Some(hosts) = hosts {
            self.send(hosts, CoordinatorMessage::Solicit(Solicit {}));
        }
    }

    pub(super) fn send_preflights(&mut self, now_ns: u64, preflights: Vec<(usize, Preflight)>) {
        let mut receivers = Vec::new();
        for (index, preflight) in preflights {
            if self.is_planned(index)
                && self.send_command(index, CoordinatorMessage::Preflight(preflight))
            {
                receivers.push(index);
            }
        }

        self.open(
            Step::Preflight,
            receivers,
            now_ns.saturating_add(PREFLIGHTED_TIMEOUT_NS),
        );
    }

    /// A command beyond the bounds of a message drops the host.
    fn send_command(&mut self, index: usize, command: CoordinatorMessage) -> bool {
        let seq = self.send(vec![index], command);
        if let Some(host) = self.host_mut(index) {
            host.command_seq = seq;
        }

        // The same message would exceed the bounds again.
        if seq.is_none() {
            self.drop_host(index, DropReason::Refused(FailCode::Limit));
        }

        seq.is_some()
    }

    pub(super) fn open(
        &mut self,
        step: Step,
        hosts: impl IntoIterator<Item = usize>,
        deadline_ns: u64,
    ) {
        self.barrier = Some(Barrier::new(step, hosts, deadline_ns));
    }

    /// The step waits for this host.
    pub(super) fn awaits(&self, step: Step, host: usize) -> bool {
        self.barrier
            .as_ref()
            .is_some_and(|barrier| barrier.step == step && barrier.waiting.contains(&host))
    }

    /// A host has answered in this step.
    pub(super) fn arrive(&mut self, step: Step, host: usize) {
        if let Some(barrier) = self.barrier.as_mut().filter(|barrier| barrier.step == step) {
            barrier.waiting.remove(&host);
        }
    }

    /// Continues as far as answers and time allow.
    pub(super) fn advance(&mut self, now_ns: u64) {
        // The end of a step may begin another one that waits for no host and ends at once.
        loop {
            if let Some(barrier) = self.barrier.take_if(|barrier| barrier.is_over(now_ns)) {
                self.complete(now_ns, &barrier);
            } else if self.barrier.is_some() || !self.advance_round(now_ns) {
                return;
            }
        }
    }

    fn complete(&mut self, now_ns: u64, barrier: &Barrier) {
        let late: Vec<usize> = barrier.waiting.iter().copied().collect();
        match barrier.step {
            Step::Arm => self.start_round(now_ns, &late),
            Step::Close => match self.next_round.take() {
                // A host that is late here keeps its open round, and its tasks come back when the
                // round begins.
                Some(plan) => self.begin_round(now_ns, plan),
                None => self.end_round(late),
            },
            Step::End => self.finish(late),
            step => {
                for host in late {
                    // A part of the exchanges gives an estimate, so a slow host is dropped only
                    // without one.
                    let has_clock = step == Step::Clock && self.clock(host, now_ns).is_some();
                    if !has_clock {
                        self.drop_host(host, DropReason::Late(step));
                    }
                }

                self.actions.push_back(Action::StepDone(step));
            }
        }
    }

    /// A host takes part no longer.
    pub(super) fn drop_host(&mut self, index: usize, reason: DropReason) {
        let Some(host) = self.host_mut(index) else {
            return;
        };
        if host.presence == HostState::Out {
            return;
        }

        host.presence = HostState::Out;
        host.parts.clear();

        if let Some(barrier) = &mut self.barrier {
            let was_awaited = barrier.waiting.remove(&index);
            // The step no longer waits for its DONE, which therefore never confirms its end.
            if was_awaited && barrier.step == Step::End {
                self.unconfirmed.insert(index);
            }
        }

        self.actions.push_back(Action::Dropped {
            host: index,
            reason,
        });
        self.lose_tasks(index);
    }

    fn drop_silent(&mut self, now_ns: u64) {
        let max_ns = self.settings.silence_max_ns;
        let is_silent = |host: &Host| now_ns.saturating_sub(host.last_received_ns) > max_ns;
        // Hosts that have not sent HELLO have a deadline of their own.
        for host in self.hosts_where(|host| host.is_connected() && is_silent(host)) {
            self.drop_host(host, DropReason::Silent);
        }
    }
}
