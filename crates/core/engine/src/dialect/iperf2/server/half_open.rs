//! UDP flows whose first datagram has arrived and whose second has not: a table with a bound, and
//! nothing else.
//!
//! A first datagram can be forged at the cost of sending it. It costs this end an entry, no socket,
//! no thread and no place among the tests; a second one in order opens the flow.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::time::Duration;

use linerate_sys::clock::as_ns;

use linerate_iperf2::wire::DatagramHead;
use linerate_iperf2::wire::datagram::{FlowOpening, NumberWidth};

use crate::server::limits::pending_limit::{PendingBounds, PendingLimit};

/// The table.
pub(crate) struct HalfOpenFlows {
    ids: HashMap<SocketAddr, u64>,
    /// In the order of arrival.
    flows: BTreeMap<u64, HalfOpen>,
    pending_limit: PendingLimit,
    next_id: u64,
}

/// The first datagram of a flow.
struct HalfOpen {
    peer: SocketAddr,
    number: i64,
    width: NumberWidth,
    /// Its beginning; the rest is payload.
    head: Vec<u8>,
    len: usize,
    arrived_ns: u64,
}

/// Effect of a datagram on its flow.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It begins no flow.
    Foreign,
    /// It is the first one.
    Held,
    /// It follows this one, which arrived at that time.
    Follows(Vec<u8>, u64),
}

/// Most entries: about 2 MB. A flood of forged datagrams replaces an entry after as many of them.
const FLOWS_MAX: usize = 4096;
/// Most entries of one address; a client with more flows opens them one after the other.
const FLOWS_PER_ADDRESS_MAX: usize = 512;
/// Longest pause between the first two datagrams.
const TIMEOUT: Duration = Duration::from_secs(10);
/// No header is longer.
const HEAD_BYTES: usize = 256;

impl Default for HalfOpenFlows {
    fn default() -> Self {
        Self::new(PendingBounds {
            total: FLOWS_MAX,
            per_source: FLOWS_PER_ADDRESS_MAX,
        })
    }
}

impl HalfOpenFlows {
    pub(crate) fn new(bounds: PendingBounds) -> Self {
        Self {
            ids: HashMap::new(),
            flows: BTreeMap::new(),
            pending_limit: PendingLimit::new(bounds),
            next_id: 0,
        }
    }

    /// Takes a datagram of an address that has no flow. Times do not decrease.
    pub(crate) fn take(&mut self, now_ns: u64, peer: SocketAddr, datagram: &[u8]) -> Step {
        self.expire(now_ns);
        if let Some(id) = self.ids.get(&peer).copied() {
            if self
                .flows
                .get(&id)
                .is_some_and(|flow| flow.is_followed_by(datagram))
            {
                return self.remove(id).map_or(Step::Foreign, HalfOpen::into_step);
            }

            return Step::Foreign;
        }

        let Some(unconnected) = FlowOpening::parse(datagram) else {
            return Step::Foreign;
        };
        self.hold(HalfOpen {
            peer,
            number: unconnected.head.number,
            width: unconnected.width,
            head: datagram[..datagram.len().min(HEAD_BYTES)].to_vec(),
            len: datagram.len(),
            arrived_ns: now_ns,
        });
        Step::Held
    }

    /// Entries.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn len(&self) -> usize {
        self.flows.len()
    }

    fn hold(&mut self, flow: HalfOpen) {
        let id = self.next_id;
        self.next_id += 1;
        let peer = flow.peer;
        self.ids.insert(peer, id);
        self.flows.insert(id, flow);

        // A first datagram can be forged at the cost of sending it, so the table is bounded as
        // pending connections are.
        if let Some(victim) = self.pending_limit.enter(id, peer.ip(), 0) {
            self.remove(victim);
        }
    }

    fn expire(&mut self, now_ns: u64) {
        let timeout_ns = as_ns(TIMEOUT);
        while let Some((&id, flow)) = self.flows.first_key_value()
            && now_ns.saturating_sub(flow.arrived_ns) >= timeout_ns
        {
            self.remove(id);
        }
    }

    fn remove(&mut self, id: u64) -> Option<HalfOpen> {
        let flow = self.flows.remove(&id)?;
        self.ids.remove(&flow.peer);
        self.pending_limit.leave(id);
        Some(flow)
    }
}

impl HalfOpen {
    /// Clients that wait for an answer repeat their first datagram; the last one of a flow has a
    /// negative number.
    fn is_followed_by(&self, datagram: &[u8]) -> bool {
        DatagramHead::parse(datagram, self.width)
            // The absolute value: the second datagram may be the last one, whose number is
            // negative.
            .is_some_and(|head| head.number.saturating_abs() >= self.number)
    }

    fn into_step(self) -> Step {
        let mut datagram = self.head;
        datagram.resize(self.len, 0);
        Step::Follows(datagram, self.arrived_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_iperf2::wire::Timestamp;

    const S: u64 = 1_000_000_000;

    fn peer(address: u8, port: u16) -> SocketAddr {
        ([192, 0, 2, address], port).into()
    }

    fn datagram(number: i64) -> Vec<u8> {
        let mut bytes = vec![b'7'; 64];
        let sent = Timestamp { sec: 1, usec: 2 };
        DatagramHead { number, sent }.write(&mut bytes);
        bytes
    }

    fn table() -> HalfOpenFlows {
        HalfOpenFlows::new(PendingBounds {
            total: 4,
            per_source: 2,
        })
    }

    #[test]
    fn the_second_datagram_in_order_opens_the_flow() {
        for second in [1, 2, 9, -2] {
            let mut table = table();
            assert_eq!(table.take(5, peer(1, 1), &datagram(1)), Step::Held);
            assert_eq!(
                table.take(6, peer(1, 2), &datagram(2)),
                Step::Held,
                "another flow"
            );

            let Step::Follows(first, arrived_ns) = table.take(7, peer(1, 1), &datagram(second))
            else {
                panic!("{second} follows");
            };
            assert_eq!((first, arrived_ns, table.len()), (datagram(1), 5, 1));
        }
    }

    #[test]
    fn invalid_or_reordered_datagram_opens_no_flow() {
        let mut table = table();
        assert_eq!(table.take(0, peer(1, 1), &datagram(-1)), Step::Foreign);
        assert_eq!(table.take(0, peer(1, 1), b"short"), Step::Foreign);
        assert_eq!(table.take(0, peer(1, 1), &datagram(7)), Step::Held);

        for datagram in [datagram(0), datagram(6), datagram(-6), b"short".to_vec()] {
            assert_eq!(table.take(0, peer(1, 1), &datagram), Step::Foreign);
        }

        assert_eq!(table.len(), 1);
    }

    #[test]
    fn entries_are_bounded_and_the_largest_source_loses_its_oldest() {
        let mut table = table();
        table.take(0, peer(1, 1), &datagram(1));

        for port in 1..=3 {
            table.take(0, peer(2, port), &datagram(1));
        }

        assert_eq!(table.len(), 3, "two of one address");
        for address in 3..=200 {
            table.take(0, peer(address, 1), &datagram(1));
            assert!(table.len() <= 4);
        }
    }

    #[test]
    fn an_entry_is_kept_for_a_time_only() {
        let mut table = table();
        table.take(0, peer(1, 1), &datagram(1));
        assert_eq!(table.take(10 * S, peer(2, 1), &datagram(1)), Step::Held);
        assert_eq!(table.len(), 1);
        assert_eq!(
            table.take(10 * S, peer(1, 1), &datagram(2)),
            Step::Held,
            "a first datagram again"
        );
    }
}
