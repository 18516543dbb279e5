//! Beginning and end of the steps of a run.

use std::collections::BTreeSet;

use super::host::Host;
use super::{
    Action, Coordinator, DONE_TIMEOUT_NS, DropReason, HostState, NotRun, PLANNED_TIMEOUT_NS,
    PREFLIGHTED_TIMEOUT_NS,
};
use crate::protocol::message::{CoordinatorMessage, FailCode, Plan, Preflight};

/// A step of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// HELLO of all hosts.
    Hello,
    /// PLANNED.
    Plan,
    /// PREFLIGHTED.
    Preflight,
    /// Exchanges of clock readings.
    Clock,
    /// ARMED of a round.
    Arm,
    /// DONE of the hosts that did not end a round by themselves.
    Close,
    /// DONE of the run.
    End,
}

/// Hosts whose answer is awaited.
#[derive(Debug)]
pub(super) struct Barrier {
    pub step: Step,
    pub waiting: BTreeSet<usize>,
    pub deadline_ns: u64,
}

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
            self.send(leased, CoordinatorMessage::Beat {});
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

        let until_ns = match (&self.barrier, &self.round) {
            // The deadline of a step precedes that of the round: a step is part of it.
            (Some(barrier), _) => barrier.deadline_ns,
            (None, Some(round)) => round.until_ns,
            (None, None) => u64::MAX,
        };
        Some(until_ns.min(self.next_beat_ns))
    }

    /// A host receives one plan.
    pub(super) fn send_plan(&mut self, index: usize, plan: Box<Plan>) {
        let host = self.hosts.get(index);
        let is_ready =
            |host: &Host| host.presence == HostState::Greeted && host.command_seq.is_none();
        if host.is_some_and(is_ready) {
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
        if let Some(barrier) = &self.barrier
            && barrier.step == Step::Hello
            && self.settings.is_solicited
        {
            let hosts = barrier.waiting.iter().copied().collect();
            self.send(hosts, CoordinatorMessage::Solicit {});
        }
    }

    pub(super) fn send_preflights(&mut self, now_ns: u64, preflights: Vec<(usize, Preflight)>) {
        let mut receivers = Vec::new();
        for (host, preflight) in preflights {
            let command = CoordinatorMessage::Preflight(preflight);
            if self.is_planned(host) && self.send_command(host, command) {
                receivers.push(host);
            }
        }

        let deadline_ns = now_ns.saturating_add(PREFLIGHTED_TIMEOUT_NS);
        self.open(Step::Preflight, receivers, deadline_ns);
    }

    /// A command beyond the bounds of a message drops the host.
    fn send_command(&mut self, host: usize, command: CoordinatorMessage) -> bool {
        let seq = self.send(vec![host], command);
        self.hosts[host].command_seq = seq;
        // The same message would exceed the bounds again.
        if seq.is_none() {
            self.drop_host(host, DropReason::Refused(FailCode::Limit));
        }

        seq.is_some()
    }

    pub(super) fn open(
        &mut self,
        step: Step,
        hosts: impl IntoIterator<Item = usize>,
        deadline_ns: u64,
    ) {
        self.barrier = Some(Barrier {
            step,
            waiting: hosts.into_iter().collect(),
            deadline_ns,
        });
    }

    /// This step is in progress.
    fn is_in(&self, step: Step) -> bool {
        matches!(&self.barrier, Some(barrier) if barrier.step == step)
    }

    /// The step waits for this host.
    pub(super) fn awaits(&self, step: Step, host: usize) -> bool {
        let barrier = self.barrier.as_ref();
        self.is_in(step) && barrier.is_some_and(|barrier| barrier.waiting.contains(&host))
    }

    /// A host has answered in this step.
    pub(super) fn arrive(&mut self, step: Step, host: usize) {
        if let Some(barrier) = &mut self.barrier
            && barrier.step == step
        {
            barrier.waiting.remove(&host);
        }
    }

    /// Continues as far as answers and time allow.
    pub(super) fn advance(&mut self, now_ns: u64) {
        // The end of a step may begin another one that waits for no host and ends at once.
        loop {
            let is_over =
                |barrier: &mut Barrier| barrier.waiting.is_empty() || now_ns >= barrier.deadline_ns;
            if let Some(barrier) = self.barrier.take_if(is_over) {
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
            // The run has ended; the late hosts are those that have not answered.
            Step::End => {
                self.is_over = true;
                self.unconfirmed.extend(late);
                let unconfirmed = self.unconfirmed.iter().copied().collect();
                self.actions.push_back(Action::Finished { unconfirmed });
            }
            step => {
                for host in late {
                    // A part of the exchanges gives an estimate, so a slow host is dropped only
                    // without one.
                    if step != Step::Clock || self.clock(host, now_ns).is_none() {
                        self.drop_host(host, DropReason::Late(step));
                    }
                }

                self.actions.push_back(Action::StepDone(step));
            }
        }
    }

    /// Ends the run at all hosts, whatever is in progress.
    pub(super) fn cancel(&mut self, now_ns: u64) {
        // A second CANCEL would move the deadline of the first one.
        if self.is_in(Step::End) {
            return;
        }

        // Tasks are settled before the round is dropped, so that each has a reason.
        self.settle(NotRun::Cancelled, |_| true);
        self.round = None;
        self.next_round = None;
        let connected = self.hosts_where(Host::is_connected);
        let all = connected.clone();
        self.send(all, CoordinatorMessage::Cancel { round: None });
        self.open(Step::End, connected, now_ns.saturating_add(DONE_TIMEOUT_NS));
    }

    /// A host takes part no longer.
    pub(super) fn drop_host(&mut self, index: usize, reason: DropReason) {
        let host = self.hosts.get_mut(index);
        let Some(host) = host.filter(|host| host.presence != HostState::Out) else {
            return;
        };
        host.presence = HostState::Out;
        host.parts.clear();

        if let Some(barrier) = &mut self.barrier {
            let was_awaited = barrier.waiting.remove(&index);
            // The step no longer waits for its DONE, which therefore never confirms its end.
            if was_awaited && barrier.step == Step::End {
                self.unconfirmed.insert(index);
            }
        }

        let host = index;
        self.actions.push_back(Action::Dropped { host, reason });
        self.settle_tasks_of(host, NotRun::HostLost);
        if let Some(round) = &mut self.round {
            // The host gets neither GO nor CANCEL of this round.
            round.hosts.remove(&host);
        }
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
