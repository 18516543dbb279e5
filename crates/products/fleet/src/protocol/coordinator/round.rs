//! A round: all hosts are armed, start together, report, and end.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    ARMED_TIMEOUT_NS, Action, Coordinator, DONE_TIMEOUT_NS, HostState, NotRun, RESULT_TIMEOUT_NS,
    RoundPlan, RoundTask, Step,
};
use crate::protocol::agent::OVERTIME_NS;
use crate::protocol::clock::{LEAD_MAX_NS, lead_ns};
use crate::protocol::message::{ArmTask, CoordinatorMessage, FailCode, PrepareRound, StartRound};
use crate::{MS_NS, TaskId};

/// The present round.
#[derive(Debug)]
pub(super) struct Round {
    pub number: u32,
    phase: Phase,
    pub tasks: Vec<TaskState>,
    /// Hosts that received ARM.
    pub hosts: BTreeMap<usize, RoundHost>,
    data_rtt_ns: u64,
    /// Time between GO and the start.
    lead_ns: u64,
    /// End of the phase, where no step has one.
    pub until_ns: u64,
}

/// Progress of a round.
#[derive(Debug)]
enum Phase {
    /// ARMED is awaited.
    Arming,
    /// Results of clients are awaited.
    Running,
    /// Results of servers are awaited.
    Grace,
    /// DONE of hosts that are not through is awaited.
    Closing,
}

/// A task of the round.
#[derive(Debug)]
pub(super) struct TaskState {
    pub plan: RoundTask,
    /// It has a result, or comes back as not run.
    pub is_settled: bool,
}

/// A host in the round.
#[derive(Debug, Default)]
pub(super) struct RoundHost {
    pub arm_seq: Option<u64>,
    pub go_seq: Option<u64>,
    pub is_armed: bool,
    /// Tasks that this host has not reported.
    pub open: BTreeSet<TaskId>,
    /// Nothing of the round runs there.
    pub is_ended: bool,
    cancelled_ns: Option<u64>,
}

impl RoundHost {
    fn is_through(&self) -> bool {
        self.is_ended || self.go_seq.is_some() && self.open.is_empty()
    }
}

/// Longest wait for servers' reports after the last client.
const GRACE_NS: u64 = 500 * MS_NS;

impl Coordinator {
    /// Begins a round once its hosts have confirmed the end of earlier ones, or after as long as
    /// they have for ARMED.
    pub(super) fn prepare_round(&mut self, now_ns: u64, plan: RoundPlan) {
        let mut awaited = BTreeSet::new();
        for end in plan.tasks.iter().flat_map(RoundTask::ends) {
            if self.is_planned(end.host) && self.hosts[end.host].open_round.is_some() {
                awaited.insert(end.host);
            }
        }
        if awaited.is_empty() {
            return self.begin_round(now_ns, plan);
        }

        self.repeat_cancel();
        self.next_round = Some(plan);
        let deadline_ns = now_ns.saturating_add(ARMED_TIMEOUT_NS);
        self.open(Step::Close, awaited, deadline_ns);
    }

    pub(super) fn begin_round(&mut self, now_ns: u64, plan: RoundPlan) {
        let number = plan.number;
        let mut lists: BTreeMap<usize, Vec<ArmTask>> = BTreeMap::new();
        let mut progress = Vec::with_capacity(plan.tasks.len());

        for plan in plan.tasks {
            let server = plan.server.as_ref().map(|server| server.host);
            // Reports are checked against the ends of their task, those of earlier rounds as well.
            self.known.insert(plan.task, (plan.client.host, server));

            let lacking = plan.ends().find_map(|end| self.lacking(now_ns, end.host));
            if let Some(reason) = lacking {
                let task = plan.task;
                self.actions.push_back(Action::NotRun { task, reason });
            } else {
                for end in plan.ends() {
                    lists.entry(end.host).or_default().push(end.spec.clone());
                }
            }

            progress.push(TaskState {
                plan,
                is_settled: lacking.is_some(),
            });
        }

        let mut hosts = BTreeMap::new();
        for (host, tasks) in lists {
            if let Some(estimate) = self.clock(host, now_ns) {
                hosts.insert(host, self.arm(estimate.offset_ns, number, host, tasks));
            }
        }

        let all: Vec<usize> = hosts.keys().copied().collect();
        self.open(
            Step::Arm,
            all.clone(),
            now_ns.saturating_add(ARMED_TIMEOUT_NS),
        );
        self.round = Some(Round {
            number,
            phase: Phase::Arming,
            tasks: progress,
            hosts,
            data_rtt_ns: plan.data_rtt_ns,
            // The lead depends on the hosts that are armed; until then the step has the deadline.
            lead_ns: 0,
            until_ns: u64::MAX,
        });

        // A refusal settles tasks of the round, which therefore has to be stored before.
        for host in all {
            let round = self.round.as_ref();
            let part = round.and_then(|round| round.hosts.get(&host));
            if part.is_some_and(|part| part.arm_seq.is_none()) {
                self.refuse_arm(host, FailCode::Limit);
            }
        }
    }

    /// Why a host cannot take part in a round that begins now.
    fn lacking(&self, now_ns: u64, host: usize) -> Option<NotRun> {
        let host = self.hosts.get(host)?;
        if host.presence != HostState::Planned {
            Some(NotRun::HostOut)
        } else if host.open_round.is_some() {
            // Tests of the earlier round may still run there.
            Some(NotRun::SlowControl)
        } else if host.clock.estimate(now_ns).is_none() {
            Some(NotRun::NoClock)
        } else {
            None
        }
    }

    fn arm(&mut self, offset_ns: i64, round: u32, host: usize, tasks: Vec<ArmTask>) -> RoundHost {
        let mut part = RoundHost::default();
        // A server admits the peers of its own tasks and no other host of the run.
        let mut admit = BTreeSet::new();
        for task in &tasks {
            part.open.insert(task.task);
            if !task.is_client() {
                admit.insert(task.peer);
            }
        }

        let arm = PrepareRound {
            round,
            offset_ns,
            tasks,
            admit: admit.into_iter().collect(),
        };
        part.arm_seq = self.send(vec![host], CoordinatorMessage::Arm(Box::new(arm)));
        part
    }

    /// All hosts are armed, or the deadline has passed.
    pub(super) fn start_round(&mut self, now_ns: u64, late: &[usize]) {
        // A host that did not confirm ARM in time gets no GO: its workers may not be ready.
        for host in late {
            self.settle_tasks_of(*host, NotRun::SlowControl);
        }

        let Some(mut round) = self.round.take() else {
            return;
        };
        round.lead_ns = self.lead_ns(now_ns, &round);
        let t0_ns = now_ns.saturating_add(round.lead_ns);
        self.send_go(&mut round, t0_ns);

        let mut longest_ns = 0;
        for task in &round.tasks {
            let spec = &task.plan.client.spec;
            if !task.is_settled {
                longest_ns = spec
                    .delay_ns()
                    .saturating_add(spec.duration_ns())
                    .max(longest_ns);
            }
        }
        round.until_ns = t0_ns
            .saturating_add(longest_ns)
            .saturating_add(OVERTIME_NS + RESULT_TIMEOUT_NS);
        round.phase = Phase::Running;
        self.round = Some(round);

        // Hosts that do not start need not wait for the others.
        self.cancel_round(now_ns, |part| part.go_seq.is_none());
    }

    /// Sends GO to the armed hosts that have a task to run: one line where all their tasks run.
    fn send_go(&mut self, round: &mut Round, t0_ns: u64) {
        let number = round.number;
        let go = |skip| {
            CoordinatorMessage::Go(StartRound {
                round: number,
                t0_ns,
                skip,
            })
        };

        let mut together = Vec::new();
        for (host, part) in &mut round.hosts {
            let mut skip = Vec::new();
            for task in round.tasks.iter().filter(|task| task.is_settled) {
                if task.plan.ends().any(|end| end.host == *host) {
                    skip.push(task.plan.task);
                    part.open.remove(&task.plan.task);
                }
            }
            if part.open.is_empty() || !part.is_armed {
                continue;
            }

            if skip.is_empty() {
                together.push(*host);
            } else {
                part.go_seq = self.send(vec![*host], go(skip));
            }
        }

        let seq = self.send(together.clone(), go(Vec::new()));
        for host in together {
            if let Some(part) = round.hosts.get_mut(&host) {
                part.go_seq = seq;
            }
        }
    }

    fn lead_ns(&self, now_ns: u64, round: &Round) -> u64 {
        let mut rtt_ns = 0;
        let mut uncertainty_ns = 0;
        for host in round.hosts.keys() {
            let clock = &self.hosts[*host].clock;
            rtt_ns = clock.rtt_p99_ns().unwrap_or(0).max(rtt_ns);
            if let Some(estimate) = clock.estimate(now_ns) {
                uncertainty_ns = estimate.uncertainty_ns.max(uncertainty_ns);
            }
        }

        // The lead of this run grows after a late GO and never shrinks.
        lead_ns(rtt_ns, uncertainty_ns, round.data_rtt_ns).max(self.lead_min_ns)
    }

    /// Continues without a step to wait for. `false` when nothing changed.
    pub(super) fn advance_round(&mut self, now_ns: u64) -> bool {
        let Some(round) = &mut self.round else {
            return false;
        };
        let is_due = now_ns >= round.until_ns;

        match round.phase {
            // All clients have reported; servers have a short time for their own reports.
            Phase::Running if round.tasks.iter().all(|task| task.is_settled) => {
                round.phase = Phase::Grace;
                round.until_ns = now_ns.saturating_add(GRACE_NS);
            }
            Phase::Running if is_due => self.settle(NotRun::NoResult, |_| true),
            Phase::Grace if is_due || round.hosts.values().all(RoundHost::is_through) => {
                self.close_round(now_ns);
            }
            _ => return false,
        }

        true
    }

    fn close_round(&mut self, now_ns: u64) {
        self.cancel_round(now_ns, |_| true);
        let Some(round) = &mut self.round else { return };
        round.phase = Phase::Closing;

        // The deadline counts from CANCEL where one was sent, and from now otherwise.
        let mut cancelled_ns = None;
        let mut hosts = Vec::new();
        for (host, part) in &round.hosts {
            if !part.is_through() {
                hosts.push(*host);
                cancelled_ns = cancelled_ns.max(part.cancelled_ns);
            }
        }

        let deadline_ns = cancelled_ns
            .unwrap_or(now_ns)
            .saturating_add(DONE_TIMEOUT_NS);
        self.open(Step::Close, hosts, deadline_ns);
    }

    /// Sends CANCEL to the hosts of the round that are not through and have not received it.
    fn cancel_round(&mut self, now_ns: u64, which: impl Fn(&RoundHost) -> bool) {
        let Some(round) = &mut self.round else { return };
        let mut hosts = Vec::new();
        for (host, part) in &mut round.hosts {
            if part.cancelled_ns.is_none() && !part.is_through() && which(part) {
                part.cancelled_ns = Some(now_ns);
                hosts.push(*host);
            }
        }

        let round = Some(round.number);
        self.send(hosts, CoordinatorMessage::Cancel { round });
    }

    pub(super) fn end_round(&mut self, unconfirmed: Vec<usize>) {
        let Some(round) = self.round.take() else {
            return;
        };
        for index in round.hosts.keys() {
            let host = &mut self.hosts[*index];
            host.parts.clear();
            // A host without DONE keeps its round open, and gets no tasks until it confirms the
            // end.
            host.open_round = unconfirmed.contains(index).then_some(round.number);
        }

        self.actions.push_back(Action::RoundDone {
            round: round.number,
            unconfirmed,
        });
    }

    /// Repeats CANCEL at hosts that have not confirmed the end of an earlier round: it was lost
    /// while they were away.
    pub(super) fn repeat_cancel(&mut self) {
        let mut open: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (index, host) in self.hosts.iter().enumerate() {
            if let Some(round) = host.open_round
                && host.presence == HostState::Planned
            {
                open.entry(round).or_default().push(index);
            }
        }

        for (round, hosts) in open {
            let round = Some(round);
            self.send(hosts, CoordinatorMessage::Cancel { round });
        }
    }

    /// A host does not take part in the round: its tasks come back.
    pub(super) fn refuse_arm(&mut self, host: usize, code: FailCode) {
        let round = self.round.as_mut();
        if let Some(part) = round.and_then(|round| round.hosts.get_mut(&host)) {
            part.is_ended = true;
        }

        self.settle_tasks_of(host, NotRun::Refused(code));
        self.arrive(Step::Arm, host);
    }

    /// A host does not start: its tests come back. Its servers serve other clients, so the round
    /// continues.
    pub(super) fn refuse_go(&mut self, host: usize, code: FailCode) {
        let Some(round) = &self.round else { return };
        if code == FailCode::Late {
            // The round trips of the clocks do not show how busy the hosts are when a round begins.
            let lead_ns = round.lead_ns.saturating_mul(2);
            self.lead_min_ns = lead_ns.clamp(self.lead_min_ns, LEAD_MAX_NS);
        }

        self.settle(NotRun::Refused(code), |task| task.client.host == host);
    }

    /// Tasks of a host that have no result come back.
    pub(super) fn settle_tasks_of(&mut self, host: usize, reason: NotRun) {
        self.settle(reason, |task| task.ends().any(|end| end.host == host));
    }

    /// Tasks that have no result get none.
    pub(super) fn settle(&mut self, reason: NotRun, is_meant: impl Fn(&RoundTask) -> bool) {
        let tasks = self.round.iter_mut().flat_map(|round| &mut round.tasks);
        for task in tasks.filter(|task| !task.is_settled && is_meant(&task.plan)) {
            task.is_settled = true;
            let task = task.plan.task;
            self.actions.push_back(Action::NotRun { task, reason });
        }
    }
}
