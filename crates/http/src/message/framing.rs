//! Framing of message bodies (RFC 9112, section 6).

/// Framing of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum BodyFraming {
    /// No body.
    #[default]
    None,
    /// This many bytes (`Content-Length`).
    Length(u64),
    /// Chunks (`Transfer-Encoding: chunked`), see [`super::chunked`].
    Chunked,
    /// Until the connection closes. Responses only.
    UntilClose,
}

/// Parses a `Content-Length` value: digits and nothing else, so no sign, no list, no blank inside. `None` for anything else and
/// for values beyond 2⁶³ − 1, which implementations interpret differently.
pub(crate) fn content_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > LENGTH_DIGITS_MAX {
        return None;
    }
    let length = value.iter().try_fold(0_u64, |length, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        length.checked_mul(10)?.checked_add(digit)
    })?;
    i64::try_from(length).is_ok().then_some(length)
}

/// Digits of 2⁶³ − 1.
const LENGTH_DIGITS_MAX: usize = 19;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_consists_of_digits() {
        for (value, expected) in [
            ("0", Some(0)),
            ("10240", Some(10_240)),
            ("0010", Some(10)),
            ("9223372036854775807", Some(u64::MAX / 2)),
            ("9223372036854775808", None),
            ("99999999999999999999", None),
            ("", None),
            ("+1", None),
            ("-1", None),
            ("1 ", None),
            ("1,1", None),
            ("0x10", None),
            ("1.0", None),
        ] {
            assert_eq!(content_length(value.as_bytes()), expected, "{value:?}");
        }
    }
}
