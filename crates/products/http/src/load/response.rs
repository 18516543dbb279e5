//! Parses responses from segments of any size: headers once, bodies only counted.

use crate::message::body::{BodyError, BodyReader};
use crate::message::response::{self, ResponseError, ResponseHeader};

/// Parser state of a connection.
#[derive(Debug, Default)]
pub(crate) struct ResponseReader {
    /// `None` before the end of the header.
    body: Option<BodyReader>,
    status: u16,
    keeps_alive: bool,
    has_retry_after: bool,
    head_bytes: u32,
    hash: u64,
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
    pub status: u16,
    pub keeps_alive: bool,
    pub has_retry_after: bool,
    /// `None` where headers are not counted.
    pub head_bytes: Option<u64>,
    /// Payload without the framing of chunks.
    pub body_bytes: u64,
    /// Hash of the payload; 0 unless requested.
    pub hash: u64,
}

/// A malformed response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReadError {
    #[error(transparent)]
    Head(#[from] ResponseError),
    #[error(transparent)]
    Body(#[from] BodyError),
}

/// Parser settings and cache of a thread.
#[derive(Debug, Default)]
pub(crate) struct ReaderContext {
    /// Requests are `HEAD`.
    pub is_head: bool,
    /// Bodies are hashed.
    pub is_hashed: bool,
    /// The last header and its meaning: most responses of one second have the same.
    last: (Vec<u8>, Option<ResponseHeader>),
}

impl ReaderContext {
    pub(crate) fn new(is_head: bool, is_hashed: bool) -> Self {
        Self {
            is_head,
            is_hashed,
            last: (Vec::new(), None),
        }
    }

    fn head(&mut self, bytes: &[u8]) -> Result<Option<ResponseHeader>, ResponseError> {
        let (known, head) = &self.last;
        // The known header ends with its empty line, so equal bytes are a whole header.
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

impl ResponseReader {
    /// Missing bytes of the body, where known.
    pub(crate) fn body_left(&self) -> Option<u64> {
        self.body.as_ref()?.left_bytes()
    }

    /// Length of the body, where known.
    pub(crate) fn body_len(&self) -> Option<u64> {
        let body = self.body.as_ref()?;
        Some(body.left_bytes()?.saturating_add(body.received_bytes))
    }

    /// True if part of a response has arrived.
    pub(crate) fn has_begun(&self) -> bool {
        self.body.is_some()
    }

    /// Counts `len` bytes of a body of known length that were discarded in the kernel.
    pub(crate) fn skip(&mut self, len: u64) -> Option<ReceivedResponse> {
        self.body.as_mut()?.skip(len);
        (self.body_left() == Some(0)).then(|| self.complete())
    }

    /// Parses the next bytes. Call again with what follows a complete response.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        context: &mut ReaderContext,
    ) -> Result<ReadProgress, ReadError> {
        let mut used = 0;
        while self.body.is_none() {
            let Some(head) = context.head(bytes.get(used..).unwrap_or_default())? else {
                return Ok(ReadProgress::Incomplete(used));
            };
            used += head.len;

            // Any number of 1xx responses may precede the final one (RFC 9110, section 15.2).
            if !head.is_interim() {
                *self = Self::of(&head)?;
            }
        }

        let Self {
            body: Some(body),
            hash,
            ..
        } = self
        else {
            return Ok(ReadProgress::More);
        };
        let take = |payload: &[u8]| {
            if context.is_hashed {
                *hash = hash_more(*hash, payload);
            }
        };
        let (len, is_end) = body.read(bytes.get(used..).unwrap_or_default(), u64::MAX, take)?;

        Ok(if is_end {
            ReadProgress::Complete(used + len, self.complete())
        } else {
            ReadProgress::More
        })
    }

    /// The connection was closed: completes a response without a length.
    pub(crate) fn end(&mut self) -> Option<ReceivedResponse> {
        self.body
            .as_ref()
            .is_some_and(BodyReader::ends_with_connection)
            .then(|| self.complete())
    }

    /// After a header.
    fn of(head: &ResponseHeader) -> Result<Self, ReadError> {
        Ok(Self {
            body: Some(BodyReader::new(head.framing, u64::MAX)?),
            status: head.status,
            keeps_alive: head.keeps_alive,
            has_retry_after: head.has_retry_after,
            head_bytes: u32::try_from(head.len).unwrap_or(u32::MAX),
            hash: HASH_START,
        })
    }

    fn complete(&mut self) -> ReceivedResponse {
        let body = self.body.take();
        ReceivedResponse {
            status: self.status,
            keeps_alive: self.keeps_alive,
            has_retry_after: self.has_retry_after,
            head_bytes: Some(u64::from(self.head_bytes)),
            body_bytes: body.map_or(0, |body| body.received_bytes),
            hash: self.hash,
        }
    }
}

/// FNV-1a, 64 bits: detects a body that differs.
pub(crate) fn hash_more(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(HASH_PRIME)
    })
}

/// Hash of no bytes.
pub(crate) const HASH_START: u64 = 0xcbf2_9ce4_8422_2325;
const HASH_PRIME: u64 = 0x0100_0000_01b3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reader_is_small() {
        assert!(
            size_of::<ResponseReader>() <= 56,
            "{}",
            size_of::<ResponseReader>()
        );
    }
}
