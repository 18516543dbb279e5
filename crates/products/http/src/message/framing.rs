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

/// Parses a `Content-Length` value: digits and nothing else, so no sign, no list, no blank inside.
/// `None` for anything else and for values beyond 2⁶³ − 1, which implementations interpret
/// differently.
fn content_length(value: &[u8]) -> Option<u64> {
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

/// Adds the value of a `Content-Length` field; `None` when it is invalid or differs from that of
/// another.
pub(crate) fn add_length(known: Option<u64>, value: &[u8]) -> Option<u64> {
    let length = content_length(value)?;
    known.is_none_or(|known| known == length).then_some(length)
}

/// Options of `Connection` fields (RFC 9110, section 7.6.1).
#[derive(Debug, Default)]
pub(crate) struct ConnectionOptions {
    closes: bool,
    is_kept_alive: bool,
}

impl ConnectionOptions {
    /// The value is a list; other members are ignored.
    pub(crate) fn add(&mut self, value: &[u8]) {
        for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            self.closes |= option.eq_ignore_ascii_case(b"close");
            self.is_kept_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// True if the connection is persistent.
    pub(crate) fn keeps_alive(&self, is_http11: bool) -> bool {
        !self.closes && (is_http11 || self.is_kept_alive)
    }
}
