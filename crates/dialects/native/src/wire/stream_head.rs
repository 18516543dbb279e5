//! The head of a data stream over TCP and the server's response to it.
//!
//! ```text
//! head    E5 6C 72 01 | kind u8 | flags u8 | stream u16 | token[16] | monotonic ns u64     32 bytes
//! answer  E5 6C 72 81 | status u8 | 0 | stream u16 | server ns u64                         16 bytes
//! ```

use crate::wire::bytes::{Reader, Writer};

/// First bytes of a head.
pub const MAGIC: [u8; 4] = [0xe5, 0x6c, 0x72, 0x01];
/// First bytes of an answer.
pub const ANSWER_MAGIC: [u8; 4] = [0xe5, 0x6c, 0x72, 0x81];
/// Bytes of a head.
pub const LEN: usize = 32;
/// Bytes of an answer.
pub const ANSWER_LEN: usize = 16;
/// Bytes of a token.
pub const TOKEN_LEN: usize = 16;

/// Flag: the server sends the load of this stream; without it the client does.
pub const FLAG_DOWN: u8 = 1;
/// Flag: load without frames.
pub const FLAG_RAW: u8 = 2;

/// Use of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamKind {
    /// Load, with echoes between its frames.
    Load = 1,
    /// Probe of a new connection; TLS follows.
    Probe = 2,
    /// Requests and responses.
    Rr = 3,
    /// One request and one response.
    Crr = 4,
}

impl StreamKind {
    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Load, Self::Probe, Self::Rr, Self::Crr]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

/// First bytes of a stream, sent by the client.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct StreamHead {
    /// Use of the stream.
    pub kind: StreamKind,
    /// [`FLAG_DOWN`], [`FLAG_RAW`]; other bits have no meaning and are ignored.
    pub flags: u8,
    /// Number of the stream in its phase.
    pub stream: u16,
    /// Single-use token that the server granted.
    pub token: [u8; TOKEN_LEN],
    /// Client's monotonic clock, ns.
    pub sent_ns: u64,
}

impl StreamHead {
    /// The bytes on the wire.
    pub fn encode(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        let mut writer = Writer(&mut bytes);
        writer.put(&MAGIC);
        writer.put(&[self.kind as u8, self.flags]);
        writer.put(&self.stream.to_be_bytes());
        writer.put(&self.token);
        writer.put(&self.sent_ns.to_be_bytes());

        bytes
    }

    /// Reads a head. `None` for other first bytes and for an unknown kind.
    pub fn decode(bytes: &[u8; LEN]) -> Option<Self> {
        let mut reader = Reader(bytes);
        if reader.take()? != MAGIC {
            return None;
        }

        Some(Self {
            kind: StreamKind::from_byte(reader.byte()?)?,
            flags: reader.byte()?,
            stream: reader.half()?,
            token: reader.take()?,
            sent_ns: reader.long()?,
        })
    }
}

debug_without_secrets!(StreamHead: kind, stream);

/// First bytes of a server on a stream that it accepted. A wrong token is answered with a reset and
/// no byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamAnswer {
    /// 0: accepted. Other values are an error of the server's host.
    pub status: u8,
    /// The number of the head.
    pub stream: u16,
    /// Server's monotonic clock, ns.
    pub server_ns: u64,
}

impl StreamAnswer {
    /// The bytes on the wire.
    pub fn encode(&self) -> [u8; ANSWER_LEN] {
        let mut bytes = [0; ANSWER_LEN];
        let mut writer = Writer(&mut bytes);
        writer.put(&ANSWER_MAGIC);
        writer.put(&[self.status, 0]);
        writer.put(&self.stream.to_be_bytes());
        writer.put(&self.server_ns.to_be_bytes());
        bytes
    }

    /// Reads an answer. `None` for other first bytes and for a reserved byte that is not 0.
    pub fn decode(bytes: &[u8; ANSWER_LEN]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let magic = reader.take()?;
        let [status, reserved] = reader.take()?;
        let stream = reader.half()?;
        let server_ns = reader.long()?;

        (magic == ANSWER_MAGIC && reserved == 0).then_some(Self {
            status,
            stream,
            server_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEAD: [u8; LEN] = [
        0xe5, 0x6c, 0x72, 0x01, 1, 3, 0x01, 0x02, 0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7,
        0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf, 0, 0, 0, 0, 0x3b, 0x9a, 0xca, 0x00,
    ];

    #[test]
    fn a_head_has_its_fields_at_their_places() {
        let head = StreamHead {
            kind: StreamKind::Load,
            flags: FLAG_DOWN | FLAG_RAW,
            stream: 0x0102,
            token: std::array::from_fn(|at| 0xa0 + at as u8),
            sent_ns: 1_000_000_000,
        };
        assert_eq!(head.encode(), HEAD);
        assert_eq!(StreamHead::decode(&HEAD), Some(head));
        assert!(!format!("{head:?}").contains("161"), "0xa1 of the token");
    }

    #[test]
    fn near_misses_of_a_head_are_refused() {
        for (at, wrong) in [
            (0, 0xe4),
            (1, 0x6d),
            (2, 0x73),
            (3, 0x02),
            (3, 0x81),
            (4, 0),
            (4, 5),
            (4, 0xff),
        ] {
            let mut bytes = HEAD;
            bytes[at] = wrong;
            assert_eq!(StreamHead::decode(&bytes), None, "byte {at} = {wrong:#x}");
        }
    }

    #[test]
    fn an_answer_has_its_fields_at_their_places() {
        let wire = [
            0xe5, 0x6c, 0x72, 0x81, 2, 0, 0xff, 0xfe, 0, 0, 0, 0, 0, 0, 1, 0,
        ];
        let answer = StreamAnswer {
            status: 2,
            stream: 0xfffe,
            server_ns: 256,
        };
        assert_eq!(answer.encode(), wire);
        assert_eq!(StreamAnswer::decode(&wire), Some(answer));

        for (at, wrong) in [(0, 0), (3, 0x01), (5, 1)] {
            let mut bytes = wire;
            bytes[at] = wrong;
            assert_eq!(StreamAnswer::decode(&bytes), None, "byte {at} = {wrong:#x}");
        }
    }

    proptest! {
        #[test]
        fn what_is_accepted_is_written_alike(mut bytes: [u8; LEN], kind in 0_u8..6) {
            bytes[..4].copy_from_slice(&MAGIC);
            bytes[4] = kind;
            let head = StreamHead::decode(&bytes);
            prop_assert_eq!(head.is_some(), (1..=4).contains(&kind));
            if let Some(head) = head {
                prop_assert_eq!(head.encode(), bytes);
            }
        }
    }
}
