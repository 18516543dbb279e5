//! Schedule of the probes, and what their answers mean. Nothing here opens a socket or reads a
//! clock.

use std::collections::VecDeque;
use std::net::IpAddr;

use linerate_model::path::HopAnswers;

/// A probe that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HopProbe {
    pub ttl: u8,
    /// Flow that it belongs to: 0 is the first one.
    pub flow: usize,
    /// Number in the payload.
    pub sequence: u64,
}

/// An answer to a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HopAnswer {
    /// Flow whose socket received it.
    pub flow: usize,
    /// Number in the quoted payload; absent where the router quotes no payload (RFC 792 demands 8
    /// bytes behind the IP header, which are those of UDP).
    pub sequence: Option<u64>,
    pub from: IpAddr,
    /// The other end answered.
    pub is_end: bool,
    pub received_ns: u64,
    pub mpls_labels: Vec<u32>,
}

/// The trace of a path from one end. It finds the hops first, and then measures each of them.
#[derive(Debug, Clone)]
pub(super) struct HopTrace {
    /// By time to live, from 1.
    hops: Vec<HopState>,
    /// Distance of the other end.
    end_ttl: Option<u8>,
    step: Step,
    next_ns: u64,
    /// Hops are looked for at once and measured from this time on.
    measure_ns: u64,
    sequence: u64,
    in_flight: VecDeque<InFlight>,
}

#[derive(Debug, Clone, Default)]
struct HopState {
    tries: u32,
    answers: HopAnswers,
}

#[derive(Debug, Clone, Copy)]
struct InFlight {
    probe: HopProbe,
    sent_ns: u64,
}

/// What the next probe is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The distance of each router and of the other end.
    Discover,
    /// Other paths of other flows: next flow and time to live.
    Branches { flow: usize, ttl: u8 },
    /// Round trips to all known hops; the next one of this round.
    Measure { ttl: u8 },
}

/// Largest time to live that is tried.
const TTL_MAX: u8 = 32;
/// Hops without an answer in a row after which the rest of the path counts as silent.
const SILENT_MAX: u8 = 8;
/// Probes that stay unanswered before a hop counts as silent.
const TRIES: u32 = 3;
/// Between two probes that look for hops, ns: all of them at once would be a burst of 30.
const DISCOVERY_GAP_NS: u64 = 2_000_000;
/// Between two rounds, ns. Linux answers one probe per second and destination after a burst of six
/// (`net.ipv4.icmp_ratelimit`), routers in hardware more. The last 2.4 s of a load of 4 s have six
/// rounds.
const ROUND_NS: u64 = 400_000_000;
/// An answer is awaited for this long while hops are looked for, ns.
const DISCOVERY_TIMEOUT_NS: u64 = 400_000_000;
/// The same while they are measured: queues are longer than that of a path without load.
const LOST_NS: u64 = 2_000_000_000;
/// Flows beside the first one. Of two equal paths, three other flows miss one in one of eight
/// traces.
pub(super) const OTHER_FLOWS: usize = 3;
/// Addresses that are kept of a hop.
const ADDRESSES_MAX: usize = 4;
/// TOS bytes that are kept of a hop.
const TOS_MAX: usize = 4;

impl HopTrace {
    /// Begins a phase whose hops are measured from a time on: answers so far are dropped, the hops
    /// stay known.
    pub(super) fn begin_phase(&mut self, measure_ns: u64) {
        self.in_flight.clear();
        self.next_ns = 0;
        self.measure_ns = measure_ns;
        for (hop, ttl) in self.hops.iter_mut().zip(1..) {
            hop.answers.ttl = ttl;
            hop.answers.sent = 0;
            hop.answers.rtt_ns.clear();
        }
    }

    /// What was measured since the phase began, of all hops up to the last one that answered.
    pub(super) fn answers(&self) -> Vec<HopAnswers> {
        let known = usize::from(self.last_answered());
        let hops = self.hops.iter().take(known);
        hops.map(|hop| hop.answers.clone()).collect()
    }

    /// When the next probe may be due.
    pub(super) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// The next probe that is due; `None` until [`Self::next_ns`].
    pub(super) fn poll(&mut self, now_ns: u64) -> Option<HopProbe> {
        self.give_up_unanswered(now_ns);
        while now_ns >= self.next_ns {
            let probe = match self.step {
                Step::Discover => self.discover(now_ns),
                Step::Branches { flow, ttl } => self.branches(now_ns, flow, ttl),
                Step::Measure { ttl } => self.measure(now_ns, ttl),
            };
            if probe.is_some() {
                return probe;
            }
        }

        None
    }

    fn discover(&mut self, now_ns: u64) -> Option<HopProbe> {
        let limit = self.limit();
        let wanted = (1..=limit).find(|ttl| {
            let is_awaited = self.in_flight.iter().any(|sent| sent.probe.ttl == *ttl);
            let hop = self.hop(*ttl);
            let may_answer = hop.tries < TRIES && hop.answers.addresses.is_empty();
            may_answer && !is_awaited
        });

        match wanted {
            Some(ttl) => {
                self.next_ns = now_ns + DISCOVERY_GAP_NS;
                self.hops[usize::from(ttl) - 1].tries += 1;
                Some(self.send(now_ns, 0, ttl))
            }
            None if self.in_flight.is_empty() => {
                self.step = Step::Branches { flow: 1, ttl: 1 };
                None
            }
            None => {
                self.next_ns = now_ns + DISCOVERY_GAP_NS;
                None
            }
        }
    }

    fn branches(&mut self, now_ns: u64, flow: usize, ttl: u8) -> Option<HopProbe> {
        // The other end has one address.
        let last = self.end_ttl.map_or(self.last_answered(), |end| end - 1);
        if ttl > last {
            self.step = if flow < OTHER_FLOWS {
                Step::Branches {
                    flow: flow + 1,
                    ttl: 1,
                }
            } else {
                Step::Measure { ttl: 1 }
            };
            return None;
        }

        self.step = Step::Branches { flow, ttl: ttl + 1 };
        if self.hop(ttl).answers.addresses.is_empty() {
            return None;
        }
        self.next_ns = now_ns + DISCOVERY_GAP_NS;
        Some(self.send(now_ns, flow, ttl))
    }

    /// All hops of a round at the same time, so that they meet the same queue.
    fn measure(&mut self, now_ns: u64, ttl: u8) -> Option<HopProbe> {
        if now_ns < self.measure_ns {
            self.next_ns = self.measure_ns;
            return None;
        }

        let last = self.last_answered();
        let next = (ttl..=last).find(|ttl| !self.hop(*ttl).answers.addresses.is_empty());
        let Some(ttl) = next else {
            self.step = Step::Measure { ttl: 1 };
            self.next_ns = now_ns + ROUND_NS;
            return None;
        };

        self.step = Step::Measure { ttl: ttl + 1 };
        Some(self.send(now_ns, 0, ttl))
    }

    fn send(&mut self, now_ns: u64, flow: usize, ttl: u8) -> HopProbe {
        let probe = HopProbe {
            ttl,
            flow,
            sequence: self.sequence,
        };
        self.sequence += 1;
        self.in_flight.push_back(InFlight {
            probe,
            sent_ns: now_ns,
        });
        probe
    }

    /// Probes leave in the order of their times, so that the oldest is the first.
    fn give_up_unanswered(&mut self, now_ns: u64) {
        let timeout_ns = match self.step {
            Step::Discover => DISCOVERY_TIMEOUT_NS,
            _ => LOST_NS,
        };
        while let Some(sent) = self
            .in_flight
            .front()
            .copied()
            .filter(|sent| now_ns >= sent.sent_ns + timeout_ns)
        {
            self.in_flight.pop_front();
            if sent.probe.flow == 0 {
                self.hops[usize::from(sent.probe.ttl) - 1].answers.sent += 1;
            }
        }
    }

    /// Takes an answer; one that belongs to no probe in flight changes nothing.
    pub(super) fn on_answer(&mut self, answer: HopAnswer) {
        let Some(place) = self.probe_of(&answer) else {
            return;
        };
        let Some(InFlight { probe, sent_ns }) = self.in_flight.remove(place) else {
            return;
        };
        let hop = &mut self.hops[usize::from(probe.ttl) - 1].answers;

        if probe.flow > 0 {
            if !hop.addresses.contains(&answer.from) {
                keep(&mut hop.other_flows, answer.from);
            }
            return;
        }

        keep(&mut hop.addresses, answer.from);
        hop.sent += 1;
        hop.is_end |= answer.is_end;
        if !answer.mpls_labels.is_empty() {
            hop.mpls_labels = answer.mpls_labels;
        }
        if hop.rtt_ns.len() < HopAnswers::ANSWERS_MAX {
            hop.rtt_ns.push(answer.received_ns.saturating_sub(sent_ns));
        }

        if answer.is_end {
            let nearest = self.end_ttl.map_or(probe.ttl, |end| end.min(probe.ttl));
            self.end_ttl = Some(nearest);
        }
    }

    /// Takes the TOS byte of a probe as a router quotes it. Each flow has one probe per hop, so that
    /// the address decides the hop.
    pub(super) fn on_quote(&mut self, from: IpAddr, sent: u8, quoted: u8) {
        let is_hop = |hop: &&mut HopState| {
            [&hop.answers.addresses, &hop.answers.other_flows]
                .iter()
                .any(|known| known.contains(&from))
        };
        let Some(hop) = self.hops.iter_mut().find(is_hop) else {
            return;
        };
        let known = &mut hop.answers.tos;
        if known.len() < TOS_MAX && !known.contains(&(sent, quoted)) {
            known.push((sent, quoted));
        }
    }

    /// The probe in flight that is answered. Without a number in the quote it is the only one in
    /// flight to a hop of that address, or the only one at all.
    fn probe_of(&self, answer: &HopAnswer) -> Option<usize> {
        let of_flow = || {
            let all = self.in_flight.iter().enumerate();
            all.filter(|(_, sent)| sent.probe.flow == answer.flow)
        };
        if let Some(sequence) = answer.sequence {
            let mut known = of_flow().filter(|(_, sent)| sent.probe.sequence == sequence);
            return known.next().map(|(place, _)| place);
        }

        let is_hop = |(_, sent): &(usize, &InFlight)| {
            let hop = self.hop(sent.probe.ttl);
            hop.answers.addresses.contains(&answer.from)
        };
        only(of_flow().filter(is_hop)).or_else(|| only(of_flow()))
    }

    fn hop(&self, ttl: u8) -> &HopState {
        &self.hops[usize::from(ttl) - 1]
    }

    /// Distance of the farthest hop that answered, the other end at most; 0 without one.
    fn last_answered(&self) -> u8 {
        let answered = |ttl: &u8| !self.hop(*ttl).answers.addresses.is_empty();
        self.end_ttl
            .or_else(|| (1..=TTL_MAX).rev().find(answered))
            .unwrap_or(0)
    }

    /// Largest time to live that is tried while hops are looked for.
    fn limit(&self) -> u8 {
        let farthest = self.last_answered().saturating_add(SILENT_MAX).min(TTL_MAX);
        self.end_ttl.unwrap_or(farthest)
    }
}

impl Default for HopTrace {
    fn default() -> Self {
        Self {
            hops: vec![HopState::default(); usize::from(TTL_MAX)],
            end_ttl: None,
            step: Step::Discover,
            next_ns: 0,
            measure_ns: 0,
            sequence: 0,
            in_flight: VecDeque::new(),
        }
    }
}

fn keep(known: &mut Vec<IpAddr>, address: IpAddr) {
    if known.len() < ADDRESSES_MAX && !known.contains(&address) {
        known.push(address);
    }
}

fn only<'a>(mut found: impl Iterator<Item = (usize, &'a InFlight)>) -> Option<usize> {
    let (place, _) = found.next()?;
    found.next().is_none().then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn router(ttl: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, ttl])
    }

    /// A path of `end` hops; the routers in `silent` answer nothing. Round trips are as many ms as
    /// the hop is far.
    struct Network {
        end: u8,
        silent: &'static [u8],
        quotes_payload: bool,
    }

    /// Runs a trace from 0 to `until_ns`; returns the times to live that were probed.
    fn run(trace: &mut HopTrace, network: &Network, until_ns: u64) -> Vec<u8> {
        let (mut probed, mut answers) = (Vec::new(), Vec::new());
        for now_ns in (0..until_ns).step_by(MS as usize) {
            while let Some(probe) = trace.poll(now_ns) {
                probed.push(probe.ttl);
                if network.silent.contains(&probe.ttl) {
                    continue;
                }

                let ttl = probe.ttl.min(network.end);
                // The second flow takes another router at the second hop.
                let last_byte = ttl + if probe.flow == 2 && ttl == 2 { 100 } else { 0 };
                answers.push(HopAnswer {
                    flow: probe.flow,
                    sequence: network.quotes_payload.then_some(probe.sequence),
                    from: router(last_byte),
                    is_end: ttl == network.end,
                    received_ns: now_ns + u64::from(ttl) * MS,
                    mpls_labels: Vec::new(),
                });
            }

            let due = answers.extract_if(.., |answer| answer.received_ns <= now_ns);
            due.for_each(|answer| trace.on_answer(answer));
        }

        probed
    }

    fn traced(network: &Network) -> Vec<HopAnswers> {
        let mut trace = HopTrace::default();
        trace.begin_phase(0);
        run(&mut trace, network, 6_000 * MS);
        trace.answers()
    }

    #[test]
    fn hops_are_found_and_measured_every_400_ms() {
        let found = traced(&Network {
            end: 4,
            silent: &[],
            quotes_payload: true,
        });
        let ends: Vec<bool> = found.iter().map(|hop| hop.is_end).collect();
        assert_eq!(ends, [false, false, false, true]);

        for (hop, ttl) in found.iter().zip(1..) {
            assert_eq!(
                (hop.ttl, hop.addresses.as_slice()),
                (ttl, [router(ttl)].as_slice())
            );
            assert!((14..=17).contains(&hop.rtt_ns.len()), "{hop:?}");
            assert!(
                hop.rtt_ns.iter().all(|ns| *ns == u64::from(ttl) * MS),
                "{hop:?}"
            );
        }
        assert_eq!(found[1].other_flows, [router(102)]);
        assert!(found[0].other_flows.is_empty() && found[2].other_flows.is_empty());
    }

    #[test]
    fn silent_hops_have_a_row_and_no_answer() {
        let found = traced(&Network {
            end: 5,
            silent: &[2, 3],
            quotes_payload: true,
        });
        let answered: Vec<bool> = found.iter().map(|hop| !hop.rtt_ns.is_empty()).collect();
        assert_eq!(answered, [true, false, false, true, true]);
        assert_eq!(found[1].sent, TRIES);
    }

    #[test]
    fn a_path_without_any_answer_is_given_up_after_eight_hops() {
        let mut trace = HopTrace::default();
        trace.begin_phase(0);
        let network = Network {
            end: 40,
            silent: &[1, 2, 3, 4, 5, 6, 7, 8],
            quotes_payload: true,
        };
        let probed = run(&mut trace, &network, 20_000 * MS);
        assert_eq!(probed.len(), 24);
        assert!(trace.answers().is_empty());
    }

    #[test]
    fn a_router_that_quotes_no_payload_is_known_by_its_address() {
        let mut trace = HopTrace::default();
        trace.begin_phase(0);
        let network = |quotes_payload| Network {
            end: 3,
            silent: &[],
            quotes_payload,
        };
        run(&mut trace, &network(true), 2_000 * MS);
        trace.begin_phase(0);
        run(&mut trace, &network(false), 4_000 * MS);

        for (hop, ttl) in trace.answers().iter().zip(1..) {
            assert_eq!(hop.addresses, [router(ttl)]);
            assert!(hop.rtt_ns.len() >= 7, "{hop:?}");
        }
    }

    #[test]
    fn hops_of_a_load_are_measured_after_its_first_part() {
        let network = Network {
            end: 3,
            silent: &[],
            quotes_payload: true,
        };
        let mut trace = HopTrace::default();
        trace.begin_phase(0);
        run(&mut trace, &network, 2_000 * MS);

        trace.begin_phase(1_600 * MS);
        assert!(run(&mut trace, &network, 1_600 * MS).is_empty());
        run(&mut trace, &network, 4_000 * MS);
        for hop in trace.answers() {
            assert_eq!(hop.rtt_ns.len(), 6, "{hop:?}");
        }
    }

    #[test]
    fn an_answer_to_no_probe_in_flight_changes_nothing() {
        let mut trace = HopTrace::default();
        trace.begin_phase(0);
        let probe = trace.poll(0).expect("the first hop");
        let forged = |flow, sequence| HopAnswer {
            flow,
            sequence,
            from: router(66),
            is_end: true,
            received_ns: MS,
            mpls_labels: vec![7],
        };
        trace.on_answer(forged(0, Some(probe.sequence + 1)));
        trace.on_answer(forged(1, Some(probe.sequence)));
        trace.on_answer(forged(1, None));
        assert!(trace.answers().is_empty());

        trace.poll(3 * MS).expect("the second hop");
        trace.on_answer(forged(0, None));
        assert!(trace.answers().is_empty(), "two probes may be meant");
    }
}
