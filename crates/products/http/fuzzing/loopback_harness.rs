//! A state machine in memory with a client that reads everything. For tests and fuzzing.

use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::sync::{Arc, LazyLock};

use linerate_sys::sendfile_source::SourceFile;
use linerate_sys::stream_io::Followed;

use super::content::{BodyPattern, Content};
use super::machine::{Machine, Next, RequestContext};
use super::responses::ResponseWriter;
use super::stats::Counters;
use super::write_queue::{Transport, Turn, WriteQueue};

/// A state machine with a client that reads everything.
#[derive(Debug)]
pub(crate) struct LoopbackHarness {
    responses: ResponseWriter,
    pub(super) counters: Counters,
    pub(super) machine: Machine,
    pub(super) kept: Vec<u8>,
    sent: SentBytes,
}

/// Sent bytes, beyond the first ones as a digest.
#[derive(Debug, Default)]
pub(crate) struct SentBytes {
    pub(super) beginning: Vec<u8>,
    len: u64,
    digest: DefaultHasher,
}

impl Transport for &mut SentBytes {
    fn send(&mut self, bytes: &[u8], _: Followed) -> io::Result<usize> {
        let room = KEPT_BYTES_MAX.saturating_sub(self.beginning.len());
        self.beginning
            .extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        self.digest.write(bytes);
        self.len += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn send_file(&mut self, _: &SourceFile, offset: u64, len: usize) -> io::Result<usize> {
        // Every body uses the same pattern here: only the segmentation of the input differs between
        // runs.
        let run = CONTENT.block(BodyPattern::Text).run(offset, len as u64);
        self.send(run, Followed::No)
    }
}

impl PartialEq for SentBytes {
    fn eq(&self, other: &Self) -> bool {
        (self.len, self.digest.finish()) == (other.len, other.digest.finish())
            && self.beginning == other.beginning
    }
}

/// Shared: creating it takes longer than a test run.
static CONTENT: LazyLock<Arc<Content>> = LazyLock::new(Arc::default);

const KEPT_BYTES_MAX: usize = 1 << 20;
const BODY_BYTES_MAX: u64 = 100;

impl LoopbackHarness {
    pub(crate) fn new() -> Self {
        Self {
            responses: ResponseWriter::new(Arc::clone(&CONTENT), false, None),
            counters: Counters::default(),
            machine: Machine::default(),
            kept: Vec::new(),
            sent: SentBytes::default(),
        }
    }

    /// Passes one input to the machine and sends its responses.
    pub(super) fn receive(&mut self, input: &[u8]) -> Next {
        self.kept.extend_from_slice(input);
        let mut queue = WriteQueue::default();

        loop {
            let context = RequestContext {
                responses: &self.responses,
                counters: &self.counters,
                body_bytes_max: BODY_BYTES_MAX,
                chunk_bytes_min: 1,
            };
            let (used, next) = self.machine.advance(&self.kept, &context, &mut queue);
            self.kept.drain(..used);

            let flushed = queue.flush(
                &mut &mut self.sent,
                &self.responses.content,
                &mut Turn::new(),
            );
            let is_flushed = flushed.expect("memory takes everything").is_done;
            if next != Next::Flush && is_flushed {
                return next;
            }
        }
    }

    /// Passes all inputs and returns everything sent.
    pub(crate) fn receive_all<'a>(
        mut self,
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> SentBytes {
        for piece in pieces {
            self.receive(piece);
        }
        self.sent
    }

    /// The first bytes sent, as text.
    #[cfg(test)]
    pub(super) fn sent(&self) -> String {
        String::from_utf8_lossy(&self.sent.beginning).into_owned()
    }
}
