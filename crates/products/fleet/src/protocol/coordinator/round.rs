//! A round: all hosts are armed, start together, report, and end.

use std::collections::{BTreeMap, BTreeSet};

use super::round_state::{Phase, Round, RoundHost, TaskState};
use super::{
    ARMED_TIMEOUT_NS, Action, Coordinator, DONE_TIMEOUT_NS, HostState, NotRun, RESULT_TIMEOUT_NS,
    RoundPlan, RoundTask, Step,
};
use crate::protocol::agent::OVERTIME_NS;
use crate::protocol::clock::{LEAD_MAX_NS, lead_ns};
use crate::protocol::message::{
    ArmTask, Cancel, CoordinatorMessage, FailCode, PrepareRound, StartRound,
};
use crate::{MS_NS, TaskId};

/// Longest wait for servers' reports after the last client.
const GRACE_NS: u64 = 500 * MS_NS;

impl Coordinator {
    /// Begins a round once its hosts have confirmed the end of earlier ones, or after as long as
    /// they have for ARMED.
    pub(super) fn prepare_round(&mut self, now_ns: u64, plan: RoundPlan) {
        let ends = plan.tasks.iter().flat_map(RoundTask::ends);
        let is_awaited = |host: &usize| {
            self.is_planned(*host)
                && self
                    .hosts
                    .get(*host)
                    .is_some_and(|host| host.open_round.is_some())
        };
        let awaited: BTreeSet<usize> = ends.map(|end| end.host).filter(is_awaited).collect();
        if awaited.is_empty() {
            return self.begin_round(now_ns, plan);
        }

        self.repeat_cancel();
        self.next_round = Some(plan);
        self.open(
            Step::Close,
            awaited,
            now_ns.saturating_add(ARMED_TIMEOUT_NS),
        );
    }

    pub(super) fn begin_round(&mut self, now_ns: u64, plan: RoundPlan) {
        let RoundPlan {
            number,
            tasks,
            data_rtt_ns,
        } = plan;
        let mut lists: BTreeMap<usize, Vec<ArmTask>> = BTreeMap::new();
        let mut progress = Vec::with_capacity(tasks.len());

        for plan in tasks {
            let server = plan.server.as_ref().map(|server| server.host);
            // Reports are checked against the ends of their task, those of earlier rounds as well.
            self.known.insert(plan.task, (plan.client.host, server));

            let hosts = || plan.ends().filter_map(|end| self.hosts.get(end.host));
            let lacking = match () {
                () if hosts().any(|host| host.presence != HostState::Planned) => {
                    Some(NotRun::HostOut)
                }
                // Tests of the earlier round may still run there.
                () if hosts().any(|host| host.open_round.is_some()) => Some(NotRun::SlowControl),
                () if hosts().any(|host| host.clock.estimate(now_ns).is_none()) => {
                    Some(NotRun::NoClock)
                }
                () => None,
            };
            if lacking.is_none() {
                for end in plan.ends() {
                    lists.entry(end.host).or_default().push(end.spec.clone());
                }
            }

            self.actions.extend(lacking.map(|reason| Action::NotRun {
                task: plan.task,
                reason,
            }));
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

        self.open(
            Step::Arm,
            hosts.keys().copied(),
            now_ns.saturating_add(ARMED_TIMEOUT_NS),
        );
        let oversized: Vec<usize> = hosts
            .iter()
            .filter(|(_, part)| part.arm_seq.is_none())
            .map(|(host, _)| *host)
            .collect();

        self.round = Some(Round {
            number,
            phase: Phase::Arming,
            tasks: progress,
            hosts,
            data_rtt_ns,
            // The lead depends on the hosts that are armed; until then the step has the deadline.
            lead_ns: 0,
            until_ns: u64::MAX,
        });
        // A refusal settles tasks of the round, which therefore has to be stored before.
        oversized
            .into_iter()
            .for_each(|host| self.refuse_arm(host, FailCode::Limit));
    }

    fn arm(&mut self, offset_ns: i64, round: u32, host: usize, tasks: Vec<ArmTask>) -> RoundHost {
        let open = tasks.iter().map(|task| task.task).collect();
        let servers = tasks.iter().filter(|task| !task.is_client());
        // A server admits the peers of its own tasks and no other host of the run.
        let admit: BTreeSet<_> = servers.map(|task| task.peer).collect();
        let arm = PrepareRound {
            round,
            offset_ns,
            tasks,
            admit: admit.into_iter().collect(),
        };
        let arm_seq = self.send(vec![host], CoordinatorMessage::Arm(Box::new(arm)));

        RoundHost {
            arm_seq,
            open,
            ..RoundHost::default()
        }
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

        let open = round.tasks.iter().filter(|task| !task.is_settled);
        let specs = open.map(|task| &task.plan.client.spec);
        let longest_ns = specs
            .map(|spec| spec.delay_ns().saturating_add(spec.duration_ns()))
            .max()
            .unwrap_or(0);
        round.until_ns = t0_ns
            .saturating_add(longest_ns)
            .saturating_add(OVERTIME_NS)
            .saturating_add(RESULT_TIMEOUT_NS);
        round.phase = Phase::Running;
        self.round = Some(round);

        // Hosts that do not start need not wait for the others.
        self.cancel_round(now_ns, |part| part.go_seq.is_none());
    }

    /// Sends GO to the armed hosts that have a task to run: one line where all their tasks run.
    fn send_go(&mut self, round: &mut Round, t0_ns: u64) {
        let mut skips: BTreeMap<usize, Vec<TaskId>> = BTreeMap::new();
        for task in round.tasks.iter().filter(|task| task.is_settled) {
            for end in task.plan.ends() {
                skips.entry(end.host).or_default().push(task.plan.task);
            }
        }

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
            let skip = skips.remove(host).unwrap_or_default();
            part.open.retain(|task| !skip.contains(task));
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
        let hosts = || round.hosts.keys().filter_map(|host| self.hosts.get(*host));
        let rtt_ns = hosts()
            .filter_map(|host| host.clock.rtt_p99_ns())
            .max()
            .unwrap_or(0);
        let uncertain = hosts().filter_map(|host| host.clock.estimate(now_ns));
        let uncertainty_ns = uncertain
            .map(|estimate| estimate.uncertainty_ns)
            .max()
            .unwrap_or(0);

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
        let open = || round.hosts.iter().filter(|(_, part)| !part.is_through());
        let cancelled_ns = open()
            .filter_map(|(_, part)| part.cancelled_ns)
            .max()
            .unwrap_or(now_ns);
        let hosts: Vec<usize> = open().map(|(host, _)| *host).collect();
        self.open(
            Step::Close,
            hosts,
            cancelled_ns.saturating_add(DONE_TIMEOUT_NS),
        );
    }

    /// Sends CANCEL to the hosts of the round that are not through and have not received it.
    fn cancel_round(&mut self, now_ns: u64, which: impl Fn(&RoundHost) -> bool) {
        let Some(round) = &mut self.round else { return };
        let number = round.number;

        let mut hosts = Vec::new();
        for (host, part) in &mut round.hosts {
            if part.cancelled_ns.is_none() && !part.is_through() && which(part) {
                part.cancelled_ns = Some(now_ns);
                hosts.push(*host);
            }
        }

        self.send(
            hosts,
            CoordinatorMessage::Cancel(Cancel {
                round: Some(number),
            }),
        );
    }

    pub(super) fn end_round(&mut self, unconfirmed: Vec<usize>) {
        let Some(round) = self.round.take() else {
            return;
        };
        for index in round.hosts.keys() {
            if let Some(host) = self.hosts.get_mut(*index) {
                host.parts.clear();
                // A host without DONE keeps its round open, and gets no tasks until it confirms the
                // end.
                host.open_round = unconfirmed.contains(index).then_some(round.number);
            }
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
        for index in self.hosts_where(|host| host.presence == HostState::Planned) {
            if let Some(round) = self.hosts.get(index).and_then(|host| host.open_round) {
                open.entry(round).or_default().push(index);
            }
        }

        for (round, hosts) in open {
            self.send(
                hosts,
                CoordinatorMessage::Cancel(Cancel { round: Some(round) }),
            );
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
            self.lead_min_ns = round
                .lead_ns
                .saturating_mul(2)
                .clamp(self.lead_min_ns, LEAD_MAX_NS);
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
