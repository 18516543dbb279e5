//! A session sender: its packets, and the answers to them.

use super::packet::{BASE_LEN, Head, Reflected};
use super::timestamp::ErrorEstimate;

/// Sequence number that the sender leaves out, as if its packet were lost. A reflector that counts
/// falls behind by one from there; one that copies the sender's number does not.
const LEFT_OUT: u32 = 1;

/// A session. Performs no I/O and reads no clock.
#[derive(Debug)]
pub struct Sender {
    session: u16,
    error: ErrorEstimate,
    probes: Vec<Probe>,
}

/// A packet and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// When it left, ns since 1970.
    pub sent_ns: u64,
    /// `None` of one that was lost in either direction.
    pub answer: Option<Answer>,
}

/// Answer of a reflector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Number that the reflector gave it.
    pub sequence: u32,
    /// When the packet arrived at the reflector, ns since 1970 by its clock.
    pub reflector_received_ns: u64,
    /// When the answer left the reflector.
    pub reflector_sent_ns: u64,
    /// When the answer arrived.
    pub received_ns: u64,
    /// Of the reflector's clock.
    pub error: ErrorEstimate,
    /// Time to live with which the packet arrived at the reflector; 0 where that is not known.
    pub ttl: u8,
}

impl Sender {
    /// A session with this identifier (RFC 8972 section 3), by a clock with this error.
    pub fn new(session: u16, error: ErrorEstimate) -> Self {
        Self {
            session,
            error,
            probes: Vec::new(),
        }
    }

    /// The next packet, which leaves now.
    pub fn next_packet(&mut self, now_ns: u64) -> [u8; BASE_LEN] {
        let index = u32::try_from(self.probes.len()).unwrap_or(u32::MAX);
        self.probes.push(Probe {
            sent_ns: now_ns,
            answer: None,
        });
        Head::new(sequence(index), now_ns, self.error, self.session).packet()
    }

    /// Takes a packet that arrived; `None` for one that answers no packet of this session, or one
    /// that is answered.
    pub fn receive(&mut self, packet: &[u8], received_ns: u64) -> Option<Probe> {
        let reflected = Reflected::decode(packet)?;
        let head = reflected.head;
        let sender = reflected.sender;
        // A reflector that knows RFC 8762 alone has zeros in place of the identifier.
        let is_ours = head.session == self.session || head.session == 0;
        let probe = self
            .probes
            .get_mut(usize::try_from(index(sender.sequence)?).ok()?)
            .filter(|probe| {
                probe.answer.is_none() && is_ours && sender.sent_ns() == probe.sent_ns
            })?;

        probe.answer = Some(Answer {
            sequence: head.sequence,
            reflector_received_ns: reflected.received_ns(),
            reflector_sent_ns: head.sent_ns(),
            received_ns,
            error: ErrorEstimate::decode(head.error),
            ttl: reflected.ttl,
        });
        Some(*probe)
    }

    /// All packets in the order in which they left.
    pub fn probes(&self) -> &[Probe] {
        &self.probes
    }

    /// Error of this end's clock.
    pub fn error(&self) -> ErrorEstimate {
        self.error
    }
}

/// Sequence number of the packet at this place.
const fn sequence(index: u32) -> u32 {
    if index < LEFT_OUT {
        index
    } else {
        index.saturating_add(1)
    }
}

/// Place of the packet with this sequence number.
const fn index(sequence: u32) -> Option<u32> {
    match sequence {
        LEFT_OUT => None,
        before if before < LEFT_OUT => Some(before),
        behind => Some(behind - 1),
    }
}

/// Packets that were lost, by the reflector's numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses {
    /// On the way to the reflector.
    pub up: u64,
    /// On the way back.
    pub down: u64,
    /// Behind the last one that was answered: nothing shows how far they came.
    pub unplaced: u64,
}

/// The reflector does not count, or answered nothing.
const STATELESS: &str = "the reflector copies sequence numbers, it does not count (stateless)";
/// It has lost its count, or counts for others as well.
const RESTARTED: &str = "the sequence numbers of the reflector fall back: it restarted";

/// Losses of each direction.
///
/// # Errors
/// Why the numbers show none.
pub fn losses(probes: &[Probe]) -> Result<Losses, &'static str> {
    let indexed = (0_u32..).zip(probes);
    let answered: Vec<(u32, Answer)> = indexed
        .filter_map(|(index, probe)| Some((index, probe.answer?)))
        .collect();
    // The first number of both is the same.
    let is_counted = |(index, answer): &(u32, Answer)| answer.sequence != sequence(*index);
    if !answered.iter().any(is_counted) {
        return Err(STATELESS);
    }

    // Answers may overtake each other on both ways.
    let mut numbers: Vec<(u64, u32)> = answered
        .iter()
        .map(|(_, answer)| (answer.reflector_sent_ns, answer.sequence))
        .collect();
    numbers.sort_unstable();
    let (Some((first, of_first)), Some((last, _)), Some((_, highest))) =
        (answered.first(), answered.last(), numbers.last())
    else {
        return Err(STATELESS);
    };

    // Some reflectors begin with another number than 0.
    let base = of_first.sequence.saturating_sub(*first);
    let reflected = u64::from(highest.saturating_sub(base)) + 1;
    let sent = u64::from(*last) + 1;
    if reflected > sent || !numbers.is_sorted_by(|(_, one), (_, next)| one < next) {
        return Err(RESTARTED);
    }
    Ok(Losses {
        up: sent - reflected,
        down: reflected.saturating_sub(answered.len() as u64),
        unplaced: probes.len() as u64 - sent,
    })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;
    use crate::wire::packet::LEN_MIN;
    use crate::wire::reflector::{Arrival, Reflector};

    const MS: u64 = 1_000_000;

    /// Probes over a path that loses packets in the direction of `lost`, at their places.
    fn probes(count: u32, up: &[u32], down: &[u32], is_counting: bool) -> Vec<Probe> {
        let mut sender = Sender::new(9, ErrorEstimate::default());
        let mut reflector = Reflector::new(862);
        let mut now_ns = 1000 * MS;
        for n in 0..count {
            let mut packet = sender.next_packet(now_ns);
            let own = packet;
            now_ns += 10 * MS;
            if up.contains(&n) {
                continue;
            }

            let arrival = Arrival {
                from: (Ipv4Addr::LOCALHOST, 5000).into(),
                ttl: 60,
                received_ns: now_ns,
            };
            assert!(reflector.reflect(&mut packet, arrival, now_ns + MS, ErrorEstimate::default()));
            if !is_counting {
                packet[..4].copy_from_slice(&own[..4]);
            }
            if !down.contains(&n) {
                let probe = sender.receive(&packet, now_ns + 4 * MS).expect("an answer");
                let answer = probe.answer.expect("it is kept");
                assert_eq!(answer.received_ns - probe.sent_ns, 14 * MS);
                assert_eq!(answer.reflector_sent_ns - answer.reflector_received_ns, MS);
                assert_eq!(sender.receive(&packet, now_ns), None, "a duplicate");
            }
        }
        sender.probes().to_vec()
    }

    #[test]
    fn losses_are_those_of_each_direction() {
        for (name, up, down, expected) in [
            ("none", &[][..], &[][..], (0, 0, 0)),
            ("up", &[3, 4], &[], (2, 0, 0)),
            ("down", &[], &[3, 7], (0, 2, 0)),
            ("both", &[0, 5], &[1, 9, 10], (2, 3, 0)),
            ("the last ones", &[18], &[19], (0, 0, 2)),
        ] {
            let found = losses(&probes(20, up, down, true)).expect("the reflector counts");
            assert_eq!((found.up, found.down, found.unplaced), expected, "{name}");
        }
    }

    #[test]
    fn reflector_that_copies_the_number_shows_no_losses() {
        assert_eq!(losses(&probes(20, &[3], &[7], false)), Err(STATELESS));
        assert_eq!(losses(&probes(20, &[], &[], false)), Err(STATELESS));
        let all: Vec<u32> = (0..20).collect();
        assert_eq!(losses(&probes(20, &all, &[], true)), Err(STATELESS));
    }

    #[test]
    fn reflector_that_restarts_shows_no_losses() {
        let after = |restart: usize| {
            let mut probes = probes(20, &[3], &[7], true);
            let behind = probes[restart..].iter_mut().zip(0..);
            for (answer, number) in
                behind.filter_map(|(probe, n)| Some((probe.answer.as_mut()?, n)))
            {
                answer.sequence = number;
            }
            losses(&probes)
        };
        for restart in 1..20 {
            assert_eq!(after(restart), Err(RESTARTED), "{restart}");
        }
        // Two packets that change places on their way are no restart.
        let mut swapped = probes(20, &[3], &[7], true);
        let [one, other] = [10, 11].map(|at| swapped[at].answer.expect("an answer"));
        (swapped[10].answer, swapped[11].answer) = (Some(other), Some(one));
        assert_eq!(losses(&swapped), losses(&probes(20, &[3], &[7], true)));
    }

    #[test]
    fn foreign_packets_are_no_answers() {
        let mut sender = Sender::new(9, ErrorEstimate::default());
        let packet = sender.next_packet(1000 * MS);
        let answer = |change: &dyn Fn(&mut Reflected)| {
            let mut reflected = Reflected {
                head: Head::decode(&packet).expect("a head"),
                sender: Head::decode(&packet).expect("a head"),
                ..Reflected::default()
            };
            change(&mut reflected);
            reflected.packet()
        };
        let changes: [&dyn Fn(&mut Reflected); 4] = [
            &|reflected| reflected.head.session = 8,
            &|reflected| reflected.sender.timestamp += 1 << 20,
            &|reflected| reflected.sender.sequence = LEFT_OUT,
            &|reflected| reflected.sender.sequence = u32::MAX,
        ];
        for change in changes {
            assert_eq!(sender.receive(&answer(change), 1001 * MS), None);
        }

        let twamp = answer(&|reflected| reflected.head.session = 0);
        assert!(sender.receive(&twamp[..LEN_MIN], 1001 * MS).is_some());
    }

    proptest! {
        #[test]
        fn losses_add_up(
            up in prop::collection::btree_set(0..50_u32, 0..20),
            down in prop::collection::btree_set(0..50_u32, 0..20),
        ) {
            let (up, down): (Vec<u32>, Vec<u32>) = (up.into_iter().collect(), down.into_iter().collect());
            let probes = probes(50, &up, &down, true);
            let answered = probes.iter().filter(|probe| probe.answer.is_some()).count() as u64;
            let found = losses(&probes).expect("the reflector counts");
            prop_assert_eq!(found.up + found.down + found.unplaced + answered, 50);
            prop_assert!(found.up <= up.len() as u64);
        }

        #[test]
        fn any_packet_is_taken_or_refused(packet: Vec<u8>, number: u32) {
            let mut sender = Sender::new(9, ErrorEstimate::default());
            sender.next_packet(1);
            sender.receive(&packet, 2);
            let wild = Probe { sent_ns: 1, answer: Some(Answer { sequence: number, reflector_received_ns: 0,
                reflector_sent_ns: 0, received_ns: 0, error: ErrorEstimate::default(), ttl: 0 }) };
            let _ = losses(&[wild, wild]);
        }
    }
}
