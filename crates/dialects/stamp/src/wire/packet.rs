//! Test packets (RFC 8762 sections 4.2.1 and 4.3.1, session identifier of RFC 8972 section 3).
//!
//! ```text
//! sender     head | zero[28]                                                              44 bytes
//! reflector  head | received u64 | sender's sequence u32, timestamp u64, error u16 | zero[2]
//!            | TTL u8 | zero[3]                                                           44 bytes
//! head       sequence u32 | timestamp u64 | error u16 | session identifier u16
//! ```
//!
//! Behind them there may be padding or extensions.

use super::timestamp::{ErrorEstimate, TimeFormat, ntp};

/// Bytes of a packet without extensions.
pub const BASE_LEN: usize = 44;
/// Fewest bytes of a packet that is answered: a reflected packet of TWAMP Light without padding
/// (RFC 5357 section 4.2.1), so that the answer is not longer.
pub const LEN_MIN: usize = 41;

/// First fields of a packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Head {
    /// Number of the packet.
    pub sequence: u32,
    /// When it was sent, in the format of the error estimate.
    pub timestamp: u64,
    /// Error estimate as it is sent.
    pub error: u16,
    /// Identifier of the session; 0 for none.
    pub session: u16,
}

impl Head {
    /// A packet that leaves now.
    pub fn new(sequence: u32, unix_ns: u64, error: ErrorEstimate, session: u16) -> Self {
        let error = ErrorEstimate {
            format: TimeFormat::Ntp,
            ..error
        };
        Self {
            sequence,
            timestamp: ntp(unix_ns),
            error: error.encode(),
            session,
        }
    }

    /// Reads the head of a packet; `None` where it is too short.
    pub fn decode(packet: &[u8]) -> Option<Self> {
        Some(Self {
            sequence: u32::from_be_bytes(field(packet, 0)?),
            timestamp: u64::from_be_bytes(field(packet, 4)?),
            error: u16::from_be_bytes(field(packet, 12)?),
            session: u16::from_be_bytes(field(packet, 14)?),
        })
    }

    /// A packet of a sender.
    pub fn packet(&self) -> [u8; BASE_LEN] {
        let mut packet = [0; BASE_LEN];
        packet[..4].copy_from_slice(&self.sequence.to_be_bytes());
        packet[4..12].copy_from_slice(&self.timestamp.to_be_bytes());
        packet[12..14].copy_from_slice(&self.error.to_be_bytes());
        packet[14..16].copy_from_slice(&self.session.to_be_bytes());
        packet
    }

    /// When the packet was sent, ns since 1970.
    pub fn sent_ns(&self) -> u64 {
        self.time_ns(self.timestamp)
    }

    /// A time of the clock that sent the packet, ns since 1970.
    fn time_ns(&self, timestamp: u64) -> u64 {
        ErrorEstimate::decode(self.error).format.unix_ns(timestamp)
    }
}

/// A reflected packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reflected {
    /// Fields of the reflector.
    pub head: Head,
    /// When the sender's packet arrived, in the format of the reflector.
    pub received: u64,
    /// Fields of the sender; its identifier is that of `head`.
    pub sender: Head,
    /// Time to live with which the sender's packet arrived.
    pub ttl: u8,
}

impl Reflected {
    /// Reads a packet; `None` where it is too short.
    pub fn decode(packet: &[u8]) -> Option<Self> {
        let head = Head::decode(packet)?;
        Some(Self {
            head,
            received: u64::from_be_bytes(field(packet, 16)?),
            sender: Head {
                sequence: u32::from_be_bytes(field(packet, 24)?),
                timestamp: u64::from_be_bytes(field(packet, 28)?),
                error: u16::from_be_bytes(field(packet, 36)?),
                session: head.session,
            },
            ttl: *packet.get(40)?,
        })
    }

    /// The packet without extensions.
    pub fn packet(&self) -> [u8; BASE_LEN] {
        let mut packet = self.head.packet();
        packet[16..24].copy_from_slice(&self.received.to_be_bytes());
        packet[24..28].copy_from_slice(&self.sender.sequence.to_be_bytes());
        packet[28..36].copy_from_slice(&self.sender.timestamp.to_be_bytes());
        packet[36..38].copy_from_slice(&self.sender.error.to_be_bytes());
        packet[40] = self.ttl;
        packet
    }

    /// When the sender's packet arrived, ns since 1970.
    pub fn received_ns(&self) -> u64 {
        self.head.time_ns(self.received)
    }
}

fn field<const N: usize>(packet: &[u8], at: usize) -> Option<[u8; N]> {
    packet.get(at..)?.first_chunk().copied()
}

/// The reflector does not know the type of an extension (RFC 8972 section 4).
const UNRECOGNIZED: u8 = 0x80;
/// An extension is longer than what is left of the packet.
const MALFORMED: u8 = 0x40;
/// Bytes of an extension before its value: flags, type, length.
const EXTENSION_HEAD_LEN: usize = 4;
/// Type that no extension has: padding of TWAMP Light begins with it.
const RESERVED: u8 = 0;
/// Type of padding, the one extension that a reflector handles by copying it.
const EXTRA_PADDING: u8 = 1;

/// Sets the flags of a reflector in the extensions of a packet, which it copies otherwise.
pub fn flag_extensions(mut rest: &mut [u8]) {
    while let Some(&[_, kind, high, low]) = rest.first_chunk() {
        if kind == RESERVED {
            return;
        }

        let len = EXTENSION_HEAD_LEN + usize::from(u16::from_be_bytes([high, low]));
        let unrecognized = if kind == EXTRA_PADDING {
            0
        } else {
            UNRECOGNIZED
        };
        let malformed = if len > rest.len() { MALFORMED } else { 0 };
        rest[0] = unrecognized | malformed;
        // Behind one that is cut there is nothing.
        rest = std::mem::take(&mut rest).get_mut(len..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Figure 2 of RFC 8762 with the identifier of figure 1 of RFC 8972: sequence number, timestamp,
    /// error estimate, session identifier; zeros to the end.
    const SENDER: &str = "00000102 83aa7e8080000000 98fe 1234";

    /// Figure 5 of RFC 8762 with the identifier of figure 3 of RFC 8972: the same of the reflector,
    /// receive timestamp; sequence number, timestamp and error estimate of the sender, zeros, TTL.
    const REFLECTED: &str = "00000009 83aa7e8240000000 0001 1234 83aa7e8200000000 \
                             00000102 83aa7e8080000000 98fe 0000 3f";

    /// A packet by its fields in hexadecimal digits.
    fn bytes(fields: &str) -> [u8; BASE_LEN] {
        let digits: Vec<u32> = fields
            .chars()
            .filter_map(|digit| digit.to_digit(16))
            .collect();
        let mut packet = [0; BASE_LEN];
        for (byte, pair) in packet.iter_mut().zip(digits.chunks(2)) {
            *byte = (pair[0] << 4 | pair[1]) as u8;
        }
        packet
    }

    fn sender() -> Head {
        let error = ErrorEstimate {
            is_synchronized: true,
            error_ns: 990_000_000,
            ..ErrorEstimate::default()
        };
        Head::new(0x102, 500_000_000, error, 0x1234)
    }

    #[test]
    fn fields_are_where_the_rfcs_have_them() {
        let (sent, back) = (bytes(SENDER), bytes(REFLECTED));
        assert_eq!(sender().packet(), sent);
        assert_eq!(Head::decode(&sent), Some(sender()));
        assert_eq!(sender().sent_ns(), 500_000_000);

        let reflected = Reflected {
            head: Head::new(9, 2_250_000_000, ErrorEstimate::default(), 0x1234),
            received: ntp(2_000_000_000),
            sender: sender(),
            ttl: 63,
        };
        assert_eq!(reflected.packet(), back);
        assert_eq!(Reflected::decode(&back), Some(reflected));
        assert_eq!(reflected.received_ns(), 2_000_000_000);
        assert!(Reflected::decode(&back[..LEN_MIN]).is_some());
        assert_eq!(Reflected::decode(&back[..LEN_MIN - 1]), None);
        assert_eq!(Head::decode(&sent[..15]), None);
    }

    #[test]
    fn flags_of_extensions_show_what_the_reflector_handles() {
        for (name, sent, reflected) in [
            ("padding", vec![0x80, 1, 0, 2, 7, 8], vec![0, 1, 0, 2, 7, 8]),
            ("unknown", vec![0, 4, 0, 1, 9], vec![0x80, 4, 0, 1, 9]),
            (
                "two",
                vec![0x80, 1, 0, 0, 0x20, 8, 0, 0],
                vec![0, 1, 0, 0, 0x80, 8, 0, 0],
            ),
            ("cut", vec![0x80, 1, 0, 3, 7, 8], vec![0x40, 1, 0, 3, 7, 8]),
            (
                "unknown and cut",
                vec![0, 9, 0xff, 0xff],
                vec![0xc0, 9, 0xff, 0xff],
            ),
            ("rest of a head", vec![1, 2, 3], vec![1, 2, 3]),
            ("zeros of TWAMP Light", vec![0; 9], vec![0; 9]),
        ] {
            let mut packet = sent;
            flag_extensions(&mut packet);
            assert_eq!(packet, reflected, "{name}");
        }
    }

    proptest! {
        #[test]
        fn extensions_keep_all_but_their_flags(sent: Vec<u8>) {
            let mut reflected = sent.clone();
            flag_extensions(&mut reflected);
            let changed = sent.iter().zip(&reflected).filter(|(before, after)| before != after);
            prop_assert!(changed.count() <= sent.len() / EXTENSION_HEAD_LEN);
        }
    }
}
