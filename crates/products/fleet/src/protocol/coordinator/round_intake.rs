//! Reports of hosts about the tasks of a round.

use super::round_state::RoundHost;
use super::sanity::is_plausible;
use super::{Action, Coordinator, DropReason, HostResult, NotRun, Step};
use crate::TaskId;
use crate::protocol::message::{FailCode, Role, Started, TaskResult};

impl Coordinator {
    /// The part of a host in the present round, if that has this number.
    fn part(&mut self, number: u32, host: usize) -> Option<&mut RoundHost> {
        let round = self.round.as_mut().filter(|round| round.number == number)?;
        round.hosts.get_mut(&host)
    }

    pub(super) fn handle_armed(&mut self, host: usize, number: u32) {
        if let Some(part) = self.part(number, host) {
            part.is_armed = true;
            self.arrive(Step::Arm, host);
        }
    }

    pub(super) fn handle_started(&mut self, now_ns: u64, host: usize, started: Started) {
        let is_present = self
            .round
            .as_ref()
            .is_some_and(|round| round.number == started.round);
        if self.is_end_of(host, started.task) && is_present {
            self.report_start(now_ns, host, started.task, started.at_ns);
        }
    }

    pub(super) fn handle_result(&mut self, index: usize, result: TaskResult) {
        let (task, number) = (result.task, result.round);
        if !self.is_end_of(index, task) {
            return;
        }

        // Results of earlier rounds, and those that arrived before, change nothing.
        let part = self.part(number, index);
        if part.is_none_or(|part| !part.open.contains(&task)) {
            return;
        }

        let (end, record) = match self.host_mut(index).map(|host| host.parts.add(result)) {
            Some(Ok(Some(whole))) => whole,
            Some(Err(_)) => return self.drop_host(index, DropReason::Parts),
            // Parts are missing, or this one is a repetition.
            _ => return,
        };

        let Some(round) = &mut self.round else { return };
        let Some(part) = round.hosts.get_mut(&index) else {
            return;
        };
        part.open.remove(&task);

        let has_started = part.go_seq.is_some();
        let Some(progress) = round.tasks.iter_mut().find(|known| known.plan.task == task) else {
            return;
        };
        let role = if progress.plan.client.host == index {
            Role::Client
        } else {
            Role::Server
        };
        // The client's result settles the task; a task that came back before is not settled twice.
        if role == Role::Client && std::mem::replace(&mut progress.is_settled, true) {
            return;
        }

        // A result of a host that received no GO cannot be one of this start.
        let is_plausible = has_started
            && is_plausible(&end, &progress.plan.client.spec, progress.plan.nominal_bps);

        let result = HostResult {
            host: index,
            task,
            role,
            end,
            record,
            is_plausible,
        };
        self.actions.push_back(Action::Result(Box::new(result)));
    }

    pub(super) fn handle_round_done(&mut self, host: usize, number: u32) {
        let open_round = self
            .host_mut(host)
            .and_then(|host| host.open_round.take_if(|round| *round == number));
        // A late DONE of an earlier round frees the host for the next one, which may wait for it.
        if open_round.is_some() {
            return self.arrive(Step::Close, host);
        }

        if let Some(part) = self.part(number, host) {
            part.is_ended = true;
            self.arrive(Step::Close, host);
        }
    }

    /// A host refused ARM or GO.
    pub(super) fn handle_round_fail(&mut self, host: usize, seq: Option<u64>, code: FailCode) {
        let part = self
            .round
            .as_ref()
            .and_then(|round| round.hosts.get(&host))
            // A FAIL without a number is about a line that could not be read.
            .filter(|_| seq.is_some());
        let Some((arm_seq, go_seq)) = part.map(|part| (part.arm_seq, part.go_seq)) else {
            return;
        };
        if seq == arm_seq {
            self.refuse_arm(host, code);
        } else if seq == go_seq {
            self.refuse_go(host, code);
        }
    }

    /// A host is dropped: its tasks have no result.
    pub(super) fn lose_tasks(&mut self, host: usize) {
        self.settle_tasks_of(host, NotRun::HostLost);
        if let Some(round) = &mut self.round {
            // The host gets neither GO nor CANCEL of this round.
            round.hosts.remove(&host);
        }
    }

    /// A host that reports a task of others is dropped.
    fn is_end_of(&mut self, host: usize, task: TaskId) -> bool {
        let is_end = self
            .known
            .get(&task)
            .is_some_and(|(client, server)| *client == host || *server == Some(host));
        if !is_end {
            self.drop_host(host, DropReason::ForeignTask);
        }

        is_end
    }
}
