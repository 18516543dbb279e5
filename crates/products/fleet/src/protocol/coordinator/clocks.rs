//! Exchanges of clock readings.

use super::{CLOCKED_TIMEOUT_NS, Coordinator, HostState, Step};
use crate::MS_NS;
use crate::protocol::clock::Exchange;
use crate::protocol::message::CoordinatorMessage;

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
        for host in &planned {
            self.hosts[*host].exchanges_left = exchanges.max(1);
        }

        // Only hosts beyond the first 64 wait for their turn.
        let waiting = planned.len().saturating_sub(AWAITED_MAX) as u64;
        let waits = waiting.saturating_mul(u64::from(exchanges));
        let longest_ns =
            (CLOCKED_TIMEOUT_NS * WAITS_MAX).saturating_add(waits.saturating_mul(EXCHANGE_NS));

        self.clocks_due = planned.iter().copied().collect();
        self.open(Step::Clock, planned, now_ns.saturating_add(longest_ns));
        self.send_due_clocks(now_ns);
    }

    /// Begins exchanges with hosts that wait for theirs.
    fn send_due_clocks(&mut self, now_ns: u64) {
        let mut awaited = 0;
        for host in &self.hosts {
            // A lost exchange does not occupy one of the 64 places.
            let is_open = host.clock_sent_ns.is_some() && !host.has_lost_clock(now_ns);
            if is_open && host.presence == HostState::Planned {
                awaited += 1;
            }
        }

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

    pub(super) fn handle_clocked(&mut self, index: usize, exchange: Exchange) {
        let now_ns = exchange.c4_ns;
        let host = &mut self.hosts[index];
        // An answer to an earlier CLOCK has waited for too long.
        if host.clock_sent_ns != Some(exchange.c1_ns) {
            return;
        }

        host.clock_sent_ns = None;
        // An impossible exchange is not kept but counts, so that a wrong clock cannot hold up the
        // step.
        host.clock.add(exchange);
        host.exchanges_left = host.exchanges_left.saturating_sub(1);

        let is_through = host.exchanges_left == 0;
        // Outside the step an exchange refreshes the estimate and begins no other one.
        if !self.awaits(Step::Clock, index) {
            return;
        }
        if is_through {
            self.arrive(Step::Clock, index);
            self.send_next_clock(now_ns);
        } else {
            self.send_clock(now_ns, index);
        }
    }

    /// Repeats exchanges that are lost, and those with hosts whose clock is too uncertain: as many
    /// as may be awaited, the oldest first.
    pub(super) fn refresh_clocks(&mut self, now_ns: u64) {
        self.send_due_clocks(now_ns);
        let budget_ns = self.settings.clock_budget_ns;
        let mut due = self.hosts_where(|host| {
            // Hosts without any reading belong to the step of clocks, not to the refresh.
            let is_stale =
                host.clock.rtt_p99_ns().is_some() && host.clock.needs_refresh(now_ns, budget_ns);
            let is_due = match host.clock_sent_ns {
                Some(_) => host.has_lost_clock(now_ns),
                None => is_stale,
            };
            is_due && host.presence == HostState::Planned
        });
        due.sort_by_key(|host| self.hosts[*host].clock_last_ns);
        due.truncate(AWAITED_MAX);
        for host in due {
            self.send_clock(now_ns, host);
        }
    }

    fn send_clock(&mut self, now_ns: u64, index: usize) {
        let host = &mut self.hosts[index];
        host.clock_sent_ns = Some(now_ns);
        host.clock_last_ns = Some(now_ns);
        self.send(vec![index], CoordinatorMessage::Clock { c1_ns: now_ns });
    }
}
