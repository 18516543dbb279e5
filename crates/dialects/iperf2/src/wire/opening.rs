//! Recognition of a TCP connection by its first bytes. Never decided on fewer than four.

use crate::wire::bounceback;
use crate::wire::header::first;
use crate::wire::word;

/// Kind of a connection, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Too little to decide.
    NeedMore,
    /// The header of 2.0.14 or later.
    Header,
    /// A request of a bounce-back test.
    BounceBack,
    /// The 24 bytes of a release up to 2.0.13.
    Legacy,
    /// Data without a header.
    Data,
    /// Another protocol, or nothing we know.
    Foreign,
}

/// Bytes needed to decide.
pub const OPENING_LEN: usize = 4;

/// Classifies the first bytes of a connection.
pub fn recognise(bytes: &[u8]) -> Opening {
    let Some(flags) = word(bytes, 0) else {
        // No opening of ours but data and headers begins with other bytes, so a wrong first byte is
        // decisive.
        return match bytes.first() {
            None | Some(0x00 | 0x30 | 0x40..=0x57 | 0x80 | 0xc0..=0xd7) => Opening::NeedMore,
            Some(_) => Opening::Foreign,
        };
    };
    let length = (flags & first::LENGTH_FIELD) >> 1;

    match flags {
        bounceback::MARK => Opening::BounceBack,
        PATTERN => Opening::Data,
        _ if LEGACY.contains(&flags) => Opening::Legacy,
        _ if flags & HEADER_BITS == HEADER_BITS && flags & !first::KNOWN == 0 && length >= 60 => {
            Opening::Header
        }
        _ => Opening::Foreign,
    }
}

/// Bits every header has.
const HEADER_BITS: u32 = first::EXTENDED | first::LENGTH;
/// First words of old releases: normal, back afterwards, back at once, each also with the
/// extension.
const LEGACY: [u32; 6] = [
    0,
    0x8000_0000,
    0x8000_0001,
    0x4000_0000,
    0xc000_0000,
    0xc000_0001,
];
/// "0123": data begin with the first digits.
const PATTERN: u32 = 0x3031_3233;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_recognised_by_their_first_bytes() {
        let rows: &[(&[u8], Opening)] = &[
            (b"", Opening::NeedMore),
            (&[0x40], Opening::NeedMore),
            (&[0x40, 0x01, 0x00], Opening::NeedMore),
            (&[0x40, 0x01, 0x00, 0x78], Opening::Header),
            (&[0xc0, 0x01, 0x00, 0x81], Opening::Header),
            (&[0x50, 0x01, 0x00, 0x7c], Opening::Header),
            (&[0x44, 0x01, 0x00, 0x80], Opening::Header),
            (&[0x40, 0x01, 0x00, 0x10], Opening::Foreign),
            (&[0x00, 0x80, 0x00, 0x00], Opening::BounceBack),
            (&[0x00, 0x00, 0x00, 0x00], Opening::Legacy),
            (&[0x80, 0x00, 0x00, 0x01], Opening::Legacy),
            (b"0123456789", Opening::Data),
            (b"GET / HTTP/1.1\r\n", Opening::Foreign),
            (b"POST", Opening::Foreign),
            (b"PUT ", Opening::Foreign),
            (b"DELE", Opening::Foreign),
            (b"PRI * HTTP/2.0", Opening::Foreign),
            (&[0x16, 0x03, 0x01], Opening::Foreign),
            (b"abcdefghijklmnopqrstuvwxyz2345672345", Opening::Foreign),
            (b"a", Opening::Foreign),
        ];
        for (bytes, expected) in rows {
            assert_eq!(recognise(bytes), *expected, "{bytes:02x?}");
        }
    }
}
