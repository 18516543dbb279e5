//! The head of every UDP datagram, and the two words that open a UDP stream.

/// Bytes of the header with 32-bit counters.
pub const NARROW_LEN: usize = 12;
/// Bytes of the header with 64-bit counters (`--udp-counters-64bit`).
pub const WIDE_LEN: usize = 16;

/// First datagram of a stream, client to server ("9876").
pub const HELLO: [u8; 4] = [0x39, 0x38, 0x37, 0x36];
/// Its answer ("6789").
pub const REPLY: [u8; 4] = [0x36, 0x37, 0x38, 0x39];

/// Its answer to a client that announced itself as linerate: this end takes coalesced datagrams
/// (`UDP_GRO`, udp(7)), so large bursts do not overrun it.
pub const REPLY_COALESCING: [u8; 8] = *b"6789gro1";

/// 987654321 as sent by releases up to 3.11.
const LEGACY_REPLY: [u8; 4] = [0xb1, 0x68, 0xde, 0x3a];

/// Number and time of one datagram. All fields are big-endian on the wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UdpHeader {
    /// Seconds of the sender's monotonic clock; its origin is unknown to the receiver.
    pub sec: u32,
    /// Microseconds of that clock, 0..=999999 from an honest peer.
    pub usec: u32,
    /// Position in the stream, from 1.
    pub counter: u64,
}

impl UdpHeader {
    /// Bytes of the header on the wire.
    pub const fn len(wide: bool) -> usize {
        if wide { WIDE_LEN } else { NARROW_LEN }
    }

    /// A header for a datagram sent at `sent_ns` of a monotonic clock.
    #[inline]
    pub fn at(sent_ns: u64, counter: u64) -> Self {
        Self {
            sec: (sent_ns / 1_000_000_000) as u32,
            usec: (sent_ns % 1_000_000_000 / 1000) as u32,
            counter,
        }
    }

    /// The time of sending in ns; any two header words fit.
    #[inline]
    pub fn sent_ns(&self) -> u64 {
        u64::from(self.sec) * 1_000_000_000 + u64::from(self.usec) * 1000
    }

    /// Reads the head of a datagram; `None` when it is shorter than the header.
    #[inline]
    pub fn parse(datagram: &[u8], wide: bool) -> Option<Self> {
        let (sec, rest) = datagram.split_first_chunk::<4>()?;
        let (usec, rest) = rest.split_first_chunk::<4>()?;
        let counter = if wide {
            u64::from_be_bytes(*rest.first_chunk()?)
        } else {
            u64::from(u32::from_be_bytes(*rest.first_chunk()?))
        };

        Some(Self {
            sec: u32::from_be_bytes(*sec),
            usec: u32::from_be_bytes(*usec),
            counter,
        })
    }

    /// Writes the header over the start of a datagram; a narrow header carries the lower 32 bits of
    /// the counter. Returns false and writes nothing when the buffer is shorter than the header.
    #[inline]
    pub fn emit(&self, datagram: &mut [u8], wide: bool) -> bool {
        let mut head = [0; WIDE_LEN];
        head[..4].copy_from_slice(&self.sec.to_be_bytes());
        head[4..8].copy_from_slice(&self.usec.to_be_bytes());

        if wide {
            head[8..].copy_from_slice(&self.counter.to_be_bytes());
        } else {
            head[8..12].copy_from_slice(&(self.counter as u32).to_be_bytes());
        }

        let len = Self::len(wide);
        match datagram.get_mut(..len) {
            Some(target) => {
                target.copy_from_slice(&head[..len]);
                true
            }
            None => false,
        }
    }
}

/// Recognises an answer to a hello. Four variants exist: both byte orders of both generations.
pub fn is_reply(datagram: &[u8]) -> bool {
    either_order(datagram, REPLY) || either_order(datagram, LEGACY_REPLY)
}

/// Recognises an answer to a hello that also announces that the sender coalesces what it receives.
pub fn is_coalescing_reply(datagram: &[u8]) -> bool {
    datagram == REPLY_COALESCING
}

fn either_order(datagram: &[u8], mut word: [u8; 4]) -> bool {
    let straight = datagram == word;
    word.reverse();
    straight || datagram == word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_look_as_captured() {
        let header = UdpHeader {
            sec: 0x5f8,
            usec: 0x58782,
            counter: 1,
        };
        let mut datagram = [0xaa; 20];
        assert!(header.emit(&mut datagram, false));
        assert_eq!(
            datagram[..12],
            [0, 0, 5, 0xf8, 0, 5, 0x87, 0x82, 0, 0, 0, 1]
        );
        assert_eq!(datagram[12..], [0xaa; 8]);
        assert!(header.emit(&mut datagram, true));
        assert_eq!(datagram[8..16], [0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(UdpHeader::parse(&datagram, true), Some(header));
    }

    #[test]
    fn short_datagrams_are_no_headers() {
        assert_eq!(UdpHeader::parse(&[0; 11], false), None);
        assert_eq!(UdpHeader::parse(&[0; 15], true), None);
        assert!(!UdpHeader::default().emit(&mut [0; 11], false));
    }

    #[test]
    fn times_survive_and_hostile_ones_do_not_overflow() {
        let header = UdpHeader::at(1_528_362_370_000, 7);
        assert_eq!(
            header,
            UdpHeader {
                sec: 1528,
                usec: 362_370,
                counter: 7
            }
        );
        assert_eq!(header.sent_ns(), 1_528_362_370_000);

        let hostile = UdpHeader {
            sec: u32::MAX,
            usec: u32::MAX,
            counter: u64::MAX,
        };
        assert!(hostile.sent_ns() > 0);
    }

    #[test]
    fn every_generation_and_byte_order_of_the_opening_words_is_known() {
        for reply in [0x3637_3839_u32, 0x3938_3736, 0xb168_de3a, 0x3ade_68b1] {
            assert!(is_reply(&reply.to_be_bytes()), "{reply:x}");
        }

        assert!(is_coalescing_reply(&REPLY_COALESCING) && !is_reply(&REPLY_COALESCING));
        assert!(!is_reply(b"6789 and data"));
        assert!(!is_reply(b"678"));
    }
}
