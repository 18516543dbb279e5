//! Names of type-of-service bytes.

use linerate_model::command_line::numbers::integer_any_base;
use linerate_model::command_line::tos::tos_by_name;

/// Reads a number in any base or a name. The whole text must be one.
pub(crate) fn tos_of(text: &[u8]) -> Option<u8> {
    if let Some((number, rest)) = integer_any_base(text) {
        return u8::try_from(number).ok().filter(|_| rest.is_empty());
    }

    let name = String::from_utf8_lossy(text).to_ascii_lowercase();
    let own = OWN_NAMES.iter().find(|(own, _)| *own == name);
    own.map(|(_, tos)| *tos).or_else(|| tos_by_name(&name))
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

/// RFC 8622; the access categories are those of Wi-Fi. `le` and both `nqb` are code points, which
/// the original forgets to shift.
const OWN_NAMES: [(&str, u8); 7] = [
    ("le", 0x04),
    ("nqb", 0x14),
    ("nqb2", 0xb4),
    ("ac_be", 0x00),
    ("ac_bk", 0x20),
    ("ac_vi", 0x80),
    ("ac_vo", 0xb8),
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
