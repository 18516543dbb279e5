//! One direction of a test as both of its ends observed it.

use linerate_model::snapshot::Value;

use super::endpoint::EndpointObservation;
use crate::timeline::{RunFacts, TestInterval, insert};

/// The parts of an observation that are about a direction.
#[derive(Clone, Copy)]
pub(super) struct Direction {
    facts: fn(&EndpointObservation) -> Option<&RunFacts>,
    intervals: fn(&EndpointObservation) -> &[TestInterval],
}

pub(super) const DIRECTIONS: [Direction; 2] = [
    Direction {
        facts: |end| end.forward.as_ref(),
        intervals: |end| &end.forward_intervals,
    },
    Direction {
        facts: |end| end.reverse.as_ref(),
        intervals: |end| &end.reverse_intervals,
    },
];

impl Direction {
    /// The facts of the run. Each end contributes what it measured itself.
    pub(super) fn run(
        self,
        client: &EndpointObservation,
        server: Option<&EndpointObservation>,
    ) -> Option<RunFacts> {
        let mut facts = (self.facts)(client)?.clone();
        let peers = server.and_then(self.facts).into_iter().flatten();
        for (name, value) in peers.filter(|(name, _)| is_reported_by_peer(name)) {
            // The client's loss is that of what it sent, once it has the server's count.
            let is_known = name == "loss_share" && facts.contains_key(name);
            if !is_known {
                facts.insert(name.clone(), value.clone());
            }
        }

        Some(facts)
    }

    /// The intervals, each with the server's facts about its midpoint.
    pub(super) fn timeline(
        self,
        client: &EndpointObservation,
        server: Option<&EndpointObservation>,
    ) -> Vec<TestInterval> {
        let mut intervals = (self.intervals)(client).to_vec();
        let reported = server.map_or(&[][..], self.intervals);

        for interval in &mut intervals {
            let middle = f64::midpoint(interval.start_s, interval.end_s);
            let covers = |other: &&TestInterval| other.start_s <= middle && middle < other.end_s;
            let of_server = reported.iter().find(covers);

            for (name, value) in of_server.into_iter().flat_map(|other| &other.facts) {
                let receives = name == "received_bps" && !interval.facts.contains_key(name);
                if receives || is_reported_by_peer(name) {
                    interval.facts.insert(name.clone(), value.clone());
                }
            }

            vanished(&mut interval.facts);
        }

        intervals
    }
}

/// Corrects the loss of an interval in which most datagrams did not arrive: a receiver does not
/// miss what follows the last one that it saw. The intervals of both ends begin at different times,
/// so that smaller differences have no meaning.
fn vanished(facts: &mut RunFacts) {
    const PART: f64 = 0.5;

    let number = |name: &str| facts.get(name).and_then(Value::number);
    if let Some(sent) = number("sent_packets")
        && let Some(received) = number("received_packets")
        && received < PART * sent
    {
        insert(facts, "loss_share", Some(1.0 - received / sent));
    }
}

/// Facts of a run that only the server has: about its threads and what it sent.
const REPORTED_BY_PEER: &str = "\
    server_cpus receiver_thread_cpu sender_thread_cpu rwnd_limited_share sndbuf_limited_share \
    busy_share idle_share snd_wnd_bytes min_rtt_us mss_bytes pmtu_bytes rtt_us rtt_inflation \
    congestion reordered_segments reordering dsack_segments retransmits retransmit_share \
    sndbuf_bytes notsent_bytes sent_packets received_packets loss_share";

fn is_reported_by_peer(name: &str) -> bool {
    REPORTED_BY_PEER.split(' ').any(|known| known == name)
}
