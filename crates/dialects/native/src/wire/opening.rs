//! The first bytes of a connection on the shared port, in both directions.

/// Characters before every native cookie. An iperf3 client draws them with a probability of
/// 2^-60.
pub const COOKIE_PREFIX: &str = "lrnative2222";
/// Bytes of a cookie: 36 characters and NUL, as iperf3 sends them.
pub const COOKIE_WIRE_LEN: usize = 37;
/// First bytes of a native server; the first one is no iperf3 state. The client's TLS ClientHello
/// follows.
pub const ACCEPTED: [u8; 4] = *b"LRN\x01";

/// Characters of a cookie; 32 of them, so that five random bits select one.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// `PARAM_EXCHANGE` of iperf3.
const IPERF3_ACCEPTS: u8 = 9;
/// `ACCESS_DENIED` of iperf3, -1.
const IPERF3_REFUSES: u8 = 0xff;
/// `SERVER_ERROR` of iperf3, -2.
const IPERF3_FAILS: u8 = 0xfe;

/// A cookie of 120 random bits; the caller owns the source of randomness.
pub fn cookie(random: [u8; 24]) -> [u8; COOKIE_WIRE_LEN] {
    let drawn = random.map(|byte| {
        ALPHABET
            .get(usize::from(byte % 32))
            .copied()
            .unwrap_or(b'a')
    });
    let text = COOKIE_PREFIX.bytes().chain(drawn);
    let mut wire = [0; COOKIE_WIRE_LEN];
    for (to, from) in wire.iter_mut().zip(text) {
        *to = from;
    }

    wire
}

/// Kind of a connection, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// A native cookie.
    Control,
    /// The head of a data stream, [`crate::wire::stream_head`].
    StreamHead,
    /// At least this many further bytes are needed; never 0.
    NeedMore(usize),
    /// Another protocol.
    Foreign,
}

/// Classifies the first bytes of a connection. Bytes behind the cookie or the head are not
/// examined.
pub fn recognise(first_bytes: &[u8]) -> Opening {
    let magic = crate::wire::stream_head::MAGIC;
    let has_stream_magic = first_bytes
        .iter()
        .zip(&magic)
        .all(|(byte, wanted)| byte == wanted);

    match first_bytes {
        [] => Opening::NeedMore(1),
        // The magic is no text, so it cannot begin a cookie.
        _ if has_stream_magic => complete(
            first_bytes,
            crate::wire::stream_head::LEN,
            Opening::StreamHead,
        ),
        _ if is_cookie_start(first_bytes) => {
            complete(first_bytes, COOKIE_WIRE_LEN, Opening::Control)
        }
        _ => Opening::Foreign,
    }
}

fn complete(bytes: &[u8], len: usize, opening: Opening) -> Opening {
    match len.saturating_sub(bytes.len()) {
        0 => opening,
        missing => Opening::NeedMore(missing),
    }
}

fn is_cookie_start(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .take(COOKIE_WIRE_LEN)
        .enumerate()
        .all(|(at, byte)| match COOKIE_PREFIX.as_bytes().get(at) {
            Some(wanted) => byte == wanted,
            // iperf3 ends its cookie with a NUL.
            None if at == COOKIE_WIRE_LEN - 1 => *byte == 0,
            None => ALPHABET.contains(byte),
        })
}

/// A server's response to a native cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// [`ACCEPTED`]: TLS begins.
    Native,
    /// 09: the server takes the cookie for one of iperf3.
    Iperf3,
    /// FF: the server is busy; iperf3 sends it before it reads the cookie.
    Busy,
    /// FE: the server admits no test from this address.
    NotAdmitted,
    /// Too few bytes to decide.
    Incomplete,
    /// Another protocol, or another version of this one.
    Foreign,
}

/// Classifies the first bytes of a server.
pub fn answer(bytes: &[u8]) -> Answer {
    match bytes {
        [] => Answer::Incomplete,
        [IPERF3_ACCEPTS, ..] => Answer::Iperf3,
        [IPERF3_REFUSES, ..] => Answer::Busy,
        [IPERF3_FAILS, ..] => Answer::NotAdmitted,
        _ if bytes.starts_with(&ACCEPTED) => Answer::Native,
        // The answer may arrive in pieces.
        _ if ACCEPTED.starts_with(bytes) => Answer::Incomplete,
        _ => Answer::Foreign,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::stream_head::{StreamHead, StreamKind};

    fn head() -> [u8; 32] {
        StreamHead {
            kind: StreamKind::Load,
            flags: 0,
            stream: 1,
            token: [7; 16],
            sent_ns: 5,
        }
        .encode()
    }

    #[test]
    fn protocols_are_recognised_by_their_first_bytes() {
        let cookie = cookie([0; 24]);
        let changed = |at: usize, to: u8| {
            let mut bytes = cookie;
            bytes[at] = to;
            bytes.to_vec()
        };

        let rows: &[(&str, Vec<u8>, Opening)] = &[
            ("nothing", vec![], Opening::NeedMore(1)),
            ("first character", b"l".to_vec(), Opening::NeedMore(36)),
            ("prefix", COOKIE_PREFIX.into(), Opening::NeedMore(25)),
            (
                "cookie without NUL",
                cookie[..36].to_vec(),
                Opening::NeedMore(1),
            ),
            ("cookie", cookie.to_vec(), Opening::Control),
            (
                "cookie and more",
                [&cookie[..], &[0xff]].concat(),
                Opening::Control,
            ),
            ("prefix differs", changed(11, b'3'), Opening::Foreign),
            ("first character differs", b"m".to_vec(), Opening::Foreign),
            ("upper case", changed(12, b'A'), Opening::Foreign),
            (
                "digit outside the alphabet",
                changed(35, b'1'),
                Opening::Foreign,
            ),
            ("NUL too early", changed(20, 0), Opening::Foreign),
            ("no NUL", changed(36, b'a'), Opening::Foreign),
            ("head begins", vec![0xe5, 0x6c], Opening::NeedMore(30)),
            ("head", head().to_vec(), Opening::StreamHead),
            (
                "head and more",
                [&head()[..], &[0; 9]].concat(),
                Opening::StreamHead,
            ),
            (
                "other version of the head",
                vec![0xe5, 0x6c, 0x72, 0x02],
                Opening::Foreign,
            ),
            (
                "answer to a head",
                vec![0xe5, 0x6c, 0x72, 0x81],
                Opening::Foreign,
            ),
            (
                "iperf3",
                b"abcdefghijklmnopqrstuvwxyz2345672345\0".to_vec(),
                Opening::Foreign,
            ),
            ("iperf 2", vec![0x40, 0x01, 0x00, 0x78], Opening::Foreign),
            ("HTTP", b"GET / HTTP/1.1\r\n".to_vec(), Opening::Foreign),
            ("TLS", vec![0x16, 0x03, 0x01], Opening::Foreign),
        ];
        for (name, bytes, expected) in rows {
            assert_eq!(recognise(bytes), *expected, "{name}");
        }
    }

    #[test]
    fn a_server_is_recognised_by_its_first_bytes() {
        let rows: &[(&[u8], Answer)] = &[
            (b"", Answer::Incomplete),
            (b"L", Answer::Incomplete),
            (b"LRN", Answer::Incomplete),
            (b"LRN\x01", Answer::Native),
            (b"LRN\x01\x16", Answer::Native),
            (b"LRN\x02", Answer::Foreign),
            (b"LRM", Answer::Foreign),
            (&[9], Answer::Iperf3),
            (&[9, 10], Answer::Iperf3),
            (&[0xff], Answer::Busy),
            (&[0xfe], Answer::NotAdmitted),
            (&[0xfd], Answer::Foreign),
            (&[10], Answer::Foreign),
            (b"HTTP/1.1 400", Answer::Foreign),
        ];
        for (bytes, expected) in rows {
            assert_eq!(answer(bytes), *expected, "{bytes:02x?}");
        }
    }

    proptest! {
        #[test]
        fn every_cookie_is_recognised_at_its_last_byte_and_not_before(random: [u8; 24]) {
            let wire = cookie(random);
            for len in 1..COOKIE_WIRE_LEN {
                prop_assert_eq!(recognise(&wire[..len]), Opening::NeedMore(COOKIE_WIRE_LEN - len));
            }
            prop_assert_eq!(recognise(&wire), Opening::Control);
        }

        #[test]
        fn cookies_differ_where_their_random_bits_do(first: [u8; 24], second: [u8; 24]) {
            let same = first.map(|byte| byte % 32) == second.map(|byte| byte % 32);
            prop_assert_eq!(cookie(first) == cookie(second), same);
        }
    }
}
