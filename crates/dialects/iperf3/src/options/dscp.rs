//! Differentiated services code points by number and name (RFC 2474, RFC 2597, RFC 3246, RFC 5865).

use linerate_model::command_line::numbers::integer_any_base;
use linerate_model::command_line::tos::tos_by_name;

/// The type-of-service byte of a code point 0..=63 or of a name; names are compared without regard
/// to case.
pub(crate) fn tos_of(text: &[u8]) -> Option<u8> {
    let name = String::from_utf8_lossy(text).to_ascii_lowercase();
    by_name(&name).or_else(|| by_number(text))
}

fn by_number(text: &[u8]) -> Option<u8> {
    match integer_any_base(text)? {
        (number @ 0..=63, []) => u8::try_from(number << 2).ok(),
        _ => None,
    }
}

fn by_name(name: &str) -> Option<u8> {
    match name {
        "va" => Some(44 << 2),
        _ => tos_by_name(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_become_the_service_byte() {
        let rows: &[(&str, Option<u8>)] = &[
            ("0", Some(0)),
            ("46", Some(0xB8)),
            ("0x2e", Some(0xB8)),
            ("056", Some(0xB8)),
            ("ef", Some(0xB8)),
            ("VA", Some(0xB0)),
            ("af11", Some(0x28)),
            ("AF43", Some(0x98)),
            ("cs0", Some(0)),
            ("cs7", Some(0xE0)),
            ("lowdelay", Some(0x10)),
            ("throughput", Some(0x08)),
            ("reliability", Some(0x04)),
            ("64", None),
            ("-1", None),
            ("5x", None),
            ("af14", None),
            ("cs8", None),
            ("", None),
        ];
        for (text, expected) in rows {
            assert_eq!(tos_of(text.as_bytes()), *expected, "{text:?}");
        }
    }
}
