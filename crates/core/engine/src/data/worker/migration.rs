//! Streams that one worker gives to another.

use std::sync::Arc;

use linerate_sys::poll::EventFd;

use super::assignments::{Inbox, StreamAssignment};

/// A part of the streams of one worker, promised to another one. Dropping it keeps the promise,
/// whatever was given.
pub(super) struct Share {
    part: Part,
    inbox: Arc<Inbox>,
    wake: Arc<EventFd>,
}

/// Which streams of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Every second one; one of an odd number stays.
    Half,
    All,
}

impl Share {
    /// A promise to the worker with this inbox, which `wake` wakes.
    pub(super) fn promise(part: Part, inbox: &Arc<Inbox>, wake: &Arc<EventFd>) -> Self {
        inbox.expect_share();
        Self {
            part,
            inbox: Arc::clone(inbox),
            wake: Arc::clone(wake),
        }
    }

    pub(super) fn part(&self) -> Part {
        self.part
    }

    pub(super) fn give(&self, stream: StreamAssignment) {
        self.inbox.put(stream);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.inbox.end_share();
        self.wake.signal();
    }
}

impl Part {
    /// How many of this number of streams.
    pub(super) fn of(self, streams: usize) -> usize {
        match self {
            Self::Half => streams / 2,
            Self::All => streams,
        }
    }

    /// Includes the stream at this place.
    pub(super) fn contains(self, index: usize) -> bool {
        match self {
            Self::Half => index % 2 == 1,
            Self::All => true,
        }
    }
}
