//! A session reflector with a sequence number for each session (RFC 8762 section 4, stateful mode).

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;

use super::packet::{BASE_LEN, Head, LEN_MIN, Reflected, flag_extensions};
use super::timestamp::{ErrorEstimate, ntp};

/// Most sessions that are remembered: 3 MB.
pub const SESSIONS_MAX: usize = 16_384;
/// A session that is silent for this time has ended (`REFWAIT`, RFC 5357 section 4.2).
const SILENCE_MAX_NS: u64 = 900_000_000_000;
/// First port of a sender. Services below, other reflectors among them, would answer an answer.
const SENDER_PORT_MIN: u16 = 1024;

/// Answers test packets. Performs no I/O and reads no clock.
#[derive(Debug)]
pub struct Reflector {
    /// Port at which it receives.
    port: u16,
    sessions: HashMap<SessionId, Session>,
    /// All sessions, the one that is silent for the longest time first.
    by_age: BTreeSet<(u64, SessionId)>,
}

/// Address of the sender and the identifier that it chose (RFC 8972 section 3).
type SessionId = (SocketAddr, u16);

#[derive(Debug)]
struct Session {
    /// Sequence number of the next packet.
    next: u32,
    used_ns: u64,
}

/// A packet of a sender.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// Its source.
    pub from: SocketAddr,
    /// Time to live or hop limit with which it arrived; 0 where that is not known.
    pub ttl: u8,
    /// When it arrived, ns since 1970.
    pub received_ns: u64,
}

impl Reflector {
    /// A reflector without sessions, at this port.
    pub fn new(port: u16) -> Self {
        Self {
            port,
            sessions: HashMap::new(),
            by_age: BTreeSet::new(),
        }
    }

    /// Turns a packet into its answer, which has the same length. False for a packet that is not
    /// answered: it is too short, or comes from the port of a service.
    pub fn reflect(
        &mut self,
        packet: &mut [u8],
        arrival: Arrival,
        now_ns: u64,
        error: ErrorEstimate,
    ) -> bool {
        let port = arrival.from.port();
        let is_service = port < SENDER_PORT_MIN || port == self.port;
        let Some(sender) = Head::decode(packet).filter(|_| packet.len() >= LEN_MIN && !is_service)
        else {
            return false;
        };

        let sequence = self.next_sequence((arrival.from, sender.session), now_ns);
        let answer = Reflected {
            head: Head::new(sequence, now_ns, error, sender.session),
            received: ntp(arrival.received_ns),
            sender,
            ttl: arrival.ttl,
        };
        let (base, extensions) = packet.split_at_mut(packet.len().min(BASE_LEN));
        let answer = answer.packet();
        base.copy_from_slice(answer.get(..base.len()).unwrap_or(&answer));
        flag_extensions(extensions);
        true
    }

    fn next_sequence(&mut self, id: SessionId, now_ns: u64) -> u32 {
        let known = self
            .sessions
            .get(&id)
            .filter(|session| now_ns.saturating_sub(session.used_ns) <= SILENCE_MAX_NS);
        let sequence = known.map_or(0, |session| session.next);
        let session = Session {
            next: sequence.wrapping_add(1),
            used_ns: now_ns,
        };

        if let Some(before) = self.sessions.insert(id, session) {
            self.by_age.remove(&(before.used_ns, id));
        }
        self.by_age.insert((now_ns, id));

        if self.sessions.len() > SESSIONS_MAX
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.sessions.remove(&oldest);
        }
        sequence
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;
    use crate::wire::PORT;

    const S: u64 = 1_000_000_000;

    fn arrival(host: u32, port: u16) -> Arrival {
        Arrival {
            from: (Ipv4Addr::from_bits(host), port).into(),
            ttl: 63,
            received_ns: 2 * S,
        }
    }

    fn request(sequence: u32, session: u16) -> [u8; BASE_LEN] {
        Head::new(sequence, S, ErrorEstimate::default(), session).packet()
    }

    /// Sequence number of the answer to a packet of this session.
    fn sequence(reflector: &mut Reflector, from: Arrival, session: u16, now_ns: u64) -> u32 {
        let mut packet = request(77, session);
        assert!(reflector.reflect(&mut packet, from, now_ns, ErrorEstimate::default()));
        Reflected::decode(&packet).expect("an answer").head.sequence
    }

    #[test]
    fn answer_has_the_fields_of_both_ends() {
        let mut packet = request(7, 9);
        let mut reflector = Reflector::new(PORT);
        let error = ErrorEstimate::decode(0x8001);
        assert!(reflector.reflect(&mut packet, arrival(1, 5000), 3 * S, error));

        let answer = Reflected::decode(&packet).expect("an answer");
        assert_eq!(
            (answer.head.sequence, answer.head.session, answer.ttl),
            (0, 9, 63)
        );
        assert_eq!(
            (answer.received_ns(), answer.head.sent_ns()),
            (2 * S, 3 * S)
        );
        assert_eq!((answer.sender.sequence, answer.sender.sent_ns()), (7, S));
        assert!(ErrorEstimate::decode(answer.head.error).is_synchronized);
    }

    #[test]
    fn sessions_are_counted_apart_and_begin_again_after_silence() {
        let mut reflector = Reflector::new(PORT);
        let mut next =
            |host, port, session, now| sequence(&mut reflector, arrival(host, port), session, now);
        assert_eq!([0, 1, 2].map(|_| next(1, 5000, 0, 1)), [0, 1, 2]);
        assert_eq!(next(1, 5000, 1, 1), 0, "another identifier");
        assert_eq!(next(1, 5001, 0, 1), 0, "another port");
        assert_eq!(next(2, 5000, 0, 1), 0, "another host");
        assert_eq!(next(1, 5000, 0, 900 * S), 3);
        assert_eq!(next(1, 5000, 0, 1801 * S), 0, "REFWAIT has passed");
    }

    #[test]
    fn the_session_that_is_silent_for_longest_loses_its_place() {
        let mut reflector = Reflector::new(PORT);
        let others = SESSIONS_MAX as u64 - 1;
        sequence(&mut reflector, arrival(0, 5000), 0, 0);
        sequence(&mut reflector, arrival(1, 5000), 0, 1);
        (2..=others).for_each(|n| {
            sequence(&mut reflector, arrival(n as u32, 5000), 0, n);
        });
        assert_eq!(reflector.sessions.len(), SESSIONS_MAX);

        // The first one is in use again, so that the second one is replaced.
        assert_eq!(sequence(&mut reflector, arrival(0, 5000), 0, others + 1), 1);
        sequence(&mut reflector, arrival(u32::MAX, 5000), 0, others + 2);
        assert_eq!(reflector.sessions.len(), SESSIONS_MAX);
        assert_eq!(sequence(&mut reflector, arrival(0, 5000), 0, others + 3), 2);
        assert_eq!(sequence(&mut reflector, arrival(1, 5000), 0, others + 4), 0);
        assert_eq!(reflector.by_age.len(), reflector.sessions.len());
    }

    #[test]
    fn packets_that_are_short_or_from_services_are_not_answered() {
        let mut reflector = Reflector::new(8620);
        for (len, port, is_answered) in [
            (40, 5000, false),
            (41, 5000, true),
            (43, 5000, true),
            (0, 5000, false),
            // The echo service, another reflector, itself.
            (44, 7, false),
            (44, PORT, false),
            (44, 8620, false),
            (44, 1024, true),
        ] {
            let mut packet = request(7, 9);
            let packet = packet.get_mut(..len).expect("shorter");
            let answered = reflector.reflect(packet, arrival(1, port), S, ErrorEstimate::default());
            assert_eq!(answered, is_answered, "{len} bytes from port {port}");
        }
        assert_eq!(reflector.sessions.len(), 2);
    }

    proptest! {
        #[test]
        fn refused_packets_leave_no_session(packet in prop::collection::vec(any::<u8>(), 0..200), port: u16) {
            let mut reflector = Reflector::new(PORT);
            let mut answer = packet.clone();
            let answered = reflector.reflect(&mut answer, arrival(1, port), S, ErrorEstimate::default());
            prop_assert_eq!(answered, packet.len() >= LEN_MIN && port >= SENDER_PORT_MIN);
            prop_assert_eq!(reflector.sessions.len(), usize::from(answered));
        }
    }
}
