//! Keys, proofs and tokens as text: two lower-case hexadecimal digits per byte.

use std::fmt::Write as _;

/// The bytes as text.
pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().fold(
        String::with_capacity(bytes.len().saturating_mul(2)),
        |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        },
    )
}

/// Exactly `N` bytes; `None` for a text of another length, with upper-case digits or with other
/// characters.
pub fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }

    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }

    Some(bytes)
}

fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn two_digits_per_byte_high_one_first() {
        assert_eq!(encode(&[0x00, 0x1f, 0xa5, 0xff]), "001fa5ff");
        assert_eq!(decode("001fa5ff"), Some([0x00, 0x1f, 0xa5, 0xff]));
    }

    #[test]
    fn other_lengths_and_characters_are_refused() {
        for text in [
            "", "0", "001", "00112", "001122", "0g", "AB", " 1", "+1", "0x", "é",
        ] {
            assert_eq!(decode::<1>(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn bytes_survive(bytes: [u8; 16]) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
    }
}
