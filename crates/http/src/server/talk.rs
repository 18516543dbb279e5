//! A conversation over memory, with a client that takes everything. For tests and fuzzing.

use std::hash::{DefaultHasher, Hasher};
use std::io::{self, IoSlice};
use std::sync::{Arc, LazyLock};

use linerate_sys::source_file::SourceFile;
use linerate_sys::stream_io::Followed;

use super::answers::Answers;
use super::content::{Content, Filling};
use super::conversation::{Conversation, Desk, Next};
use super::figures::Counters;
use super::outbox::{Outbox, Wire};

/// A conversation with a client that takes everything.
#[derive(Debug)]
pub(crate) struct Talk {
    answers: Answers,
    pub(super) counters: Counters,
    pub(super) conversation: Conversation,
    pub(super) kept: Vec<u8>,
    said: Said,
}

/// What was said. Of very much only the beginning is kept.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(super) beginning: Vec<u8>,
    len: u64,
    digest: DefaultHasher,
}

impl Wire for &mut Said {
    fn send(&mut self, slices: &[IoSlice<'_>], _: Followed) -> io::Result<usize> {
        let mut taken = 0;
        for slice in slices {
            let room = KEPT_BYTES_MAX.saturating_sub(self.beginning.len());
            self.beginning.extend_from_slice(slice.get(..room).unwrap_or(slice));
            self.digest.write(slice);
            taken += slice.len();
        }
        self.len += taken as u64;
        Ok(taken)
    }

    fn send_file(&mut self, _: &SourceFile, offset: u64, len: usize) -> io::Result<usize> {
        // A body of either filling will do: what is compared is made of the same one.
        let run = CONTENT.block(Filling::Pattern).run(offset, len as u64);
        self.send(&[IoSlice::new(run)], Followed::No)
    }
}

impl PartialEq for Said {
    fn eq(&self, other: &Self) -> bool {
        (self.len, self.digest.finish()) == (other.len, other.digest.finish()) && self.beginning == other.beginning
    }
}

/// One for all: making it takes longer than a conversation.
static CONTENT: LazyLock<Arc<Content>> = LazyLock::new(Arc::default);

const KEPT_BYTES_MAX: usize = 1 << 20;
const BODY_BYTES_MAX: u64 = 100;

impl Talk {
    pub(crate) fn new() -> Self {
        Self {
            answers: Answers::new(Arc::clone(&CONTENT), false, None),
            counters: Counters::default(),
            conversation: Conversation::default(),
            kept: Vec::new(),
            said: Said::default(),
        }
    }

    /// Hears a piece of input and says what it has to say.
    pub(super) fn hear(&mut self, input: &[u8]) -> Next {
        self.kept.extend_from_slice(input);
        let mut outbox = Outbox::default();
        loop {
            let mut desk = Desk {
                answers: &self.answers,
                counters: &self.counters,
                body_bytes_max: BODY_BYTES_MAX,
                is_paced: false,
            };
            let advance = self.conversation.advance(&self.kept, &mut desk, &mut outbox);
            self.kept.drain(..advance.used);
            outbox
                .flush(&mut &mut self.said, self.answers.content())
                .expect("memory takes everything");
            if advance.next != Next::Flush {
                return advance.next;
            }
        }
    }

    /// Hears all pieces, and returns everything it said.
    pub(crate) fn hear_all<'a>(mut self, pieces: impl IntoIterator<Item = &'a [u8]>) -> Said {
        for piece in pieces {
            self.hear(piece);
        }
        self.said
    }

    /// The beginning of everything it said, as text.
    #[cfg(test)]
    pub(super) fn said(&self) -> String {
        String::from_utf8_lossy(&self.said.beginning).into_owned()
    }
}
