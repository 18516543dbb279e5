//! Parses responses from segments of any size: headers once, bodies only counted.

use crate::message::chunked::{ChunkedError, Decoder};
use crate::message::framing::BodyFraming;
use crate::message::response::{self, ResponseError, ResponseHeader};

/// Parser state of a connection.
#[derive(Debug, Default)]
pub(crate) struct ResponseReader {
    state: State,
    status: u16,
    keeps_alive: bool,
    has_retry_after: bool,
    head_bytes: u32,
    body_bytes: u64,
    hash: u64,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Head,
    Length(u64),
    Chunked(Decoder),
    UntilClose,
}

/// Result of one input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadProgress {
    /// The header is incomplete: the input after this many bytes is passed again with more.
    Incomplete(usize),
    /// All of it was used; the response is incomplete.
    More,
    /// A response is complete after this many bytes.
    Complete(usize, ReceivedResponse),
}

/// A complete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReceivedResponse {
    pub(crate) status: u16,
    pub(crate) keeps_alive: bool,
    pub(crate) has_retry_after: bool,
    /// `None` where headers are not counted.
    pub(crate) head_bytes: Option<u64>,
    /// Payload without the framing of chunks.
    pub(crate) body_bytes: u64,
    /// Hash of the payload; 0 unless requested.
    pub(crate) hash: u64,
}

/// A malformed response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReadError {
    #[error(transparent)]
    Head(#[from] ResponseError),
    #[error(transparent)]
    Body(#[from] ChunkedError),
}

/// Parser settings and cache of a thread.
#[derive(Debug, Default)]
pub(crate) struct ReaderContext {
    /// Requests are `HEAD`.
    pub(crate) is_head: bool,
    /// Bodies are hashed.
    pub(crate) is_hashed: bool,
    /// The last header and its meaning: most responses of one second have the same.
    last: (Vec<u8>, Option<ResponseHeader>),
}

impl ReaderContext {
    pub(crate) fn new(is_head: bool, is_hashed: bool) -> Self {
        Self { is_head, is_hashed, last: (Vec::new(), None) }
    }

    fn head(&mut self, bytes: &[u8]) -> Result<Option<ResponseHeader>, ResponseError> {
        let (known, head) = &self.last;
        if head.is_some() && bytes.starts_with(known) {
            return Ok(*head);
        }
        let head = response::parse(bytes, self.is_head)?;
        if let Some(found) = head {
            self.last.0.clear();
            self.last.0.extend_from_slice(bytes.get(..found.len).unwrap_or_default());
            self.last.1 = head;
        }
        Ok(head)
    }
}

impl ResponseReader {
    /// Missing bytes of the body, where known.
    pub(crate) fn body_left(&self) -> Option<u64> {
        match self.state {
            State::Length(left) => Some(left),
            _ => None,
        }
    }

    /// Length of the body, where known.
    pub(crate) fn body_len(&self) -> Option<u64> {
        Some(self.body_left()?.saturating_add(self.body_bytes))
    }

    /// Whether part of a response has arrived.
    pub(crate) fn has_begun(&self) -> bool {
        !matches!(self.state, State::Head)
    }

    /// Counts `len` bytes of a body of known length that were discarded in the kernel.
    pub(crate) fn skip(&mut self, len: u64) -> Option<ReceivedResponse> {
        let State::Length(left) = &mut self.state else {
            return None;
        };
        let taken = len.min(*left);
        *left -= taken;
        self.body_bytes += taken;
        let is_complete = *left == 0;
        is_complete.then(|| self.complete())
    }

    /// Parses the next bytes. Call again with what follows a complete response.
    pub(crate) fn feed(&mut self, bytes: &[u8], context: &mut ReaderContext) -> Result<ReadProgress, ReadError> {
        let mut used = 0;
        while let State::Head = self.state {
            let rest = bytes.get(used..).unwrap_or_default();
            let Some(head) = context.head(rest)? else {
                return Ok(ReadProgress::Incomplete(used));
            };
            used += head.len;
            if head.is_interim() {
                continue;
            }
            if let Some(response) = self.begin(&head) {
                return Ok(ReadProgress::Complete(used, response));
            }
        }
        let rest = bytes.get(used..).unwrap_or_default();
        Ok(match self.body(rest, context.is_hashed)? {
            (len, true) => ReadProgress::Complete(used + len, self.complete()),
            (_, false) => ReadProgress::More,
        })
    }

    /// The connection was closed: completes a response without a length.
    pub(crate) fn end(&mut self) -> Option<ReceivedResponse> {
        matches!(self.state, State::UntilClose).then(|| self.complete())
    }

    fn begin(&mut self, head: &ResponseHeader) -> Option<ReceivedResponse> {
        *self = Self {
            state: match head.framing {
                BodyFraming::None => State::Length(0),
                BodyFraming::Length(len) => State::Length(len),
                BodyFraming::Chunked => State::Chunked(Decoder::new()),
                BodyFraming::UntilClose => State::UntilClose,
            },
            status: head.status,
            keeps_alive: head.keeps_alive,
            has_retry_after: head.has_retry_after,
            head_bytes: u32::try_from(head.len).unwrap_or(u32::MAX),
            body_bytes: 0,
            hash: HASH_START,
        };
        matches!(self.state, State::Length(0)).then(|| self.complete())
    }

    /// Bytes that belong to the body, and whether it is complete.
    fn body(&mut self, bytes: &[u8], is_hashed: bool) -> Result<(usize, bool), ReadError> {
        match &mut self.state {
            State::Head => Ok((0, false)),
            State::Length(left) => {
                let len = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= len as u64;
                let is_end = *left == 0;
                self.take(bytes.get(..len).unwrap_or_default(), is_hashed);
                Ok((len, is_end))
            }
            State::UntilClose => {
                self.take(bytes, is_hashed);
                Ok((bytes.len(), false))
            }
            State::Chunked(_) => self.chunks(bytes, is_hashed),
        }
    }

    fn chunks(&mut self, bytes: &[u8], is_hashed: bool) -> Result<(usize, bool), ReadError> {
        let mut used = 0;
        loop {
            let State::Chunked(decoder) = &mut self.state else {
                return Ok((used, false));
            };
            let rest = bytes.get(used..).unwrap_or_default();
            let piece = decoder.piece(rest)?;
            let end = piece.framing + piece.payload;
            self.take(rest.get(piece.framing..end).unwrap_or_default(), is_hashed);
            used += end;
            if piece.is_end || end == rest.len() {
                return Ok((used, piece.is_end));
            }
        }
    }

    fn take(&mut self, payload: &[u8], is_hashed: bool) {
        self.body_bytes = self.body_bytes.saturating_add(payload.len() as u64);
        if is_hashed {
            self.hash = hash_more(self.hash, payload);
        }
    }

    fn complete(&mut self) -> ReceivedResponse {
        self.state = State::Head;
        ReceivedResponse {
            status: self.status,
            keeps_alive: self.keeps_alive,
            has_retry_after: self.has_retry_after,
            head_bytes: Some(u64::from(self.head_bytes)),
            body_bytes: self.body_bytes,
            hash: self.hash,
        }
    }
}

/// FNV-1a, 64 bits: detects a body that differs.
pub(crate) fn hash_more(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(HASH_PRIME))
}

/// Hash of no bytes.
pub(crate) const HASH_START: u64 = 0xcbf2_9ce4_8422_2325;
const HASH_PRIME: u64 = 0x0100_0000_01b3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_without_length_ends_with_the_connection() {
        let (mut reader, mut context) = (ResponseReader::default(), ReaderContext::new(false, false));
        let fed = reader.feed(b"HTTP/1.0 200 OK\r\n\r\nabc", &mut context);
        assert_eq!(fed, Ok(ReadProgress::More));
        let response = reader.end().expect("the end completes it");
        assert_eq!((response.body_bytes, response.keeps_alive), (3, false));
        assert!(ResponseReader::default().end().is_none());
    }

    #[test]
    fn different_bodies_have_different_hashes() {
        let hash = |body: &str| {
            let (mut reader, mut context) = (ResponseReader::default(), ReaderContext::new(false, true));
            let text = format!("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{body}");
            match reader.feed(text.as_bytes(), &mut context) {
                Ok(ReadProgress::Complete(_, response)) => response.hash,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(hash("abc"), hash("abc"));
        assert_ne!(hash("abc"), hash("abd"));
    }

    #[test]
    fn discarded_bytes_count_as_body() {
        let (mut reader, mut context) = (ResponseReader::default(), ReaderContext::new(false, false));
        let fed = reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nab", &mut context);
        assert_eq!((fed, reader.body_left()), (Ok(ReadProgress::More), Some(98)));
        assert_eq!(reader.skip(90), None);
        assert_eq!(reader.skip(8).map(|response| response.body_bytes), Some(100));
        assert!(!reader.has_begun());
    }

    #[test]
    fn reader_is_small() {
        assert!(size_of::<ResponseReader>() <= 56, "{}", size_of::<ResponseReader>());
    }
}
