//! Reads message bodies from segments of any size.

use super::chunked::{ChunkedError, Decoder, Piece};

/// Parser state of a body.
#[derive(Debug)]
pub(crate) struct BodyReader {
    rest: Rest,
    pub received_bytes: u64,
}

#[derive(Debug)]
enum Rest {
    /// Missing bytes.
    Length(u64),
    Chunked(Decoder),
    UntilClose,
}

/// Why a body cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("the body exceeds {0} bytes")]
    TooLarge(u64),
    #[error(transparent)]
    Chunked(#[from] ChunkedError),
}

impl BodyReader {
    /// At the start of a body of at most `bytes_max` bytes.
    pub(crate) fn new(framing: BodyFraming, bytes_max: u64) -> Result<Self, BodyError> {
        let rest = match framing {
            BodyFraming::None => Rest::Length(0),
            // Refused before any of it is received.
            BodyFraming::Length(length) if length > bytes_max => {
                return Err(BodyError::TooLarge(bytes_max));
            }
            BodyFraming::Length(length) => Rest::Length(length),
            BodyFraming::Chunked => Rest::Chunked(Decoder::new()),
            BodyFraming::UntilClose => Rest::UntilClose,
        };
        Ok(Self {
            rest,
            received_bytes: 0,
        })
    }

    /// Missing payload, where known.
    pub(crate) fn left_bytes(&self) -> Option<u64> {
        match self.rest {
            Rest::Length(left) => Some(left),
            Rest::Chunked(_) | Rest::UntilClose => None,
        }
    }

    /// True if the end of the connection completes the body.
    pub(crate) fn ends_with_connection(&self) -> bool {
        matches!(self.rest, Rest::UntilClose)
    }

    /// Accounts for payload of a body of known length that was discarded in the kernel.
    pub(crate) fn skip(&mut self, bytes: u64) {
        if let Rest::Length(left) = &mut self.rest {
            let taken = bytes.min(*left);
            *left -= taken;
            self.received_bytes += taken;
        }
    }

    /// Passes the payload in `input` to `take`; bytes consumed, and whether the body is complete.
    /// The first error decides however the input is segmented.
    pub(crate) fn read(
        &mut self,
        input: &[u8],
        bytes_max: u64,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(usize, bool), BodyError> {
        let mut used = 0;
        loop {
            let rest = input.get(used..).unwrap_or_default();
            let piece = self.next_piece(rest)?;
            self.received_bytes = self.received_bytes.saturating_add(piece.payload as u64);

            if self.received_bytes > bytes_max {
                return Err(BodyError::TooLarge(bytes_max));
            }

            let end = piece.framing + piece.payload;
            take(rest.get(piece.framing..end).unwrap_or_default());
            used += end;

            if piece.is_end || used == input.len() {
                return Ok((used, piece.is_end));
            }
        }
    }

    fn next_piece(&mut self, input: &[u8]) -> Result<Piece, ChunkedError> {
        match &mut self.rest {
            Rest::Length(left) => {
                let payload = (*left).min(input.len() as u64) as usize;
                *left -= payload as u64;
                Ok(Piece {
                    framing: 0,
                    payload,
                    is_end: *left == 0,
                })
            }
            Rest::Chunked(decoder) => decoder.piece(input),
            Rest::UntilClose => Ok(Piece {
                framing: 0,
                payload: input.len(),
                is_end: false,
            }),
        }
    }
}

/// Framing of a body (RFC 9112, section 6).
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
