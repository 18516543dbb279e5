//! What the tasks of a lane share: who is open, who waits for a request, what was counted.
//!
//! A slot is a place for one request at a time: a connection of HTTP/1.1 has one, one of HTTP/2 as many as it has
//! streams.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use linerate_model::http::{ErrorClass, Mode};
use linerate_sys::clock;
use tokio::sync::oneshot;

use crate::client::Failure;
use crate::load::answer::Answer;
use crate::load::backlog::Backlog;
use crate::load::course::{Course, Orders, Turn};
use crate::load::pace::Pace;
use crate::load::ramp::{Loss, Ramp};
use crate::load::recorder::{Recorder, Sent};
use crate::load::spec::LoadSpec;

pub(super) struct Desk {
    pub(super) recorder: Recorder,
    pub(super) course: Course,
    pub(super) pace: Pace,
    pub(super) ramp: Ramp,
    connections: Vec<Connection>,
    slots: Vec<Slot>,
    slots_each: u32,
    /// Slots that may be given a request, the longest idle first. May name some that cannot any more.
    free: VecDeque<u32>,
    /// Due times of requests that were given to a slot and never left.
    returned: VecDeque<u64>,
    /// Connections whose first request has no answer yet.
    touching: u32,
    /// Requests that were given to a slot and have not ended.
    in_flight: u64,
    backlog: Backlog,
    reconnects_max: u8,
}

#[derive(Debug, Default)]
struct Connection {
    is_open: bool,
    /// It was open once.
    was_open: bool,
    /// Times it was lost without notice.
    losses: u8,
}

#[derive(Debug, Default)]
struct Slot {
    /// The request on its way, and until when slots were wanting when it was sent.
    outstanding: Option<(Sent, u64)>,
    /// Takes the time at which the next request is due.
    waiter: Option<oneshot::Sender<u64>>,
}

/// What a slot does next.
pub(super) enum Next {
    /// A request that is due now.
    Now(u64),
    /// One that will be.
    Later(oneshot::Receiver<u64>),
}

impl Desk {
    pub(super) fn new(spec: &LoadSpec, place: (u32, u32), orders: Arc<Orders>, now_ns: u64) -> Self {
        let connections = spec.connections_of(place.0, place.1);
        let slots_each = spec.streams.max(1);
        let is_open_loop = !matches!(spec.mode, Mode::Closed { .. });
        let mut recorder = Recorder::new(spec.verifies, is_open_loop);
        recorder.tally.connections.wanted = u64::from(connections);
        Self {
            recorder,
            course: Course::new(orders),
            pace: Pace::Held,
            ramp: Ramp::new(connections, spec.ramp_per_s, spec.connects_in_flight, place, now_ns),
            connections: (0..connections).map(|_| Connection::default()).collect(),
            slots: (0..connections.saturating_mul(slots_each))
                .map(|_| Slot::default())
                .collect(),
            slots_each,
            free: VecDeque::new(),
            returned: VecDeque::new(),
            touching: 0,
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

    pub(super) fn step(&mut self, spec: &LoadSpec, now_ns: u64) -> Option<Turn> {
        let is_ramped = self.ramp.is_through() && self.touching == 0;
        self.course.step(spec, now_ns, is_ramped, self.in_flight)
    }

    /// A connection could not be opened.
    pub(super) fn refuse(&mut self, class: ErrorClass, text: &str) {
        for _ in 0..self.ramp.refused(class.is_client_limit()) {
            self.recorder.connection_failed(class, || text.to_owned());
        }
    }

    /// A connection is open; returns whether it is for the first time.
    pub(super) fn arrived(&mut self, number: u32, elapsed_ns: u64) -> bool {
        self.ramp.arrived();
        self.recorder.connected(elapsed_ns);
        let Some(connection) = self.connections.get_mut(number as usize) else {
            return false;
        };
        connection.is_open = true;
        !std::mem::replace(&mut connection.was_open, true)
    }

    pub(super) fn begin_touch(&mut self) {
        self.touching += 1;
        self.in_flight += 1;
    }

    pub(super) fn end_touch(&mut self) {
        self.touching = self.touching.saturating_sub(1);
    }

    /// A connection is gone; slots of it that wait for a request have waited in vain.
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

    /// Has a lost connection opened again where that is allowed.
    pub(super) fn lose(&mut self, number: u32, loss: Loss) {
        let Some(connection) = self.connections.get_mut(number as usize) else {
            return;
        };
        if self
            .ramp
            .lost(number, loss, &mut connection.losses, self.reconnects_max)
        {
            self.recorder.tally.connections.reconnects += 1;
        }
    }

    /// A slot is free. One that has just had an answer pauses first where that is wanted.
    pub(super) fn next(&mut self, slot: u32, has_answered: bool) -> Next {
        let now_ns = clock::monotonic_ns();
        // A slot of a closed loop always has something to do.
        if let (Some(window), Pace::Closed) = (self.course.window(), &self.pace)
            && now_ns < window.end_ns
        {
            self.in_flight += 1;
            return Next::Now(now_ns);
        }
        let (waiter, due) = oneshot::channel();
        if let Some(slot) = self.slots.get_mut(slot as usize) {
            slot.waiter = Some(waiter);
        }
        if has_answered && matches!(self.pace, Pace::Thinking { .. }) {
            self.pace.pause(slot, now_ns);
        } else {
            self.free.push_back(slot);
        }
        Next::Later(due)
    }

    /// Gives what is due to slots that are free.
    pub(super) fn send_due(&mut self, spec: &LoadSpec, now_ns: u64) {
        let Some(window) = self.course.window() else {
            return;
        };
        let free = &mut self.free;
        self.pace.end_pauses(now_ns, |slot| free.push_back(slot));
        while let Some(due_ns) = self.due(now_ns).filter(|due_ns| *due_ns < window.end_ns) {
            let Some(waiter) = self.take_free() else {
                break;
            };
            // A task that is gone has no slot that waits.
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
            // What was due until now is all there is.
            self.course.cut(now_ns);
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

    /// A request leaves that was due at `due_ns`; in a closed loop it is due when it is sent. `false` when the end came
    /// while it was decided: what is sent now would not count.
    pub(super) fn sending(&mut self, slot: u32, due_ns: u64) -> bool {
        let sent_ns = clock::monotonic_ns();
        let is_open_loop = matches!(self.pace, Pace::Open(_));
        let is_ramp = matches!(self.pace, Pace::Held);
        let is_late = self.course.window().is_none_or(|window| sent_ns >= window.end_ns);
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

    /// A request never left: the connection was through before. It is due for another one.
    pub(super) fn give_back(&mut self, slot: u32) {
        if let Some((sent, _)) = self.settle(slot)
            && matches!(self.pace, Pace::Open(_))
        {
            self.returned.push_back(sent.due_ns);
        }
    }

    pub(super) fn answered(&mut self, slot: u32, answer: &Answer) {
        let done_ns = clock::monotonic_ns();
        if let Some((sent, starved_until_ns)) = self.settle(slot) {
            self.recorder.sent(sent, starved_until_ns);
            self.recorder.answered(sent, done_ns, answer);
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

    /// The window is over. What was due in it is still sent where a slot is free: it is this thread that is late.
    pub(super) fn end_load(&mut self, spec: &LoadSpec, now_ns: u64, is_stopped: bool) {
        if !is_stopped {
            self.send_due(spec, now_ns);
        }
        if self.course.window().is_some() {
            self.drain(spec, now_ns, is_stopped);
        }
    }

    /// Nothing is sent any more.
    fn drain(&mut self, spec: &LoadSpec, now_ns: u64, is_stopped: bool) {
        self.recorder.tally.connections.open_at_end = self.open_count();
        self.ramp.give_up();
        if let Some(window) = self.course.window().filter(|_| !is_stopped) {
            for due_ns in self.returned.drain(..) {
                self.recorder.unsent(due_ns, now_ns);
            }
            self.pace.abandon(window.end_ns, now_ns, &mut self.recorder);
        }
        let patience_ns = if is_stopped { 0 } else { spec.timeout_ns };
        self.course.drain(now_ns.saturating_add(patience_ns));
    }

    /// When there is something to do even if nothing happens.
    pub(super) fn wakes_ns(&self) -> u64 {
        let is_loaded = self.course.window().is_some();
        let can_send = is_loaded && (!self.free.is_empty() || !self.pace.needs_free());
        let times = [
            self.ramp.next_ns(),
            self.course.ends_ns(),
            self.pace.next_ns().filter(|_| can_send),
        ];
        times.into_iter().flatten().min().unwrap_or(u64::MAX)
    }

    /// Whether somebody has to look at what just changed: an open loop gives a free slot what is due, a pause has to be
    /// ended, and a drain ends with its last answer.
    pub(super) fn wants_a_look(&self) -> bool {
        self.course.window().is_none() || !matches!(self.pace, Pace::Closed)
    }

    /// Counts what has no answer, and what came back when nothing was sent any more.
    pub(super) fn close(&mut self, now_ns: u64) {
        let is_stopped = self.course.is_stopped();
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
                let text = || "no complete answer in time".to_owned();
                self.recorder.failed(sent, now_ns, ErrorClass::Timeout, text);
            }
        }
    }
}

#[cfg(test)]
mod tests;
