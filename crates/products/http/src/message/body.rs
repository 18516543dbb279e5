//! Reads message bodies from segments of any size.

use super::chunked::{ChunkedError, Decoder, Piece};
use super::framing::BodyFraming;

/// Parser state of a body.
#[derive(Debug)]
pub(crate) struct BodyReader {
    rest: Rest,
    received_bytes: u64,
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

    /// Payload without the framing of chunks.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.received_bytes
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
                let payload = usize::try_from(*left)
                    .unwrap_or(usize::MAX)
                    .min(input.len());
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
