//! Probes of a phase, in a thread of their own: UDP round trips on flows, and round trips over new
//! connections.

mod connection;
mod plan;
mod udp_flow;

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use linerate_model::path::ProbeSample;
use linerate_sys::poll::{Epoll, EventFd, Interest, Ready};
use linerate_sys::{clock, scheduling};

use crate::dialect::native::probe_budget::{self, ProbeBudget};
use crate::lock::lock;
use crate::wait::time_until;
use connection::Connections;
pub(super) use plan::{ConnectionPlan, FlowPlan, ProbePlan, ProbeResults, ProbeTarget, sample};
pub(super) use udp_flow::SILENCE_NS;
use udp_flow::UdpFlow;

/// The thread. It ends when this is dropped.
pub(super) struct Prober {
    phase: Arc<AtomicU8>,
    wake: Arc<EventFd>,
    results: Arc<Mutex<ProbeResults>>,
    budget: Arc<ProbeBudget>,
    thread: Option<JoinHandle<()>>,
}

struct Worker {
    phase: Arc<AtomicU8>,
    wake: Arc<EventFd>,
    results: Arc<Mutex<ProbeResults>>,
    epoll: Epoll,
    flows: Vec<UdpFlow>,
    connections: Option<Connections>,
    period_ns: u64,
    budget: Arc<ProbeBudget>,
}

// What the thread does.
const PROBES: u8 = 0;
/// Waits for what is outstanding.
const WAITS: u8 = 1;
const ENDS: u8 = 2;

const WAKE: u64 = u64::MAX;
/// Tokens of flows; those of connections are above.
const FLOWS_MAX: u64 = 64;
/// A probe without a reply is lost after this time.
const LOST_NS: u64 = 2_000_000_000;
/// Longest time that a reply may come after that of a later probe.
const OVERTAKEN_NS: u64 = 300_000_000;

impl Prober {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no descriptor or thread left.
    pub(super) fn start(plan: ProbePlan) -> std::io::Result<Self> {
        let wake = Arc::new(EventFd::new()?);
        let epoll = Epoll::new()?;
        epoll.add(&wake, WAKE, Interest::READ)?;

        let now_ns = clock::monotonic_ns();
        let mut flows = Vec::with_capacity(plan.flows.len());
        for (token, flow) in plan.flows.into_iter().enumerate().take(FLOWS_MAX as usize) {
            epoll.add(&flow.fd, token as u64, Interest::READ)?;
            // Flows take turns within a period.
            flows.push(UdpFlow::new(
                flow,
                now_ns + token as u64 * plan.period_ns / FLOWS_MAX,
            ));
        }

        let udp = flows
            .iter()
            .map(|flow| (flow.tos >> 2, Vec::new()))
            .collect();
        let results = Arc::new(Mutex::new(ProbeResults {
            udp,
            ..ProbeResults::default()
        }));
        let phase = Arc::new(AtomicU8::new(PROBES));
        let budget = Arc::<ProbeBudget>::default();

        let worker = Worker {
            phase: Arc::clone(&phase),
            wake: Arc::clone(&wake),
            results: Arc::clone(&results),
            epoll,
            flows,
            connections: plan.connections.map(|plan| Connections::new(plan, now_ns)),
            period_ns: plan.period_ns,
            budget: Arc::clone(&budget),
        };
        let thread = thread::Builder::new()
            .name("native-prober".into())
            .spawn(move || worker.run())?;
        Ok(Self {
            phase,
            wake,
            results,
            budget,
            thread: Some(thread),
        })
    }

    /// Bound on the probes by the rate of the concurrent load.
    pub(super) fn budget(&self) -> Arc<ProbeBudget> {
        Arc::clone(&self.budget)
    }

    /// Newest round trip of the first flow, ns.
    pub(super) fn newest_rtt_ns(&self) -> Option<i64> {
        lock(&self.results).newest_rtt_ns
    }

    /// Sends no further probe, waits for what is outstanding, and returns all round trips.
    pub(super) fn finish(mut self) -> ProbeResults {
        self.end(WAITS);
        std::mem::take(&mut *lock(&self.results))
    }

    fn end(&mut self, phase: u8) {
        self.phase.store(phase, Ordering::Release);
        self.wake.signal();

        if let Some(thread) = self.thread.take() {
            // A thread that panicked has no result.
            let _ = thread.join();
        }
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.end(ENDS);
    }
}

impl Worker {
    fn run(mut self) {
        // Without raised priority probes wait behind the workers of a load and measure this host.
        let _ = scheduling::wake_soon();
        // The default slack of 50 µs (prctl(2), PR_SET_TIMERSLACK) would bunch the probes of
        // several flows.
        let _ = clock::set_timer_slack_ns(1);
        let mut events = Vec::new();
        let mut stopped_ns = None;

        loop {
            let now_ns = clock::monotonic_ns();
            let mut waits_until_ns = None;

            match self.phase.load(Ordering::Acquire) {
                PROBES => self.send_due(now_ns),
                WAITS => {
                    let end_ns = self.awaited_until_ns(*stopped_ns.get_or_insert(now_ns));
                    if now_ns >= end_ns {
                        return;
                    }
                    // Replies on their way when the phase ends are part of it: without the wait the
                    // slowest would count as lost.
                    waits_until_ns = Some(end_ns);
                }
                _ => return,
            }

            self.wait(&mut events, waits_until_ns);
            for event in &events {
                self.on_ready(*event);
            }
        }
    }

    fn wait(&self, events: &mut Vec<Ready>, waits_until_ns: Option<u64>) {
        let flows = self.flows.iter().map(|flow| flow.next_ns).min();
        let connections = self.connections.as_ref().map(Connections::deadline_ns);
        let due_ns = waits_until_ns.or_else(|| flows.into_iter().chain(connections).min());
        let timeout = due_ns.map(time_until);

        // An interrupted wait is repeated.
        let _ = self.epoll.wait(events, timeout);
    }

    fn send_due(&mut self, now_ns: u64) {
        let period_ns =
            self.budget
                .period_ns(self.period_ns, probe_budget::UDP, self.flows.len() as u64);
        for (index, flow) in self.flows.iter_mut().enumerate() {
            if flow.next_ns <= now_ns {
                let is_replaced = flow.replace_if_silent(now_ns);
                let sample = flow.send(now_ns, period_ns);
                let mut results = lock(&self.results);

                if is_replaced {
                    // The descriptor before is closed, and with that no longer watched.
                    let _ = self.epoll.add(&flow.fd, index as u64, Interest::READ);
                    results.replaced += 1;
                }

                if let Some((_, samples)) = results.udp.get_mut(index) {
                    samples.push(sample);
                }
            }
        }

        if let Some(connections) = &mut self.connections
            && connections.deadline_ns() <= now_ns
        {
            connections.on_time(
                now_ns,
                &self.epoll,
                FLOWS_MAX,
                &self.budget,
                &mut lock(&self.results),
            );
        }
    }

    fn on_ready(&mut self, event: Ready) {
        if event.token == WAKE {
            self.wake.drain();
        } else if let Some(flow) = self
            .flows
            .get_mut(usize::try_from(event.token).unwrap_or(usize::MAX))
        {
            let mut results = lock(&self.results);
            // Arrival times come from the kernel (`SO_TIMESTAMPNS`), so a late turn of this thread
            // adds nothing to the round trip.
            flow.receive(
                usize::try_from(event.token).unwrap_or_default(),
                &mut results,
            );
        } else if let Some(connections) = &mut self.connections {
            connections.on_ready(event.token, &self.epoll, &mut lock(&self.results));
        }
    }

    /// Time until which replies are awaited after the last probe was sent.
    fn awaited_until_ns(&self, stopped_ns: u64) -> u64 {
        let results = lock(&self.results);
        results
            .udp
            .iter()
            .map(|(_, samples)| awaited_until_ns(samples, stopped_ns))
            .max()
            .unwrap_or(0)
    }
}

/// The same of one flow. Probes that a later one has overtaken are awaited for a short time, those
/// behind the newest reply for several times what the slowest recent one took.
fn awaited_until_ns(samples: &[ProbeSample], stopped_ns: u64) -> u64 {
    let recent = || {
        samples
            .iter()
            .rev()
            .take_while(|sample| sample.sent_ns.saturating_add(LOST_NS) > stopped_ns)
    };
    let Some(first_open) = recent().position(|sample| sample.received_ns.is_none()) else {
        return 0;
    };
    let newest_reply = recent().position(|sample| sample.received_ns.is_some());
    if newest_reply.is_some_and(|newest_reply| newest_reply < first_open) {
        return stopped_ns.saturating_add(OVERTAKEN_NS);
    }

    let slowest_ns = samples
        .iter()
        .rev()
        .take(1000)
        .filter_map(ProbeSample::rtt_ns)
        .max()
        .unwrap_or(0);
    // Four times the slowest recent one: a queue that fills at the end of a load delays more than
    // any before.
    let several_ns = u64::try_from(slowest_ns).unwrap_or(0).saturating_mul(4);
    stopped_ns.saturating_add(several_ns.clamp(OVERTAKEN_NS, LOST_NS))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Probes every 100 ms, with the time of each round trip in ms.
    fn samples(round_trips_ms: &[Option<u64>]) -> Vec<ProbeSample> {
        let nth = |(number, rtt_ms): (u64, &Option<u64>)| {
            let sent_ns = 10_000 * MS + number * 100 * MS;
            sample(sent_ns, rtt_ms.map(|ms| sent_ns + ms * MS))
        };
        (0..).zip(round_trips_ms).map(nth).collect()
    }

    #[test]
    fn replies_are_awaited_as_long_as_they_may_come() {
        let stopped_ns = 11_000 * MS;
        for (round_trips_ms, expected_ms) in [
            (vec![], 0),
            (vec![Some(1), Some(1)], 0),
            // The first is lost: the one behind it was answered.
            (vec![None, Some(1)], 11_300),
            (vec![Some(400), None], 12_600),
            (vec![Some(900), None], 13_000),
            (vec![Some(1), None], 11_300),
            (vec![None, None], 11_300),
        ] {
            let found_ns = awaited_until_ns(&samples(&round_trips_ms), stopped_ns);
            assert_eq!(found_ns, expected_ms * MS, "{round_trips_ms:?}");
        }

        assert_eq!(
            awaited_until_ns(&samples(&[None]), 13_000 * MS),
            0,
            "one of long ago"
        );
    }
}
