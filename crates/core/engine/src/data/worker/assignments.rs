//! Streams on their way to a worker, from the control thread or from another worker.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use linerate_model::{StreamId, StreamRole};

use super::Pump;
use super::migration::Share;

/// What other threads give to a worker that runs already, and what they ask it for.
#[derive(Default)]
pub(super) struct Inbox {
    is_full: AtomicBool,
    /// Shares of other workers' streams that the owner was promised, and those that have come.
    promised: AtomicUsize,
    kept: AtomicUsize,
    contents: Mutex<Contents>,
}

#[derive(Default)]
struct Contents {
    streams: Vec<StreamAssignment>,
    requests: VecDeque<Request>,
}

/// Asks for some of the streams that the owner has once earlier promises to it are kept. Waiting
/// for those alone, and not for later ones, workers never wait for each other.
struct Request {
    share: Share,
    after_kept: usize,
}

impl Inbox {
    pub(super) fn put(&self, stream: StreamAssignment) {
        self.change(|contents| contents.streams.push(stream));
    }

    /// Another worker will give some of its streams to the owner.
    pub(super) fn expect_share(&self) {
        self.promised.fetch_add(1, Ordering::Release);
    }

    /// It has given what it had.
    pub(super) fn end_share(&self) {
        self.kept.fetch_add(1, Ordering::Release);
    }

    /// Asks the owner for a part of its streams.
    pub(super) fn ask_for(&self, share: Share) {
        let after_kept = self.promised.load(Ordering::Acquire);
        self.change(|contents| contents.requests.push_back(Request { share, after_kept }));
    }

    /// Streams are promised that have not come yet. Until then the owner does not acknowledge a
    /// stop.
    pub(super) fn expects_streams(&self) -> bool {
        self.promised.load(Ordering::Acquire) != self.kept.load(Ordering::Acquire)
    }

    /// New streams, and a request for those that the owner has then. To be called again after a
    /// request.
    pub(super) fn take(&self) -> (Vec<StreamAssignment>, Option<Share>) {
        if !self.is_full.load(Ordering::Relaxed) {
            return (Vec::new(), None);
        }

        // Before the streams: what was given by a promise is among them once it counts as kept.
        let kept = self.kept.load(Ordering::Acquire);
        let mut contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        let streams = std::mem::take(&mut contents.streams);
        let is_due = contents
            .requests
            .front()
            .is_some_and(|request| request.after_kept <= kept);
        let request = if is_due {
            contents.requests.pop_front()
        } else {
            None
        };

        self.is_full
            .store(!contents.requests.is_empty(), Ordering::Release);
        (streams, request.map(|request| request.share))
    }

    fn change(&self, change: impl FnOnce(&mut Contents)) {
        let mut contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut contents);
        self.is_full.store(true, Ordering::Release);
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
