//! Exchanges of clock readings.

use super::{Action, CLOCKED_TIMEOUT_NS, Coordinator, Presence, Step};
use crate::clock::Exchange;
use crate::message::{Clock, Clocked, CoordinatorMessage};

/// Longest step of clocks, in waits for one CLOCKED.
const WAITS_MAX: u64 = 5;

impl Coordinator {
    pub(super) fn begin_clocks(&mut self, now_ns: u64, exchanges: u32) {
        let planned = self.hosts_where(|host| host.presence == Presence::Planned);
        for index in &planned {
            if let Some(host) = self.host_mut(*index) {
                host.exchanges_left = exchanges.max(1);
            }
            self.send_clock(now_ns, *index);
        }
        self.open(Step::Clock, planned, now_ns.saturating_add(CLOCKED_TIMEOUT_NS * WAITS_MAX));
    }

    pub(super) fn handle_clocked(&mut self, now_ns: u64, index: usize, clocked: Clocked) {
        let Some(host) = self.host_mut(index) else { return };
        // An answer to an earlier CLOCK has waited for too long.
        if host.clock_sent_ns != Some(clocked.c1_ns) {
            return;
        }
        host.clock_sent_ns = None;
        let Clocked { c1_ns, a2_ns, a3_ns } = clocked;
        host.clock.add(Exchange { c1_ns, a2_ns, a3_ns, c4_ns: now_ns });
        host.exchanges_left = host.exchanges_left.saturating_sub(1);
        let is_through = host.exchanges_left == 0;
        match self.awaits(Step::Clock, index) {
            true if is_through => self.arrive(Step::Clock, index),
            true => self.send_clock(now_ns, index),
            false => {}
        }
    }

    /// Repeats exchanges that are lost, and those with hosts whose clock is too uncertain.
    pub(super) fn refresh_clocks(&mut self, now_ns: u64) {
        let budget_ns = self.settings.clock_budget_ns;
        let is_due = |host: &super::Host| {
            let is_stale = host.clock.rtt_p99_ns().is_some() && host.clock.needs_refresh(now_ns, budget_ns);
            let is_lost = host.clock_sent_ns.is_some_and(|at| now_ns.saturating_sub(at) >= CLOCKED_TIMEOUT_NS);
            host.presence == Presence::Planned && (is_lost || is_stale && host.clock_sent_ns.is_none())
        };
        for index in self.hosts_where(is_due) {
            self.send_clock(now_ns, index);
        }
    }

    /// Actual start on this clock.
    pub(super) fn report_start(&mut self, now_ns: u64, host: usize, task: crate::TaskId, agent_ns: u64) {
        let offset_ns = self.clock(host, now_ns).and_then(|estimate| estimate.offset_ns.checked_neg());
        let at_ns = offset_ns.and_then(|offset_ns| agent_ns.checked_add_signed(offset_ns));
        self.actions.push_back(Action::Started { host, task, at_ns });
    }

    fn send_clock(&mut self, now_ns: u64, index: usize) {
        if let Some(host) = self.host_mut(index) {
            host.clock_sent_ns = Some(now_ns);
        }
        self.send(vec![index], CoordinatorMessage::Clock(Clock { c1_ns: now_ns }));
    }
}
