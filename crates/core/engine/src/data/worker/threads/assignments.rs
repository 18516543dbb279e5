//! Streams on their way to a worker, from the control thread or from another worker.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use linerate_model::{StreamId, StreamRole};
use linerate_sys::poll::EventFd;

use crate::data::worker::Pump;
use crate::lock::lock;

/// A stream on its way to a worker.
pub(crate) struct StreamAssignment {
    pub id: StreamId,
    /// The socket of the pump.
    pub fd: Arc<OwnedFd>,
    /// Role of this end on the stream; decides which readiness matters.
    pub role: StreamRole,
    pub pump: Box<dyn Pump>,
}

/// Assignment queue of a running worker: streams that other threads hand over, and requests for
/// streams of its own.
#[derive(Default)]
pub(crate) struct Assignments {
    /// The queue is not empty, read without the lock.
    has_entries: AtomicBool,
    /// Migrations to the owner that were announced, and those that have arrived.
    announced: AtomicUsize,
    arrived: AtomicUsize,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    streams: Vec<StreamAssignment>,
    requests: VecDeque<Request>,
}

/// Request for some of the owner's streams, due once the migrations to it that were announced
/// earlier have arrived. Waiting for those alone, and not for later ones, workers never wait for
/// each other.
struct Request {
    migration: Migration,
    after_arrived: usize,
}

/// Streams that migrate to another worker. The target's counter is released on drop, also if none
/// were moved.
pub(crate) struct Migration {
    part: Part,
    target: Arc<Assignments>,
    wake: Arc<EventFd>,
}

/// Selects streams of a worker.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    /// Every second one; one of an odd number stays.
    Half,
    All,
}

impl Assignments {
    pub(crate) fn push(&self, stream: StreamAssignment) {
        self.change(|queue| queue.streams.push(stream));
    }

    /// Asks the owner for a part of its streams.
    pub(crate) fn request(&self, migration: Migration) {
        let after_arrived = self.announced.load(Ordering::Acquire);
        self.change(|queue| {
            queue.requests.push_back(Request {
                migration,
                after_arrived,
            });
        });
    }

    /// Announced migrations have not arrived yet. Until then the owner does not acknowledge a stop.
    pub(crate) fn expects_streams(&self) -> bool {
        self.announced.load(Ordering::Acquire) != self.arrived.load(Ordering::Acquire)
    }

    /// New streams, and a request for those that the owner has then. To be called again after a
    /// request.
    pub(crate) fn take(&self) -> (Vec<StreamAssignment>, Option<Migration>) {
        // Workers call this on every turn of their loop: one relaxed load while nothing happens,
        // and a stale value only delays the entry to the next turn, which the event wakes.
        if !self.has_entries.load(Ordering::Relaxed) {
            return (Vec::new(), None);
        }

        // Before the streams: those of a migration are among them once it counts as arrived.
        let arrived = self.arrived.load(Ordering::Acquire);
        let mut queue = lock(&self.queue);
        let streams = std::mem::take(&mut queue.streams);
        let is_due = queue
            .requests
            .front()
            .is_some_and(|request| request.after_arrived <= arrived);
        let request = if is_due {
            queue.requests.pop_front()
        } else {
            None
        };

        self.has_entries
            .store(!queue.requests.is_empty(), Ordering::Release);
        (streams, request.map(|request| request.migration))
    }

    fn change(&self, change: impl FnOnce(&mut Queue)) {
        let mut queue = lock(&self.queue);
        change(&mut queue);
        self.has_entries.store(true, Ordering::Release);
    }
}

impl Migration {
    /// Announces streams to the worker that owns `target`, which `wake` wakes.
    pub(crate) fn announce(part: Part, target: &Arc<Assignments>, wake: &Arc<EventFd>) -> Self {
        target.announced.fetch_add(1, Ordering::Release);
        Self {
            part,
            target: Arc::clone(target),
            wake: Arc::clone(wake),
        }
    }

    pub(crate) fn part(&self) -> Part {
        self.part
    }

    pub(crate) fn push(&self, stream: StreamAssignment) {
        self.target.push(stream);
    }
}

impl Drop for Migration {
    fn drop(&mut self) {
        // A worker that stopped or failed in between drops the request unanswered; the target
        // would wait for it until the stop times out.
        self.target.arrived.fetch_add(1, Ordering::Release);
        self.wake.signal();
    }
}

impl Part {
    /// Selected number of this number of streams.
    pub(crate) fn of(self, streams: usize) -> usize {
        match self {
            Self::Half => streams / 2,
            Self::All => streams,
        }
    }

    /// Includes the stream at this place.
    pub(crate) fn contains(self, index: usize) -> bool {
        match self {
            Self::Half => index % 2 == 1,
            Self::All => true,
        }
    }
}
