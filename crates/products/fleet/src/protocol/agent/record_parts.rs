//! A record in pieces that fit in messages.

use crate::protocol::line::STRING_MAX_BYTES;
use crate::protocol::message::PARTS_MAX;

/// Pieces of one part: 192 KiB, with room for the other members in a line.
const PIECES_PER_PART: usize = 48;

/// The pieces of each part; `None` when the record needs too many parts. An empty record is one
/// part without pieces.
pub(super) fn parts(record: &str) -> Option<Vec<Vec<String>>> {
    let mut parts = vec![Vec::new()];
    let mut rest = record;
    while !rest.is_empty() {
        if parts.last().map(Vec::len) == Some(PIECES_PER_PART) {
            if parts.len() == PARTS_MAX as usize {
                return None;
            }
            parts.push(Vec::new());
        }

        let (piece, behind) = rest.split_at(piece_len(rest));
        parts.last_mut()?.push(piece.to_owned());
        rest = behind;
    }

    Some(parts)
}

/// Bytes of the longest begin that is a string of [`STRING_MAX_BYTES`] as written.
fn piece_len(text: &str) -> usize {
    let mut written = 0;
    for (at, c) in text.char_indices() {
        written += written_bytes(c);
        // The character at this place would exceed the bound, so the piece ends before it.
        if written > STRING_MAX_BYTES {
            return at;
        }
    }

    text.len()
}

/// Bytes of a character in a string of JSON, RFC 8259 section 7.
fn written_bytes(c: char) -> usize {
    match c {
        // Lengths of the escapes of JSON (RFC 8259, section 7).
        '"' | '\\' | '\u{8}' | '\t' | '\n' | '\u{c}' | '\r' => 2,
        '\0'..='\u{1f}' => 6,
        c => c.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_to_the_record_and_fit_as_written() {
        for record in [
            "",
            "{}",
            &"\"".repeat(10_000),
            &"ä\0".repeat(5_000),
            &"x".repeat(1 << 20),
        ] {
            let parts = parts(record).expect("short enough");
            assert_eq!(parts.concat().concat(), *record);

            for piece in parts.iter().flatten() {
                let written = serde_json::to_string(piece).expect("JSON");
                assert!(written.len() <= STRING_MAX_BYTES + 2);
            }
        }
    }

    #[test]
    fn record_that_needs_more_than_sixteen_parts_has_none() {
        let max = PIECES_PER_PART * PARTS_MAX as usize * STRING_MAX_BYTES;
        assert_eq!(parts(&"x".repeat(max)).map(|parts| parts.len()), Some(16));
        assert_eq!(parts(&"x".repeat(max + 1)), None);
    }
}
