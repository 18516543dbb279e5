//! State shared by the tasks of a worker, and the slots of its connections.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use linerate_sys::clock;
use tokio::sync::{Notify, oneshot};

use crate::client::{Client, Failure};
use crate::load::recorder::Sent;
use crate::load::response::ReceivedResponse;
use crate::load::spec::LoadSpec;
use crate::load::worker::{LoadWorker, Transport};

/// State shared by the tasks of a worker.
pub(super) struct Shared {
    pub(super) spec: Arc<LoadSpec>,
    pub(super) client: Arc<Client>,
    pub(super) state: RefCell<State>,
    /// Wakes the worker.
    pub(super) changed: Notify,
}

impl Shared {
    pub(super) fn timeout(&self) -> Duration {
        Duration::from_nanos(self.spec.timeout_ns)
    }
}

/// A worker and its slots.
pub(super) struct State {
    pub(super) worker: LoadWorker,
    pub(super) slots: Slots,
}

/// Slots of all connections, each with a task.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    /// Slots of a connection.
    each: u32,
}

#[derive(Debug, Default)]
struct Slot {
    outstanding: Option<Sent>,
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

impl Transport for Slots {
    fn assign(&mut self, slot: u32, due_ns: u64, worker: &mut LoadWorker) -> bool {
        let waiter = self.get_mut(slot).and_then(|slot| slot.waiter.take());
        // The task of a waiting slot may have ended.
        let is_assigned = waiter.is_some_and(|waiter| waiter.send(due_ns).is_ok());
        worker.begin(usize::from(is_assigned));
        is_assigned
    }
}

impl Slots {
    fn get_mut(&mut self, slot: u32) -> Option<&mut Slot> {
        self.slots.get_mut(slot as usize)
    }

    /// Takes the requests without a response.
    pub(super) fn outstanding(&mut self) -> impl Iterator<Item = Sent> {
        self.slots.iter_mut().filter_map(|slot| slot.outstanding.take())
    }
}

impl State {
    pub(super) fn new(worker: LoadWorker) -> Self {
        let each = worker.spec.streams.max(1);
        let count = worker.connection_count().saturating_mul(each);
        Self { slots: Slots { slots: (0..count).map(|_| Slot::default()).collect(), each }, worker }
    }

    /// The slots of a connection.
    pub(super) fn slots_of(&self, number: u32) -> Range<u32> {
        let first = number.saturating_mul(self.slots.each);
        first..first.saturating_add(self.slots.each)
    }

    /// A connection has ended; its waiting slots end too.
    pub(super) fn gone(&mut self, number: u32) {
        for slot in self.slots_of(number) {
            if let Some(slot) = self.slots.get_mut(slot) {
                slot.waiter = None;
            }
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
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.waiter = Some(waiter);
        }
        self.worker.release(slot, has_response, now_ns);
        Next::Later(due)
    }

    /// Sends a request that was due at `due_ns`; `false` when the window has ended meanwhile.
    pub(super) fn sending(&mut self, slot: u32, due_ns: u64) -> bool {
        let sent = self.worker.sending(due_ns);
        if sent.is_none() {
            self.worker.end(1);
        }
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.outstanding = sent;
        }
        sent.is_some()
    }

    /// A request was not sent because the connection had ended.
    pub(super) fn return_request(&mut self, slot: u32) {
        if let Some((number, sent)) = self.settle(slot) {
            self.worker.return_request(number, sent);
        }
    }

    pub(super) fn response_complete(&mut self, slot: u32, response: &ReceivedResponse) {
        if let Some((number, sent)) = self.settle(slot) {
            self.worker.response_complete(number, sent, response);
        }
    }

    pub(super) fn failed(&mut self, slot: u32, failure: &Failure) {
        if let Some((number, sent)) = self.settle(slot) {
            self.worker.failed(number, [sent], failure.class, &failure.text);
        }
    }

    /// The request of a slot has ended: the number of its connection, and the request.
    fn settle(&mut self, slot: u32) -> Option<(u32, Sent)> {
        let sent = self.slots.get_mut(slot)?.outstanding.take()?;
        Some((slot / self.slots.each, sent))
    }
}
