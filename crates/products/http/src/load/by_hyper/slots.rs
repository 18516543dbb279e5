//! State shared by the tasks of a worker, and the slots of its connections.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use linerate_sys::clock;
use tokio::sync::{Notify, oneshot};

use crate::client::Client;
use crate::load::recorder::Sent;
use crate::load::spec::LoadSpec;
use crate::load::worker::{LoadWorker, Transport};

/// State shared by the tasks of a worker.
pub(super) struct Shared {
    pub spec: Arc<LoadSpec>,
    pub client: Arc<Client>,
    pub state: RefCell<State>,
    /// Wakes the worker.
    pub changed: Notify,
}

impl Shared {
    pub(super) fn timeout(&self) -> Duration {
        Duration::from_nanos(self.spec.timeout_ns)
    }
}

/// A worker and the slots of all its connections, each with a task.
pub(super) struct State {
    pub worker: LoadWorker,
    pub slots: Vec<Slot>,
}

#[derive(Debug, Default)]
pub(super) struct Slot {
    pub outstanding: Option<Sent>,
    /// Receives the due time of the next request.
    waiter: Option<oneshot::Sender<u64>>,
}

/// Next action of a slot.
pub(super) enum Next {
    /// A request that is due now.
    Now(u64),
    /// A request that is not due yet.
    Later(oneshot::Receiver<u64>),
}

impl Transport for Vec<Slot> {
    fn assign(&mut self, slot: u32, due_ns: u64, worker: &mut LoadWorker) -> bool {
        let waiter = self[slot as usize].waiter.take();
        // The task of a waiting slot may have ended.
        let is_assigned = waiter.is_some_and(|waiter| waiter.send(due_ns).is_ok());
        worker.begin(usize::from(is_assigned));
        is_assigned
    }
}

impl State {
    pub(super) fn new(worker: LoadWorker) -> Self {
        let count = worker
            .connection_count()
            .saturating_mul(worker.spec.streams.max(1));
        Self {
            slots: (0..count).map(|_| Slot::default()).collect(),
            worker,
        }
    }

    /// The slots of a connection.
    pub(super) fn slots_of(&self, number: u32) -> Range<u32> {
        let first = number.saturating_mul(self.per_connection());
        first..first.saturating_add(self.per_connection())
    }

    fn per_connection(&self) -> u32 {
        self.worker.spec.streams.max(1)
    }

    /// A connection has ended; its waiting slots end too.
    pub(super) fn gone(&mut self, number: u32) {
        for slot in self.slots_of(number) {
            self.slots[slot as usize].waiter = None;
        }
    }

    /// A slot is free.
    pub(super) fn next(&mut self, slot: u32, has_response: bool) -> Next {
        let now_ns = clock::monotonic_ns();
        if self.worker.sends_at_once(now_ns) {
            self.worker.begin(1);
            return Next::Now(now_ns);
        }

        let (waiter, due) = oneshot::channel();
        self.slots[slot as usize].waiter = Some(waiter);
        self.worker.release(slot, has_response, now_ns);
        Next::Later(due)
    }

    /// Sends a request that was due at `due_ns`; `false` when the window has ended meanwhile.
    pub(super) fn sending(&mut self, slot: u32, due_ns: u64) -> bool {
        let sent = self.worker.sending(due_ns);
        // `begin` counted the request when it was assigned.
        if sent.is_none() {
            self.worker.end(1);
        }

        self.slots[slot as usize].outstanding = sent;
        sent.is_some()
    }

    /// The request of a slot has ended: the number of its connection, and the request.
    pub(super) fn settle(&mut self, slot: u32) -> Option<(u32, Sent)> {
        let sent = self.slots[slot as usize].outstanding.take()?;
        Some((slot / self.per_connection(), sent))
    }
}
