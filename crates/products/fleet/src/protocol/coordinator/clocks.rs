//! Exchanges of clock readings.

use super::host::Host;
use super::{Action, CLOCKED_TIMEOUT_NS, Coordinator, HostState, Step};
use crate::protocol::clock::Exchange;
use crate::protocol::message::{Clock, Clocked, CoordinatorMessage};
use crate::{MS_NS, TaskId};

/// Longest step of clocks, in waits for one CLOCKED, and the time of each exchange with a host that
/// waits for its first one.
const WAITS_MAX: u64 = 5;
const EXCHANGE_NS: u64 = MS_NS / 2;
/// Hosts whose CLOCKED is awaited at the same time: answers of more would wait for each other, and
/// the wait is part of the uncertainty.
const AWAITED_MAX: usize = 64;

impl Coordinator {
    pub(super) fn begin_clocks(&mut self, now_ns: u64, exchanges: u32) {
        let planned = self.hosts_where(|host| host.presence == HostState::Planned);
        for index in &planned {
            if let Some(host) = self.host_mut(*index) {
                host.exchanges_left = exchanges.max(1);
            }
        }

        // Only hosts beyond the first 64 wait for their turn.
        let waiting = planned.len().saturating_sub(AWAITED_MAX) as u64;
        let waiting_ns = waiting
            .saturating_mul(u64::from(exchanges))
            .saturating_mul(EXCHANGE_NS);
        let longest_ns = (CLOCKED_TIMEOUT_NS * WAITS_MAX).saturating_add(waiting_ns);

        self.clocks_due = planned.iter().copied().collect();
        self.open(Step::Clock, planned, now_ns.saturating_add(longest_ns));
        self.send_due_clocks(now_ns);
    }

    /// Begins exchanges with hosts that wait for theirs.
    fn send_due_clocks(&mut self, now_ns: u64) {
        let is_awaited =
            |host: &Host| host.clock_sent_ns.is_some() && host.presence == HostState::Planned;
        let awaited = self
            .hosts
            .iter()
            // A lost exchange does not occupy one of the 64 places.
            .filter(|host| is_awaited(host) && !host.has_lost_clock(now_ns))
            .count();
        for _ in awaited..AWAITED_MAX {
            self.send_next_clock(now_ns);
        }
    }

    fn send_next_clock(&mut self, now_ns: u64) {
        while let Some(index) = self.clocks_due.pop_front() {
            // A host may be dropped while it waits for its turn.
            if self.is_planned(index) {
                return self.send_clock(now_ns, index);
            }
        }
    }

    pub(super) fn handle_clocked(&mut self, now_ns: u64, index: usize, clocked: Clocked) {
        let Some(host) = self.host_mut(index) else {
            return;
        };
        // An answer to an earlier CLOCK has waited for too long.
        if host.clock_sent_ns != Some(clocked.c1_ns) {
            return;
        }

        host.clock_sent_ns = None;
        let Clocked {
            c1_ns,
            a2_ns,
            a3_ns,
        } = clocked;
        // An impossible exchange is not kept but counts, so that a wrong clock cannot hold up the
        // step.
        host.clock.add(Exchange {
            c1_ns,
            a2_ns,
            a3_ns,
            c4_ns: now_ns,
        });
        host.exchanges_left = host.exchanges_left.saturating_sub(1);

        let is_through = host.exchanges_left == 0;
        match self.awaits(Step::Clock, index) {
            true if is_through => {
                self.arrive(Step::Clock, index);
                self.send_next_clock(now_ns);
            }
            true => self.send_clock(now_ns, index),
            // Outside the step an exchange refreshes the estimate and begins no other one.
            false => {}
        }
    }

    /// Repeats exchanges that are lost, and those with hosts whose clock is too uncertain: as many
    /// as may be awaited, the oldest first.
    pub(super) fn refresh_clocks(&mut self, now_ns: u64) {
        self.send_due_clocks(now_ns);
        let budget_ns = self.settings.clock_budget_ns;
        let is_due = |host: &Host| {
            // Hosts without any reading belong to the step of clocks, not to the refresh.
            let is_stale =
                host.clock.rtt_p99_ns().is_some() && host.clock.needs_refresh(now_ns, budget_ns);
            let is_lost = host.has_lost_clock(now_ns);
            host.presence == HostState::Planned
                && (is_lost || is_stale && host.clock_sent_ns.is_none())
        };
        let mut due = self.hosts_where(is_due);
        due.sort_by_key(|index| self.hosts.get(*index).and_then(|host| host.clock_last_ns));
        due.truncate(AWAITED_MAX);
        due.into_iter()
            .for_each(|index| self.send_clock(now_ns, index));
    }

    /// Actual start on this clock.
    pub(super) fn report_start(&mut self, now_ns: u64, host: usize, task: TaskId, agent_ns: u64) {
        // The estimate is agent minus coordinator; the way back needs the opposite sign.
        let offset_ns = self
            .clock(host, now_ns)
            .and_then(|estimate| estimate.offset_ns.checked_neg());
        let at_ns = offset_ns.and_then(|offset_ns| agent_ns.checked_add_signed(offset_ns));
        self.actions
            .push_back(Action::Started { host, task, at_ns });
    }

    fn send_clock(&mut self, now_ns: u64, index: usize) {
        if let Some(host) = self.host_mut(index) {
            host.clock_sent_ns = Some(now_ns);
            host.clock_last_ns = Some(now_ns);
        }

        self.send(
            vec![index],
            CoordinatorMessage::Clock(Clock { c1_ns: now_ns }),
        );
    }
}
