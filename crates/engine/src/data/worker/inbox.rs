//! Streams on their way to a worker, from the control thread or from another worker.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use linerate_model::{StreamId, StreamRole};
use linerate_sys::poll::EventFd;

use super::Pump;

/// What other threads give to a worker that runs already, and what they ask it for.
#[derive(Default)]
pub(super) struct Inbox {
    is_full: AtomicBool,
    /// How often a worker was asked to give some of its streams to this one, and how often one has done so.
    promised: AtomicUsize,
    kept: AtomicUsize,
    contents: Mutex<Contents>,
}

#[derive(Default)]
struct Contents {
    streams: Vec<StreamAssignment>,
    requests: VecDeque<Request>,
}

/// Asks for some of the streams that the owner has once earlier promises to it are kept. Waiting for those alone, and not for later
/// ones, workers never wait for each other.
struct Request {
    share: Share,
    after_kept: usize,
}

impl Inbox {
    pub(super) fn put(&self, stream: StreamAssignment) {
        self.change(|contents| contents.streams.push(stream));
    }

    /// Asks the owner for a part of its streams.
    pub(super) fn ask_for(&self, share: Share) {
        let after_kept = self.promised.load(Ordering::Acquire);
        self.change(|contents| contents.requests.push_back(Request { share, after_kept }));
    }

    /// Streams are promised that have not come yet. Until then the owner does not acknowledge a stop.
    pub(super) fn expects_streams(&self) -> bool {
        self.promised.load(Ordering::Acquire) != self.kept.load(Ordering::Acquire)
    }

    /// New streams, and a request for those that the owner has then. To be called again after a request.
    pub(super) fn take(&self) -> (Vec<StreamAssignment>, Option<Share>) {
        if !self.is_full.load(Ordering::Relaxed) {
            return (Vec::new(), None);
        }
        // Before the streams: what was given by a promise is among them once it counts as kept.
        let kept = self.kept.load(Ordering::Acquire);
        let mut contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        let streams = std::mem::take(&mut contents.streams);
        let is_due = contents.requests.front().is_some_and(|request| request.after_kept <= kept);
        let request = if is_due { contents.requests.pop_front() } else { None };
        self.is_full.store(!contents.requests.is_empty(), Ordering::Release);
        (streams, request.map(|request| request.share))
    }

    fn change(&self, change: impl FnOnce(&mut Contents)) {
        let mut contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut contents);
        self.is_full.store(true, Ordering::Release);
    }
}

/// A part of the streams of one worker, promised to another one. Dropping it keeps the promise, whatever was given.
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

impl Part {
    /// Of so many streams.
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

impl Share {
    /// A promise to the worker with this inbox.
    pub(super) fn promise(part: Part, inbox: &Arc<Inbox>, wake: &Arc<EventFd>) -> Self {
        inbox.promised.fetch_add(1, Ordering::Release);
        Self { part, inbox: Arc::clone(inbox), wake: Arc::clone(wake) }
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
        self.inbox.kept.fetch_add(1, Ordering::Release);
        self.wake.signal();
    }
}

/// A stream on its way to a worker.
pub(crate) struct StreamAssignment {
    pub(crate) id: StreamId,
    /// The socket of the pump.
    pub(crate) fd: Arc<OwnedFd>,
    /// What this end does on the stream; decides which readiness matters.
    pub(crate) role: StreamRole,
    pub(crate) pump: Box<dyn Pump>,
}
