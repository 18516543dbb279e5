//! State shared by the tasks of a worker: connections, slots, statistics.
//!
//! A slot carries one request at a time: a connection of HTTP/1.1 has one, one of HTTP/2 as many as streams.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use linerate_model::http::{ErrorClass, Mode};
use linerate_sys::clock;
use tokio::sync::{Notify, oneshot};

use crate::client::{Client, Failure};
use crate::load::backlog::Backlog;
use crate::load::pace::Pace;
use crate::load::ramp::{Loss, Ramp};
use crate::load::recorder::{Recorder, Sent};
use crate::load::response::ReceivedResponse;
use crate::load::run_state::{CommandSlot, RunState, Transition};
use crate::load::schedule::WorkerIndex;
use crate::load::spec::LoadSpec;

/// State shared by the tasks of a worker.
pub(super) struct Shared {
    pub(super) spec: Arc<LoadSpec>,
    pub(super) client: Arc<Client>,
    pub(super) state: RefCell<WorkerState>,
    /// Wakes the worker.
    pub(super) changed: Notify,
}

impl Shared {
    pub(super) fn timeout(&self) -> Duration {
        Duration::from_nanos(self.spec.timeout_ns)
    }
}

/// Connections, slots and statistics.
pub(super) struct WorkerState {
    pub(super) recorder: Recorder,
    pub(super) run_state: RunState,
    pub(super) pace: Pace,
    pub(super) ramp: Ramp,
    connections: Vec<Connection>,
    slots: Vec<Slot>,
    slots_each: u32,
    /// Free slots, the longest idle first. May contain some that are not free any more.
    free: VecDeque<u32>,
    /// Due times of requests that were assigned to a slot and never sent.
    returned: VecDeque<u64>,
    /// Connections whose first request has no response yet.
    awaiting_first: u32,
    /// Requests assigned to a slot that have not ended.
    in_flight: u64,
    backlog: Backlog,
    reconnects_max: u8,
}

#[derive(Debug, Default)]
struct Connection {
    is_open: bool,
    /// It has been open.
    was_open: bool,
    /// Unannounced losses.
    losses: u8,
}

#[derive(Debug, Default)]
struct Slot {
    /// The current request, and the end of the last backlog when it was sent.
    outstanding: Option<(Sent, u64)>,
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

impl WorkerState {
    pub(super) fn new(spec: &LoadSpec, index: WorkerIndex, commands: Arc<CommandSlot>, now_ns: u64) -> Self {
        let connections = spec.connections_of(index.0, index.1);
        let slots_each = spec.streams.max(1);
        let is_open_loop = !matches!(spec.mode, Mode::Closed { .. });
        let mut recorder = Recorder::new(spec.verifies, is_open_loop);
        recorder.stats.connections.wanted = u64::from(connections);
        Self {
            recorder,
            run_state: RunState::new(commands),
            pace: Pace::Held,
            ramp: Ramp::new(connections, spec.ramp_per_s, spec.connects_in_flight, index, now_ns),
            connections: (0..connections).map(|_| Connection::default()).collect(),
            slots: (0..connections.saturating_mul(slots_each))
                .map(|_| Slot::default())
                .collect(),
            slots_each,
            free: VecDeque::new(),
            returned: VecDeque::new(),
            awaiting_first: 0,
            in_flight: 0,
            backlog: Backlog::default(),
            reconnects_max: spec.reconnects_max,
        }
    }

    /// The slots of a connection.
    pub(super) fn slots_of(&self, number: u32) -> Range<u32> {
        let first = number.saturating_mul(self.slots_each);
        first..first.saturating_add(self.slots_each)
    }

    pub(super) fn open_count(&self) -> u64 {
        self.connections.iter().filter(|connection| connection.is_open).count() as u64
    }

    pub(super) fn step(&mut self, spec: &LoadSpec, now_ns: u64) -> Option<Transition> {
        let is_ramped = self.ramp.is_through() && self.awaiting_first == 0;
        self.run_state.step(spec, now_ns, is_ramped, self.in_flight)
    }

    /// A connection could not be opened.
    pub(super) fn refuse(&mut self, class: ErrorClass, text: &str) {
        for _ in 0..self.ramp.refused(class.is_client_limit()) {
            self.recorder.connection_failed(class, || text.to_owned());
        }
    }

    /// A connection is open; returns whether for the first time.
    pub(super) fn arrived(&mut self, number: u32, elapsed_ns: u64) -> bool {
        self.ramp.arrived();
        self.recorder.connected(elapsed_ns);
        let Some(connection) = self.connections.get_mut(number as usize) else {
            return false;
        };
        connection.is_open = true;
        !std::mem::replace(&mut connection.was_open, true)
    }

    pub(super) fn begin_first_request(&mut self) {
        self.awaiting_first += 1;
        self.in_flight += 1;
    }

    pub(super) fn end_first_request(&mut self) {
        self.awaiting_first = self.awaiting_first.saturating_sub(1);
    }

    /// A connection has ended; its waiting slots end too.
    pub(super) fn gone(&mut self, number: u32) {
        for slot in self.slots_of(number) {
            if let Some(slot) = self.slots.get_mut(slot as usize) {
                slot.waiter = None;
            }
        }
        if let Some(connection) = self.connections.get_mut(number as usize) {
            connection.is_open = false;
        }
    }

    /// Reopens a lost connection if allowed.
    pub(super) fn lose(&mut self, number: u32, loss: Loss) {
        let Some(connection) = self.connections.get_mut(number as usize) else {
            return;
        };
        if self
            .ramp
            .lost(number, loss, &mut connection.losses, self.reconnects_max)
        {
            self.recorder.stats.connections.reconnects += 1;
        }
    }

    /// A slot is free. After a response it pauses first if there is think time.
    pub(super) fn next(&mut self, slot: u32, has_response: bool) -> Next {
        let now_ns = clock::monotonic_ns();
        // A closed loop sends the next request at once.
        if let (Some(window), Pace::Closed) = (self.run_state.window(), &self.pace)
            && now_ns < window.end_ns
        {
            self.in_flight += 1;
            return Next::Now(now_ns);
        }
        let (waiter, due) = oneshot::channel();
        if let Some(slot) = self.slots.get_mut(slot as usize) {
            slot.waiter = Some(waiter);
        }
        if has_response && matches!(self.pace, Pace::Thinking { .. }) {
            self.pace.pause(slot, now_ns);
        } else {
            self.free.push_back(slot);
        }
        Next::Later(due)
    }

    /// Assigns due requests to free slots.
    pub(super) fn send_due(&mut self, spec: &LoadSpec, now_ns: u64) {
        let Some(window) = self.run_state.window() else {
            return;
        };
        let free = &mut self.free;
        self.pace.end_pauses(now_ns, |slot| free.push_back(slot));
        while let Some(due_ns) = self.due(now_ns).filter(|due_ns| *due_ns < window.end_ns) {
            let Some(waiter) = self.take_free() else {
                break;
            };
            // The task of a waiting slot may have ended.
            if waiter.send(due_ns).is_ok() {
                self.take_due();
                self.in_flight += 1;
            }
        }
        let is_open_loop = matches!(self.pace, Pace::Open(_));
        let left_ns = self
            .due(now_ns)
            .filter(|due_ns| is_open_loop && *due_ns < window.end_ns);
        if self
            .backlog
            .note_left(left_ns, now_ns, spec.timeout_ns, &mut self.recorder)
        {
            // What is due now is all that will be.
            self.run_state.cut(now_ns);
            self.drain(spec, now_ns, false);
        }
    }

    fn due(&self, now_ns: u64) -> Option<u64> {
        self.returned.front().copied().or_else(|| self.pace.due(now_ns))
    }

    fn take_due(&mut self) {
        if self.returned.pop_front().is_none() {
            self.pace.take();
        }
    }

    fn take_free(&mut self) -> Option<oneshot::Sender<u64>> {
        while let Some(slot) = self.free.pop_front() {
            let waiter = self.slots.get_mut(slot as usize).and_then(|slot| slot.waiter.take());
            if waiter.is_some() {
                return waiter;
            }
        }
        None
    }

    /// A request that was due at `due_ns` is sent; in a closed loop it is due when it is sent. `false` when the window has ended
    /// meanwhile.
    pub(super) fn sending(&mut self, slot: u32, due_ns: u64) -> bool {
        let sent_ns = clock::monotonic_ns();
        let is_open_loop = matches!(self.pace, Pace::Open(_));
        let is_ramp = matches!(self.pace, Pace::Held);
        let is_late = self.run_state.window().is_none_or(|window| sent_ns >= window.end_ns);
        if is_late && !is_open_loop && !is_ramp {
            self.in_flight = self.in_flight.saturating_sub(1);
            return false;
        }
        let due_ns = if is_open_loop { due_ns } else { sent_ns };
        if let Some(slot) = self.slots.get_mut(slot as usize) {
            slot.outstanding = Some((Sent { sent_ns, due_ns }, self.backlog.starved_until_ns()));
        }
        true
    }

    /// A request was not sent because the connection had ended. It is due again.
    pub(super) fn return_request(&mut self, slot: u32) {
        if let Some((sent, _)) = self.settle(slot)
            && matches!(self.pace, Pace::Open(_))
        {
            self.returned.push_back(sent.due_ns);
        }
    }

    pub(super) fn response_complete(&mut self, slot: u32, response: &ReceivedResponse) {
        let done_ns = clock::monotonic_ns();
        if let Some((sent, starved_until_ns)) = self.settle(slot) {
            self.recorder.sent(sent, starved_until_ns);
            self.recorder.response_complete(sent, done_ns, response);
        }
    }

    pub(super) fn failed(&mut self, slot: u32, failure: &Failure) {
        let now_ns = clock::monotonic_ns();
        if let Some((sent, starved_until_ns)) = self.settle(slot) {
            self.recorder.sent(sent, starved_until_ns);
            let text = || failure.text.clone();
            self.recorder.failed(sent, now_ns, failure.class, text);
        }
    }

    /// The request of a slot has ended.
    fn settle(&mut self, slot: u32) -> Option<(Sent, u64)> {
        let outstanding = self.slots.get_mut(slot as usize)?.outstanding.take()?;
        self.in_flight = self.in_flight.saturating_sub(1);
        Some(outstanding)
    }

    /// The window has ended. What was due in it is still sent on free slots: this thread is late.
    pub(super) fn end_load(&mut self, spec: &LoadSpec, now_ns: u64, is_stopped: bool) {
        if !is_stopped {
            self.send_due(spec, now_ns);
        }
        if self.run_state.window().is_some() {
            self.drain(spec, now_ns, is_stopped);
        }
    }

    /// Ends sending.
    fn drain(&mut self, spec: &LoadSpec, now_ns: u64, is_stopped: bool) {
        self.recorder.stats.connections.open_at_end = self.open_count();
        self.ramp.give_up();
        if let Some(window) = self.run_state.window().filter(|_| !is_stopped) {
            for due_ns in self.returned.drain(..) {
                self.recorder.unsent(due_ns, now_ns);
            }
            self.pace.abandon(window.end_ns, now_ns, &mut self.recorder);
        }
        let timeout_ns = if is_stopped { 0 } else { spec.timeout_ns };
        self.run_state.drain(now_ns.saturating_add(timeout_ns));
    }

    /// The next deadline.
    pub(super) fn wakes_ns(&self) -> u64 {
        let is_loaded = self.run_state.window().is_some();
        let can_send = is_loaded && (!self.free.is_empty() || !self.pace.needs_free());
        let times = [
            self.ramp.next_ns(),
            self.run_state.ends_ns(),
            self.pace.next_ns().filter(|_| can_send),
        ];
        times.into_iter().flatten().min().unwrap_or(u64::MAX)
    }

    /// Whether the worker must react: an open loop assigns due requests to free slots, a pause must be ended, and a drain ends
    /// with its last response.
    pub(super) fn needs_wakeup(&self) -> bool {
        self.run_state.window().is_none() || !matches!(self.pace, Pace::Closed)
    }

    /// Counts requests without a response, and returned ones.
    pub(super) fn close(&mut self, now_ns: u64) {
        let is_stopped = self.run_state.is_stopped();
        for due_ns in self.returned.drain(..).filter(|_| !is_stopped) {
            self.recorder.unsent(due_ns, now_ns);
        }
        for slot in &mut self.slots {
            let Some((sent, starved_until_ns)) = slot.outstanding.take() else {
                continue;
            };
            self.in_flight = self.in_flight.saturating_sub(1);
            self.recorder.sent(sent, starved_until_ns);
            if !is_stopped {
                let text = || "no complete response in time".to_owned();
                self.recorder.failed(sent, now_ns, ErrorClass::Timeout, text);
            }
        }
    }
}

#[cfg(test)]
mod tests;
