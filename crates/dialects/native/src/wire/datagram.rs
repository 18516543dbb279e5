//! Datagrams of a UDP flow.
//!
//! ```text
//! head      A5 | 01 | type u8 | flags u8 | flow u32 | tag u64 | sequence u64 | stamp u64     32 bytes
//! flow open token[16]                                                      a datagram of at least 64 bytes
//! reply     t2 u64 | t3 u64 | received u64 | TOS u8 | TTL u8               a datagram of at least 72 bytes
//! feedback  received u64 | highest u64 | bytes u64 | errors u64 | delay range u64 | rate u64
//! size      bytes u32 | TOS u8 | router[16], or shorter
//! ```
//!
//! A flow open from another address than that of the control connection, where the server allows
//! one, is answered by a challenge. Its stamp is the tag of the next flow open, which proves that
//! the address receives what is sent to it. No other flow open has a tag.
//!
//! Feedback travels against the load, every 50 ms as long as load arrives. In the search for
//! capacity (RFC 9097) a server that receives reports what it counted; a client that receives
//! requests the rate that the server is to follow, and without such a request for 2 s the server
//! sends nothing.
//!
//! Datagrams that are not as described are dropped and never answered.

use std::net::{IpAddr, Ipv6Addr};

use crate::wire::bytes::{Reader, Writer};
pub use crate::wire::sequence::ReceivedSequence;

/// First bytes of every datagram: mark and version.
pub const MAGIC: [u8; 2] = [0xa5, 0x01];
/// Bytes of the head.
pub const HEAD_LEN: usize = 32;
/// Fewest bytes of a flow open; the answer to it is not longer.
pub const FLOW_OPEN_LEN_MIN: usize = 64;
/// Fewest bytes of a probe and of its reply, which have the same length.
pub const PROBE_LEN_MIN: usize = 72;
/// Largest sequence number.
pub const SEQUENCE_MAX: u64 = 1 << 48;
/// Largest stamp: a monotonic clock does not reach it.
pub const STAMP_MAX: u64 = i64::MAX as u64;
/// TOS of a request whose IP header was not seen.
pub const TOS_UNKNOWN: u8 = 0xff;

/// Flag of a size probe from the client: its body is a [`SizeAnswer`] with the size and the TOS of
/// the size probe that the server is to send.
pub const FLAG_SIZE_REQUEST: u8 = 1;
/// Flag of a size answer: the size probe that was requested is too large for the server's interface
/// or for a router that reported it; the size is that of the largest IP packet.
pub const FLAG_TOO_LARGE: u8 = 2;
/// Flag of a size answer beside [`FLAG_TOO_LARGE`]: the size is the MTU of the server's own
/// interface.
pub const FLAG_INTERFACE: u8 = 4;

/// Kind of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DatagramType {
    /// Client: opens a flow with its token.
    FlowOpen = 0,
    /// Server: the flow is open.
    Open = 1,
    /// Load.
    Data = 2,
    /// To be answered with a reply.
    Probe = 3,
    /// Answer to a probe.
    Reply = 4,
    /// Receiver's counters and the rate that it requests.
    Feedback = 5,
    /// Datagram of a size to be tried.
    SizeProbe = 6,
    /// A size probe arrived.
    SizeAnswer = 7,
    /// The flow ends.
    Bye = 8,
    /// Server: the flow open is to be repeated with this stamp as its tag.
    Challenge = 9,
}

impl DatagramType {
    const ALL: [Self; 10] = [
        Self::FlowOpen,
        Self::Open,
        Self::Data,
        Self::Probe,
        Self::Reply,
        Self::Feedback,
        Self::SizeProbe,
        Self::SizeAnswer,
        Self::Bye,
        Self::Challenge,
    ];

    /// Fewest bytes of a datagram of this kind.
    pub fn len_min(self) -> usize {
        match self {
            Self::FlowOpen => FLOW_OPEN_LEN_MIN,
            Self::Probe | Self::Reply => PROBE_LEN_MIN,
            Self::Feedback => HEAD_LEN + Feedback::LEN,
            Self::SizeAnswer => HEAD_LEN + SizeAnswer::LEN,
            Self::Open | Self::Data | Self::SizeProbe | Self::Bye | Self::Challenge => HEAD_LEN,
        }
    }
}

/// A native datagram by its first bytes and its length; nothing else is checked.
pub fn is_native(bytes: &[u8]) -> bool {
    bytes.len() >= HEAD_LEN && bytes.starts_with(&MAGIC)
}

/// Head of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatagramHead {
    /// Kind of the datagram.
    pub datagram_type: DatagramType,
    /// [`FLAG_SIZE_REQUEST`], [`FLAG_TOO_LARGE`], [`FLAG_INTERFACE`]; other bits have no meaning
    /// and are ignored.
    pub flags: u8,
    /// Number of the flow in its session.
    pub flow: u32,
    /// Proof against injection by those who do not see the flow; the caller compares it. Of a flow
    /// open the stamp of the challenge that it answers, or 0.
    pub tag: u64,
    /// Position in the flow, at most [`SEQUENCE_MAX`]; of an answer that of its request.
    pub sequence: u64,
    /// Sender's monotonic clock in ns, at most [`STAMP_MAX`]; of a reply that of its probe (t1).
    pub stamp: u64,
}

/// A flow that both ends opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowId {
    /// Its number in its session.
    pub flow: u32,
    /// Proof against injection by those who do not see the flow.
    pub tag: u64,
}

impl FlowId {
    /// Head of a datagram without flags.
    pub const fn head(
        self,
        datagram_type: DatagramType,
        sequence: u64,
        stamp: u64,
    ) -> DatagramHead {
        DatagramHead {
            datagram_type,
            flags: 0,
            flow: self.flow,
            tag: self.tag,
            sequence,
            stamp,
        }
    }
}

impl DatagramHead {
    /// The flow that it claims to be of; the caller compares it.
    pub const fn id(&self) -> FlowId {
        FlowId {
            flow: self.flow,
            tag: self.tag,
        }
    }

    /// Writes the head over the start of a datagram. Nothing is written into fewer than
    /// [`HEAD_LEN`] bytes.
    #[inline]
    pub fn encode_into(&self, datagram: &mut [u8]) {
        let Some(head) = datagram.first_chunk_mut::<HEAD_LEN>() else {
            return;
        };
        let mut writer = Writer(head);
        writer.put(&MAGIC);
        writer.put(&[self.datagram_type as u8, self.flags]);
        writer.put(&self.flow.to_be_bytes());
        writer.put(&self.tag.to_be_bytes());
        writer.put(&self.sequence.to_be_bytes());
        writer.put(&self.stamp.to_be_bytes());
    }

    /// Reads the head of a datagram. `None` for other first bytes, an unknown kind, a datagram
    /// shorter than its kind needs, and a number or stamp beyond its bound.
    #[inline]
    pub fn decode(datagram: &[u8]) -> Option<Self> {
        let mut reader = Reader(datagram);
        if reader.take()? != MAGIC {
            return None;
        }

        let datagram_type = *DatagramType::ALL.get(usize::from(reader.byte()?))?;
        let head = Self {
            datagram_type,
            flags: reader.byte()?,
            flow: reader.word()?,
            tag: reader.long()?,
            sequence: reader.long()?,
            stamp: reader.long()?,
        };
        let is_possible = head.sequence <= SEQUENCE_MAX && head.stamp <= STAMP_MAX;

        (is_possible && datagram.len() >= datagram_type.len_min()).then_some(head)
    }
}

/// Body of a flow-open datagram.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FlowOpen {
    /// Single-use token that the server granted.
    pub token: [u8; 16],
}

impl FlowOpen {
    /// Writes the body behind the head, as far as the datagram is long enough.
    pub fn encode_into(&self, datagram: &mut [u8]) {
        body(datagram).put(&self.token);
    }

    /// Reads the body. `None` for a datagram that is too short.
    pub fn decode(datagram: &[u8]) -> Option<Self> {
        Some(Self {
            token: Reader(datagram.get(HEAD_LEN..)?).take()?,
        })
    }
}

debug_without_secrets!(FlowOpen);

/// Body of a reply. Its stamp is that of the probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyBody {
    /// When the probe arrived (t2), ns of the answering end.
    pub received_ns: u64,
    /// When the reply left (t3), ns of the answering end.
    pub sent_ns: u64,
    /// Distinct probes of this flow that arrived so far, this one included.
    pub received_count: u64,
    /// TOS of the probe as it arrived; [`TOS_UNKNOWN`] where that is not known.
    pub tos: u8,
    /// TTL or hop limit of the probe as it arrived; 0 where that is not known.
    pub ttl: u8,
}

impl ReplyBody {
    /// Writes the body behind the head, as far as the datagram is long enough.
    #[inline]
    pub fn encode_into(&self, datagram: &mut [u8]) {
        let mut writer = body(datagram);
        for field in [self.received_ns, self.sent_ns, self.received_count] {
            writer.put(&field.to_be_bytes());
        }
        writer.put(&[self.tos, self.ttl]);
    }

    /// Reads the body. `None` for a datagram that is too short and for a reply that left before its
    /// probe arrived.
    #[inline]
    pub fn decode(datagram: &[u8]) -> Option<Self> {
        let mut reader = Reader(datagram.get(HEAD_LEN..)?);
        let reply = Self {
            received_ns: reader.long()?,
            sent_ns: reader.long()?,
            received_count: reader.long()?,
            tos: reader.byte()?,
            ttl: reader.byte()?,
        };
        (reply.received_ns <= reply.sent_ns && reply.sent_ns <= STAMP_MAX).then_some(reply)
    }
}

/// Body of a feedback: counters of the receiver since the flow was opened. The
/// head has its number, and as stamp when the last datagram that it counts arrived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Feedback {
    /// Distinct datagrams of load that arrived.
    pub received: u64,
    /// Highest sequence number among them.
    pub highest: u64,
    /// Bytes of UDP payload that arrived.
    pub bytes: u64,
    /// Datagrams that are missing below the highest, or arrived behind a later one.
    pub errors: u64,
    /// Largest delay since the previous feedback above the smallest of the flow, ns.
    pub delay_range_ns: u64,
    /// Rate that the receiver requests, bit/s of IP packets; 0 where it requests none.
    pub rate_bps: u64,
}

impl Feedback {
    const LEN: usize = 48;

    /// Writes the body behind the head, as far as the datagram is long enough.
    pub fn encode_into(&self, datagram: &mut [u8]) {
        let mut writer = body(datagram);
        for field in [
            self.received,
            self.highest,
            self.bytes,
            self.errors,
            self.delay_range_ns,
            self.rate_bps,
        ] {
            writer.put(&field.to_be_bytes());
        }
    }

    /// Reads the body. `None` for a datagram that is too short and for a number beyond its bound.
    pub fn decode(datagram: &[u8]) -> Option<Self> {
        let mut reader = Reader(datagram.get(HEAD_LEN..)?);
        let feedback = Self {
            received: reader.long()?,
            highest: reader.long()?,
            bytes: reader.long()?,
            errors: reader.long()?,
            delay_range_ns: reader.long()?,
            rate_bps: reader.long()?,
        };
        (feedback.highest <= SEQUENCE_MAX).then_some(feedback)
    }
}

/// Body of a size answer. Its sequence number and stamp are those of the size
/// probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeAnswer {
    /// UDP payload of the size probe as it arrived.
    pub bytes: u32,
    /// TOS of the size probe as it arrived; [`TOS_UNKNOWN`] where that is not known.
    pub tos: u8,
    /// Router that reported that the probe is too large; IPv4 as a mapped address (RFC 4291).
    pub reported_by: Option<IpAddr>,
}

impl SizeAnswer {
    const LEN: usize = 5;
    /// The same with the router.
    pub const LEN_MAX: usize = Self::LEN + 16;

    /// Writes the body behind the head, as far as the datagram is long enough.
    pub fn encode_into(&self, datagram: &mut [u8]) {
        let mut writer = body(datagram);
        writer.put(&self.bytes.to_be_bytes());
        writer.put(&[self.tos]);
        match self.reported_by {
            Some(IpAddr::V4(router)) => writer.put(&router.to_ipv6_mapped().octets()),
            Some(IpAddr::V6(router)) => writer.put(&router.octets()),
            None => {}
        }
    }

    /// Reads the body. `None` for a datagram that is too short.
    pub fn decode(datagram: &[u8]) -> Option<Self> {
        let mut reader = Reader(datagram.get(HEAD_LEN..)?);
        Some(Self {
            bytes: reader.word()?,
            tos: reader.byte()?,
            reported_by: reader
                .take::<16>()
                .map(Ipv6Addr::from)
                .filter(|router| !router.is_unspecified())
                .map(|router| IpAddr::V6(router).to_canonical()),
        })
    }
}

fn body(datagram: &mut [u8]) -> Writer<'_> {
    Writer(datagram.get_mut(HEAD_LEN..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEAD: [u8; HEAD_LEN] = [
        0xa5, 0x01, 2, 0, 0, 0, 1, 2, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0, 1, 0, 0,
        0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    ];

    fn typed(datagram_type: u8, len: usize) -> Vec<u8> {
        let mut bytes = HEAD.to_vec();
        bytes[2] = datagram_type;
        bytes.resize(len, 0);
        bytes
    }

    #[test]
    fn a_head_has_its_fields_at_their_places() {
        let head = DatagramHead {
            datagram_type: DatagramType::Data,
            flags: 0,
            flow: 258,
            tag: 0x1122_3344_5566_7788,
            sequence: SEQUENCE_MAX,
            stamp: STAMP_MAX,
        };
        let mut bytes = [9; 40];
        head.encode_into(&mut bytes);
        assert_eq!(bytes[..HEAD_LEN], HEAD);
        assert_eq!(bytes[HEAD_LEN..], [9; 8]);
        assert_eq!(DatagramHead::decode(&bytes), Some(head));

        let mut short = [9; HEAD_LEN - 1];
        head.encode_into(&mut short);
        assert_eq!(short, [9; HEAD_LEN - 1]);
    }

    #[test]
    fn every_kind_has_its_shortest_datagram() {
        for (datagram_type, len_min) in [
            (0, 64),
            (1, 32),
            (2, 32),
            (3, 72),
            (4, 72),
            (5, 80),
            (6, 32),
            (7, 37),
            (8, 32),
        ] {
            let head = DatagramHead::decode(&typed(datagram_type, len_min));
            assert_eq!(
                head.map(|head| head.datagram_type as u8),
                Some(datagram_type)
            );
            assert_eq!(
                DatagramHead::decode(&typed(datagram_type, len_min - 1)),
                None,
                "{datagram_type}"
            );
        }
    }

    #[test]
    fn near_misses_are_refused() {
        let rows = [
            ("mark", 0, 0xa4),
            ("version", 1, 2),
            ("kind", 2, 10),
            ("sequence 2^48 + 1", 23, 1),
            ("sequence with a high bit", 16, 0x80),
            ("stamp with the sign bit", 24, 0x80),
        ];
        for (name, at, wrong) in rows {
            let mut bytes = HEAD;
            bytes[at] = wrong;
            assert_eq!(DatagramHead::decode(&bytes), None, "{name}");
        }

        assert!(is_native(&HEAD));
        assert!(!is_native(&HEAD[..31]));
        assert!(!is_native(&[0xa5; 32]));
    }

    #[test]
    fn bodies_have_their_fields_at_their_places() {
        let mut datagram = [0; 72];
        let reply = ReplyBody {
            received_ns: 1,
            sent_ns: 2,
            received_count: 3,
            tos: 0xb8,
            ttl: 64,
        };
        reply.encode_into(&mut datagram);
        assert_eq!(
            datagram[HEAD_LEN..58],
            [
                0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0xb8, 64
            ]
        );
        assert_eq!(ReplyBody::decode(&datagram), Some(reply));
        assert_eq!(ReplyBody::decode(&datagram[..57]), None);

        let open = FlowOpen { token: [0xab; 16] };
        open.encode_into(&mut datagram);
        assert_eq!(datagram[HEAD_LEN..48], [0xab; 16]);
        assert_eq!(FlowOpen::decode(&datagram), Some(open));
        assert_eq!(FlowOpen::decode(&datagram[..47]), None);

        let size = SizeAnswer {
            bytes: 1472,
            tos: TOS_UNKNOWN,
            reported_by: None,
        };
        datagram[37..].fill(0);
        size.encode_into(&mut datagram);
        assert_eq!(datagram[HEAD_LEN..37], [0, 0, 0x05, 0xc0, 0xff]);
        assert_eq!(
            (
                SizeAnswer::decode(&datagram),
                SizeAnswer::decode(&datagram[..36])
            ),
            (Some(size), None)
        );

        for router in ["192.0.2.1", "2001:db8::1"] {
            let reported = SizeAnswer {
                reported_by: router.parse().ok(),
                ..size
            };
            reported.encode_into(&mut datagram);
            assert_eq!(SizeAnswer::decode(&datagram), Some(reported));
            // A server without the field.
            assert_eq!(SizeAnswer::decode(&datagram[..40]), Some(size));
        }
    }

    #[test]
    fn a_reply_before_its_probe_is_refused() {
        let mut datagram = [0; 72];
        for (received_ns, sent_ns, is_possible) in
            [(5, 5, true), (5, 4, false), (0, u64::MAX, false)]
        {
            ReplyBody {
                received_ns,
                sent_ns,
                received_count: 1,
                tos: 0,
                ttl: 1,
            }
            .encode_into(&mut datagram);
            assert_eq!(
                ReplyBody::decode(&datagram).is_some(),
                is_possible,
                "{received_ns} {sent_ns}"
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_accepted_is_written_alike(mut bytes in prop::collection::vec(any::<u8>(), 0..100), kind in 0_u8..10) {
            for (to, from) in bytes.iter_mut().zip([0xa5, 1, kind]) {
                *to = from;
            }
            if let Some(head) = DatagramHead::decode(&bytes) {
                let mut again = bytes.clone();
                again[..HEAD_LEN].fill(0);
                head.encode_into(&mut again);
                prop_assert_eq!(again, bytes);
            }
        }

        #[test]
        fn feedback_survives(
            (received, bytes, errors, delay_range_ns, rate_bps) in any::<(u64, u64, u64, u64, u64)>(),
            highest in 0..=SEQUENCE_MAX,
        ) {
            let feedback = Feedback { received, highest, bytes, errors, delay_range_ns, rate_bps };
            let mut datagram = [0; 80];
            feedback.encode_into(&mut datagram);
            prop_assert_eq!(Feedback::decode(&datagram), Some(feedback));
        }
    }
}
