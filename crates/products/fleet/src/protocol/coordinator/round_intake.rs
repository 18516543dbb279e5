//! Reports of hosts about the tasks of a round.

use super::round::RoundHost;
use super::{Action, Coordinator, DropReason, HostResult, Step};
use crate::protocol::agent;
use crate::protocol::message::{ArmTask, Role, TaskEnd, TaskResult};
use crate::{MS_NS, TaskId};

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

/// A rate above nominal by this ratio is an error of the report: clocks and counters are better
/// than that.
const EXCESS_PERCENT: u128 = 120;
const NS_PER_SECOND: u128 = 1_000_000_000;

/// The reported amount fits the time of the task and the nominal rate. Without a
/// nominal rate only the time is checked.
pub fn is_plausible(end: &TaskEnd, spec: &ArmTask, nominal_bps: Option<u64>) -> bool {
    let time_ns = spec
        .time_ms
        .saturating_mul(MS_NS)
        .saturating_add(agent::OVERTIME_NS);
    // Bytes without time would be an infinite rate.
    if end.elapsed_ns > time_ns || end.elapsed_ns == 0 && end.bytes > 0 {
        return false;
    }

    let Some(nominal_bps) = nominal_bps else {
        return true;
    };
    let max_bps = u128::from(nominal_bps) * EXCESS_PERCENT / 100;

    // Products of 64-bit numbers need 128 bits; the multiplied form has no division by a time of 0.
    u128::from(end.bytes) * 8 * NS_PER_SECOND <= max_bps * u128::from(end.elapsed_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TaskId;
    use crate::protocol::message::Role;

    fn is_plausible_of(bytes: u64, elapsed_ms: u64, nominal_bps: Option<u64>) -> bool {
        let spec = ArmTask {
            task: TaskId(1),
            role: Role::Client,
            peer: "10.0.0.2".parse().expect("an address"),
            port: 5201,
            path: "phys".to_owned(),
            is_reversed: false,
            streams: 1,
            time_ms: 5000,
            omit_ms: 0,
            delay_ms: 0,
            rate_bps: None,
            congestion: None,
        };
        let end = TaskEnd {
            bytes,
            elapsed_ns: elapsed_ms * MS_NS,
            ..TaskEnd::aborted("")
        };
        is_plausible(&end, &spec, nominal_bps)
    }

    #[test]
    fn amounts_above_the_nominal_rate_or_beyond_the_time_are_implausible() {
        let gigabit = Some(1_000_000_000);
        let rows = [
            (true, 0, 0, gigabit),
            (true, 600_000_000, 5_000, gigabit),
            (true, 750_000_000, 5_000, gigabit),
            (false, 750_000_001, 5_000, gigabit),
            (false, 1, 0, None),
            (true, u64::MAX, 5_000, None),
            (false, 600_000_000, 7_001, gigabit),
            (false, u64::MAX, 5_000, Some(u64::MAX / 1_000_000_000)),
        ];
        for (expected, bytes, elapsed_ms, nominal_bps) in rows {
            assert_eq!(
                is_plausible_of(bytes, elapsed_ms, nominal_bps),
                expected,
                "{bytes} bytes in {elapsed_ms} ms at {nominal_bps:?}"
            );
        }
    }
}
