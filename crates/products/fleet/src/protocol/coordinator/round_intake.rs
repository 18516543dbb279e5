//! Reports of hosts about the tasks of a round.

use super::round::RoundHost;
use super::sanity::is_plausible;
use super::{Action, Coordinator, DropReason, HostResult, Step};
use crate::TaskId;
use crate::protocol::message::{Role, TaskResult};

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

    pub(super) fn handle_result(&mut self, index: usize, result: TaskResult) {
        let task = result.task;
        if !self.is_end_of(index, task) {
            return self.drop_host(index, DropReason::ForeignTask);
        }

        // Results of earlier rounds, and those that arrived before, change nothing.
        let part = self.part(result.round, index);
        if part.is_none_or(|part| !part.open.contains(&task)) {
            return;
        }

        let (end, record) = match self.hosts[index].parts.add(result) {
            Ok(Some(whole)) => whole,
            // Parts are missing, or this one is a repetition.
            Ok(None) => return,
            Err(_) => return self.drop_host(index, DropReason::Parts),
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
        let mut role = Role::Server;
        if progress.plan.client.host == index {
            role = Role::Client;
            // The client's result settles the task; one that came back before is not settled twice.
            if std::mem::replace(&mut progress.is_settled, true) {
                return;
            }
        }

        // A result of a host that received no GO cannot be one of this start.
        let plan = &progress.plan;
        let is_plausible = has_started && is_plausible(&end, &plan.client.spec, plan.nominal_bps);
        self.actions.push_back(Action::Result(Box::new(HostResult {
            host: index,
            task,
            role,
            end,
            record,
            is_plausible,
        })));
    }

    pub(super) fn handle_round_done(&mut self, host: usize, number: u32) {
        let open_round = &mut self.hosts[host].open_round;
        // A late DONE of an earlier round frees the host for the next one, which may wait for it.
        if open_round.take_if(|round| *round == number).is_some() {
            return self.arrive(Step::Close, host);
        }

        if let Some(part) = self.part(number, host) {
            part.is_ended = true;
            self.arrive(Step::Close, host);
        }
    }

    /// The host is an end of the task, of this round or an earlier one.
    fn is_end_of(&self, host: usize, task: TaskId) -> bool {
        let ends = self.known.get(&task);
        ends.is_some_and(|(client, server)| *client == host || *server == Some(host))
    }
}
