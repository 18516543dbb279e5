//! Requests and bodies from arbitrary bytes.

use super::segments::pieces;
use crate::message::chunked::{ChunkedError, Decoder};
use crate::server::loopback_harness::LoopbackHarness;

/// Handles the same requests at once and in segments, whose lengths are the bytes of `cuts`.
///
/// # Panics
/// When the responses differ.
pub fn answer_requests(cuts: &[u8], requests: &[u8]) {
    let whole = LoopbackHarness::new().receive_all([requests]);
    let cut = LoopbackHarness::new().receive_all(pieces(cuts, requests));
    assert_eq!(whole, cut);
}

/// Decodes the same body at once and in segments, whose lengths are the bytes of `cuts`; returns
/// the payload of a complete body.
///
/// # Panics
/// When the results differ, or more was consumed than given.
pub fn decode_chunks(cuts: &[u8], body: &[u8]) -> Option<Vec<u8>> {
    let whole = decode([body]);
    let cut = decode(pieces(cuts, body));
    assert_eq!(whole, cut);
    whole
        .ok()
        .filter(|(.., is_end)| *is_end)
        .map(|(payload, ..)| payload)
}

/// Payload of a body, bytes consumed, and whether it is complete.
type Decoded = (Vec<u8>, usize, bool);

pub(crate) fn decode<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Decoded, ChunkedError> {
    let (mut decoder, mut payload, mut used) = (Decoder::new(), Vec::new(), 0);
    for input in pieces {
        let mut rest = input;
        while !rest.is_empty() && !decoder.is_end() {
            let piece = decoder.piece(rest)?;
            let (taken, behind) = rest.split_at(piece.framing + piece.payload);
            assert!(!taken.is_empty(), "no progress");
            payload.extend(&taken[piece.framing..]);
            used += taken.len();
            rest = behind;
        }
    }

    Ok((payload, used, decoder.is_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_input() {
        for cuts in [&[][..], &[1, 0, 2], &[255]] {
            assert_eq!(
                pieces(cuts, b"abcdef").collect::<Vec<_>>().concat(),
                b"abcdef"
            );
        }
    }

    #[test]
    fn valid_and_invalid_input_do_not_depend_on_segmentation() {
        assert_eq!(
            decode_chunks(&[1, 2, 3], b"3\r\nabc\r\n0\r\n\r\nx"),
            Some(b"abc".to_vec())
        );
        assert_eq!(decode_chunks(&[1], b"3\r\nab"), None);
        assert_eq!(decode_chunks(&[1], b"zz"), None);
        answer_requests(
            &[3; 20],
            b"GET /b/9 HTTP/1.1\r\nHost: a\r\n\r\nPOST /sink HTTP/1.1\r\nHost: a\r\n\r\nGET\n",
        );
    }
}
