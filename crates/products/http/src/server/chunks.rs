//! A chunked body, encoded part by part.

use super::content::{BodyPattern, Content};
use super::resource::CHUNK_BYTES_MIN;
use crate::message::chunked::{self, LAST_CHUNK};

/// The rest of a chunked body.
#[derive(Debug)]
pub(crate) struct Chunks {
    pattern: BodyPattern,
    chunk_bytes: u64,
    body_bytes: u64,
    /// Bytes of the body that are staged or sent.
    done: u64,
    /// Encoded bytes being sent.
    staged: Vec<u8>,
    staged_sent: usize,
    /// The last chunk is staged.
    is_last: bool,
}

impl Chunks {
    /// A body of `body_bytes` in chunks of `chunk_bytes`; the last one may be shorter.
    pub(crate) fn new(pattern: BodyPattern, body_bytes: u64, chunk_bytes: u64) -> Self {
        Self {
            pattern,
            // The position in a chunk is a remainder of this size, so it is not 0.
            chunk_bytes: chunk_bytes.max(1),
            body_bytes,
            done: 0,
            staged: Vec::new(),
            staged_sent: 0,
            is_last: false,
        }
    }

    /// Payload left, without the framing.
    pub(crate) fn left_bytes(&self) -> u64 {
        self.body_bytes - self.done
    }

    /// Next bytes to send; never empty before the end.
    pub(crate) fn staged(&mut self, content: &Content) -> &[u8] {
        if self.staged_sent == self.staged.len() {
            self.stage(content);
        }
        self.staged.get(self.staged_sent..).unwrap_or_default()
    }

    /// Removes up to `sent` bytes: how many, and whether the body is complete.
    pub(crate) fn advance(&mut self, sent: usize) -> (usize, bool) {
        let taken = sent.min(self.staged.len() - self.staged_sent);
        self.staged_sent += taken;
        (taken, self.is_last && self.staged_sent == self.staged.len())
    }

    fn stage(&mut self, content: &Content) {
        let block = content.block(self.pattern);
        self.staged.clear();
        self.staged_sent = 0;

        for _ in 0..STAGED_RUNS {
            if self.staged.len() >= STAGED_BYTES {
                return;
            }

            let inside = self.done % self.chunk_bytes;
            let chunk_left = (self.chunk_bytes - inside).min(self.left_bytes());
            if chunk_left == 0 {
                // A chunk of size zero ends the body (RFC 9112, section 7.1).
                self.staged.extend_from_slice(LAST_CHUNK);
                self.is_last = true;
                return;
            }

            // A run ends with the block of content, so a chunk can take several runs and only the
            // first one follows a size.
            if inside == 0 {
                self.staged
                    .extend_from_slice(chunked::head(chunk_left).as_bytes());
            }

            let run = block.run(self.done, chunk_left.min(STAGED_BYTES as u64));
            self.staged.extend_from_slice(run);
            self.done += run.len() as u64;

            if run.len() as u64 == chunk_left {
                self.staged.extend_from_slice(b"\r\n");
            }
        }
    }
}

/// Staged at once.
const STAGED_BYTES: usize = 64 * 1024;
/// Runs of payload staged at once: more than these bytes need in chunks of the smallest size, fewer
/// than they have in tiny ones, which cost as much time each.
const STAGED_RUNS: usize = STAGED_BYTES / CHUNK_BYTES_MIN as usize;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing::decode;

    #[test]
    fn chunks_have_the_requested_size_and_contain_the_body() {
        let content = Content::default();
        for (body_bytes, chunk_bytes) in [
            (0, 10),
            (1, 10),
            (10, 10),
            (25, 10),
            (100, 1),
            (3 << 20, 1 << 20),
            (300_000, 70_000),
        ] {
            let mut chunks = Chunks::new(BodyPattern::Text, body_bytes, chunk_bytes);
            let (mut sent, mut is_over) = (Vec::new(), false);
            while !is_over {
                let staged = chunks.staged(&content);
                let part = &staged[..staged.len().div_ceil(2)];
                sent.extend_from_slice(part);
                let len = part.len();
                (_, is_over) = chunks.advance(len);
            }

            let (payload, used, is_end) = decode([&sent[..]]).expect("valid framing");
            assert_eq!(
                (payload.len() as u64, used, is_end),
                (body_bytes, sent.len(), true),
                "{chunk_bytes}"
            );
        }

        let mut chunks = Chunks::new(BodyPattern::Text, 25, 16);
        assert_eq!(
            chunks.staged(&content),
            b"10\r\n0123456789 abcde\r\n9\r\nfghijklmn\r\n0\r\n\r\n"
        );
    }
}
