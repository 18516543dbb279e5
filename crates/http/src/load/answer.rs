//! Reading answers from whatever pieces a connection delivers: the head is parsed once, the body only counted.

use crate::message::chunked::{ChunkedError, Decoder};
use crate::message::framing::BodyFraming;
use crate::message::response::{self, ResponseError, ResponseHead};

/// Where on a connection the next byte belongs.
#[derive(Debug, Default)]
pub(crate) struct AnswerReader {
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

/// What became of a piece.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fed {
    /// The next head is incomplete: what follows this many bytes is wanted again, with more behind it.
    Keep(usize),
    /// All of it was used; the answer goes on.
    More,
    /// An answer is complete after this many bytes.
    Complete(usize, Answer),
}

/// A complete answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) keeps_alive: bool,
    pub(crate) has_retry_after: bool,
    /// Absent where the bytes of the head are not seen.
    pub(crate) head_bytes: Option<u64>,
    /// Payload; the framing of chunks is not part of it.
    pub(crate) body_bytes: u64,
    /// Of the payload; 0 unless it was asked for.
    pub(crate) hash: u64,
}

/// An answer that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AnswerError {
    #[error(transparent)]
    Head(#[from] ResponseError),
    #[error(transparent)]
    Body(#[from] ChunkedError),
}

/// How answers are read on all connections of a thread.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// Requests are `HEAD`.
    pub(crate) is_head: bool,
    /// Bodies are hashed.
    pub(crate) is_hashed: bool,
    /// The last head that was parsed and what it says: answers of one second mostly have the same.
    last: (Vec<u8>, Option<ResponseHead>),
}

impl Reading {
    pub(crate) fn new(is_head: bool, is_hashed: bool) -> Self {
        Self {
            is_head,
            is_hashed,
            last: (Vec::new(), None),
        }
    }

    fn head(&mut self, bytes: &[u8]) -> Result<Option<ResponseHead>, ResponseError> {
        let (known, head) = &self.last;
        if head.is_some() && bytes.starts_with(known) {
            return Ok(*head);
        }
        let head = response::parse(bytes, self.is_head)?;
        if let Some(found) = head {
            self.last.0.clear();
            self.last
                .0
                .extend_from_slice(bytes.get(..found.len).unwrap_or_default());
            self.last.1 = head;
        }
        Ok(head)
    }
}

impl AnswerReader {
    /// Bytes of the body that are still to come, where that is known.
    pub(crate) fn body_left(&self) -> Option<u64> {
        match self.state {
            State::Length(left) => Some(left),
            _ => None,
        }
    }

    /// Length of the body that is arriving, where that is known.
    pub(crate) fn body_len(&self) -> Option<u64> {
        Some(self.body_left()?.saturating_add(self.body_bytes))
    }

    /// Whether some of an answer has arrived.
    pub(crate) fn has_begun(&self) -> bool {
        !matches!(self.state, State::Head)
    }

    /// Counts `len` bytes of a body of known length that were received without being looked at.
    pub(crate) fn skip(&mut self, len: u64) -> Option<Answer> {
        let State::Length(left) = &mut self.state else {
            return None;
        };
        let taken = len.min(*left);
        *left -= taken;
        self.body_bytes += taken;
        let is_complete = *left == 0;
        is_complete.then(|| self.complete())
    }

    /// Takes the next bytes of the connection. Call again with what follows a complete answer.
    pub(crate) fn feed(&mut self, bytes: &[u8], reading: &mut Reading) -> Result<Fed, AnswerError> {
        let mut used = 0;
        while let State::Head = self.state {
            let rest = bytes.get(used..).unwrap_or_default();
            let Some(head) = reading.head(rest)? else {
                return Ok(Fed::Keep(used));
            };
            used += head.len;
            if head.is_interim() {
                continue;
            }
            if let Some(answer) = self.begin(&head) {
                return Ok(Fed::Complete(used, answer));
            }
        }
        let rest = bytes.get(used..).unwrap_or_default();
        Ok(match self.body(rest, reading.is_hashed)? {
            (len, true) => Fed::Complete(used + len, self.complete()),
            (_, false) => Fed::More,
        })
    }

    /// The connection ended in order: completes an answer that ends with it.
    pub(crate) fn end(&mut self) -> Option<Answer> {
        matches!(self.state, State::UntilClose).then(|| self.complete())
    }

    fn begin(&mut self, head: &ResponseHead) -> Option<Answer> {
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

    /// Takes what of `bytes` belongs to the body: how many, and whether it is complete.
    fn body(&mut self, bytes: &[u8], is_hashed: bool) -> Result<(usize, bool), AnswerError> {
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

    fn chunks(&mut self, bytes: &[u8], is_hashed: bool) -> Result<(usize, bool), AnswerError> {
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

    fn complete(&mut self) -> Answer {
        self.state = State::Head;
        Answer {
            status: self.status,
            keeps_alive: self.keeps_alive,
            has_retry_after: self.has_retry_after,
            head_bytes: Some(u64::from(self.head_bytes)),
            body_bytes: self.body_bytes,
            hash: self.hash,
        }
    }
}

/// FNV-1a, 64 bits: enough to notice a body that is not the same as the others.
pub(crate) fn hash_more(hash: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(HASH_PRIME))
}

/// The hash of nothing.
pub(crate) const HASH_START: u64 = 0xcbf2_9ce4_8422_2325;
const HASH_PRIME: u64 = 0x0100_0000_01b3;

#[cfg(test)]
mod tests {
    use super::*;

    /// All answers in `input`, delivered `step` bytes at a time, as a connection would be read.
    fn answers(input: &[u8], step: usize) -> Result<Vec<(u16, u64)>, AnswerError> {
        let (mut reader, mut reading) = (AnswerReader::default(), Reading::new(false, true));
        let (mut kept, mut found) = (Vec::new(), Vec::new());
        for part in input.chunks(step) {
            kept.extend_from_slice(part);
            loop {
                match reader.feed(&kept, &mut reading)? {
                    Fed::Keep(used) => {
                        kept.drain(..used);
                        break;
                    }
                    Fed::More => {
                        kept.clear();
                        break;
                    }
                    Fed::Complete(used, answer) => {
                        found.push((answer.status, answer.body_bytes));
                        kept.drain(..used);
                    }
                }
                if kept.is_empty() {
                    break;
                }
            }
        }
        Ok(found)
    }

    #[test]
    fn answers_are_the_same_however_they_are_cut() {
        let input = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello\
            HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;x\r\ndefg\r\n0\r\n\r\n\
            HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n\
            HTTP/1.1 204 No Content\r\n\r\n\
            HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nworld";
        let expected = vec![(200, 5), (200, 7), (404, 0), (204, 0), (200, 5)];
        for step in 1..=input.len() {
            assert_eq!(answers(input, step), Ok(expected.clone()), "{step} bytes at a time");
        }
    }

    #[test]
    fn an_answer_without_a_length_ends_with_the_connection() {
        let (mut reader, mut reading) = (AnswerReader::default(), Reading::new(false, false));
        let fed = reader.feed(b"HTTP/1.0 200 OK\r\n\r\nabc", &mut reading);
        assert_eq!(fed, Ok(Fed::More));
        let answer = reader.end().expect("the end completes it");
        assert_eq!((answer.body_bytes, answer.keeps_alive), (3, false));
        assert!(AnswerReader::default().end().is_none());
    }

    #[test]
    fn bodies_that_differ_have_different_hashes() {
        let hash = |body: &str| {
            let (mut reader, mut reading) = (AnswerReader::default(), Reading::new(false, true));
            let text = format!("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{body}");
            match reader.feed(text.as_bytes(), &mut reading) {
                Ok(Fed::Complete(_, answer)) => answer.hash,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(hash("abc"), hash("abc"));
        assert_ne!(hash("abc"), hash("abd"));
    }

    #[test]
    fn what_was_not_looked_at_counts_as_body() {
        let (mut reader, mut reading) = (AnswerReader::default(), Reading::new(false, false));
        let fed = reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nab", &mut reading);
        assert_eq!((fed, reader.body_left()), (Ok(Fed::More), Some(98)));
        assert_eq!(reader.skip(90), None);
        assert_eq!(reader.skip(8).map(|answer| answer.body_bytes), Some(100));
        assert!(!reader.has_begun());
    }

    #[test]
    fn a_reader_is_small() {
        assert!(size_of::<AnswerReader>() <= 56, "{}", size_of::<AnswerReader>());
    }
}
