//! Names of type-of-service bytes.

use linerate_model::command_line::numbers::integer_any_base;

/// Reads a number in any base or a name. The whole text must be one.
pub(crate) fn tos_of(text: &[u8]) -> Option<u8> {
    if let Some((number, rest)) = integer_any_base(text) {
        return u8::try_from(number).ok().filter(|_| rest.is_empty());
    }

    let (_, tos) = NAMES
        .iter()
        .find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(text))?;
    Some(*tos)
}

/// Reads a code point or a name as the byte that it names.
pub(crate) fn tos_of_dscp(text: &[u8]) -> Option<u8> {
    match integer_any_base(text) {
        Some((number, rest)) => u8::try_from(number)
            .ok()
            .filter(|code| *code < 64 && rest.is_empty())
            .map(|code| code << 2),
        None => tos_of(text),
    }
}

/// RFC 2474, 2597, 3246 and 8622; the access categories are those of Wi-Fi. `le` and both `nqb` are
/// code points, which the original forgets to shift.
const NAMES: [(&str, u8); 31] = [
    ("af11", 0x28),
    ("af12", 0x30),
    ("af13", 0x38),
    ("af21", 0x48),
    ("af22", 0x50),
    ("af23", 0x58),
    ("af31", 0x68),
    ("af32", 0x70),
    ("af33", 0x78),
    ("af41", 0x88),
    ("af42", 0x90),
    ("af43", 0x98),
    ("cs0", 0x00),
    ("cs1", 0x20),
    ("cs2", 0x40),
    ("cs3", 0x60),
    ("cs4", 0x80),
    ("cs5", 0xa0),
    ("cs6", 0xc0),
    ("cs7", 0xe0),
    ("ef", 0xb8),
    ("le", 0x04),
    ("nqb", 0x14),
    ("nqb2", 0xb4),
    ("ac_be", 0x00),
    ("ac_bk", 0x20),
    ("ac_vi", 0x80),
    ("ac_vo", 0xb8),
    ("lowdelay", 0x10),
    ("throughput", 0x08),
    ("reliability", 0x04),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_become_a_byte() {
        let rows: &[(&str, Option<u8>)] = &[
            ("0x20", Some(0x20)),
            ("040", Some(0x20)),
            ("32", Some(0x20)),
            ("EF", Some(0xb8)),
            ("ac_vo", Some(0xb8)),
            ("le", Some(0x04)),
            ("256", None),
            ("0x1ff", None),
            ("32x", None),
            ("xyz", None),
            ("", None),
        ];
        for (text, expected) in rows {
            assert_eq!(tos_of(text.as_bytes()), *expected, "{text}");
        }

        assert_eq!(tos_of_dscp(b"46"), Some(0xb8));
        assert_eq!(tos_of_dscp(b"64"), None);
        assert_eq!(tos_of_dscp(b"cs1"), Some(0x20));
    }
}
