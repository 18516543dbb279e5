//! A worker: phases, pace, connections and statistics of one thread, whatever carries its requests.
//!
//! A slot carries one request at a time, or one pipeline: a connection of HTTP/1.1 is one slot, a
//! connection of HTTP/2 has a slot per stream.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use linerate_model::http::{ErrorClass, Mode};
use linerate_sys::clock;

use super::failure;
use super::opener::{Opened, Opener};
use super::pace::{Pace, WorkerIndex};
use super::ramp::{Loss, Ramp};
use super::recorder::{Recorder, Sent};
use super::response::ReceivedResponse;
use super::run_state::{CommandSlot, Message, RunState, Transition};
use super::spec::LoadSpec;

/// One thread's share of a load.
pub(crate) struct LoadWorker {
    pub spec: Arc<LoadSpec>,
    pub commands: Arc<CommandSlot>,
    pub run_state: RunState,
    pub recorder: Recorder,
    index: WorkerIndex,
    reports: Sender<Message>,
    pace: Pace,
    ramp: Ramp,
    opener: Opener,
    connections: Vec<ConnectionState>,
    /// Free slots, the longest idle first. May contain some that are not free any more.
    free: VecDeque<u32>,
    /// Due times of requests that were assigned to a slot and never sent.
    returned: VecDeque<u64>,
    /// Until here due requests had no free connection; never in a closed loop.
    starved_until_ns: u64,
    /// Connections whose first request has no response yet.
    awaiting_first: u32,
    /// Requests assigned to a slot that have not ended.
    in_flight: u64,
    next_check_ns: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct ConnectionState {
    is_open: bool,
    /// It has had a response.
    was_ready: bool,
    /// Its first request has no response yet.
    awaits_first: bool,
    /// It has had a response since it was opened.
    is_answered: bool,
    /// Unannounced losses.
    losses: u8,
}

/// Carries the requests of a worker.
pub(super) trait Transport {
    /// Sends a request that was due at `due_ns` on a free slot; `false` when the slot is not free
    /// any more.
    fn assign(&mut self, slot: u32, due_ns: u64, worker: &mut LoadWorker) -> bool;
}

impl LoadWorker {
    pub(crate) fn new(
        spec: Arc<LoadSpec>,
        index: WorkerIndex,
        commands: Arc<CommandSlot>,
        reports: Sender<Message>,
    ) -> Self {
        let now_ns = clock::monotonic_ns();
        let connections = spec.connections_of(index.0, index.1);
        // Heartbeats of idle connections have due times as well.
        let mut recorder = Recorder::new(spec.verifies, !matches!(spec.mode, Mode::Closed { .. }));
        recorder.stats.connections.wanted = u64::from(connections);

        Self {
            run_state: RunState::new(Arc::clone(&commands)),
            commands,
            recorder,
            index,
            reports,
            pace: Pace::Held,
            ramp: Ramp::new(
                connections,
                spec.ramp_per_s,
                spec.connects_in_flight,
                index,
                now_ns,
            ),
            opener: Opener::new(&spec, index),
            connections: vec![ConnectionState::default(); connections as usize],
            free: VecDeque::new(),
            returned: VecDeque::new(),
            starved_until_ns: 0,
            awaiting_first: 0,
            in_flight: 0,
            next_check_ns: now_ns,
            spec,
        }
    }

    pub(super) fn connection_count(&self) -> u32 {
        u32::try_from(self.connections.len()).unwrap_or(u32::MAX)
    }

    fn count(&self, is_counted: fn(&ConnectionState) -> bool) -> u64 {
        let counted = self.connections.iter().filter(|one| is_counted(one));
        counted.count() as u64
    }

    pub(super) fn has_in_flight(&self) -> bool {
        self.in_flight > 0
    }

    pub(super) fn is_connecting(&self) -> bool {
        self.ramp.is_connecting()
    }

    /// Enters the next phase on a command or when its time has come.
    pub(super) fn advance_run(&mut self, now_ns: u64, transport: &mut impl Transport) {
        match self.step(now_ns) {
            Some(Transition::Ramped) => {
                let opened = self.count(|one| one.is_open);
                self.recorder.stats.connections.opened = opened;
                let _ = self.reports.send(Message::Ramped { opened });
            }
            Some(Transition::Begin(window)) => {
                self.recorder.window = Some(window);
                self.pace = Pace::new(&self.spec, window.begin_ns, self.index);
            }
            Some(Transition::End { is_stopped }) => {
                if !is_stopped {
                    // What was due in the window is still sent on free slots: this thread is late.
                    self.send_due(now_ns, transport);
                }

                // An overload that `send_due` finds has begun the drain already.
                if self.run_state.window().is_some() {
                    self.drain(now_ns, is_stopped);
                }
            }
            None => {}
        }
    }

    fn step(&mut self, now_ns: u64) -> Option<Transition> {
        let is_ramped = self.ramp.is_through() && self.awaiting_first == 0;
        self.run_state
            .step(&self.spec, now_ns, is_ramped, self.in_flight)
    }

    /// Starts the next connection that may be opened.
    pub(super) fn open_next(&mut self, now_ns: u64) -> Option<(u32, Opened)> {
        loop {
            let number = self.ramp.take(now_ns)?;
            self.recorder.second.attempts += 1;

            match self.opener.open() {
                Ok(opened) => return Some((number, opened)),
                Err(error) => self.refuse(
                    failure::of_connect(&error),
                    &linerate_sys::error::io_text(&error),
                ),
            }
        }
    }

    /// A connection could not be opened.
    pub(super) fn refuse(&mut self, class: ErrorClass, text: &str) {
        for _ in 0..self.ramp.refused(class.is_client_limit()) {
            self.recorder.connection_failed(class, || text.to_owned());
        }
    }

    /// A connection is open. Returns whether it is ready only after the response to a first
    /// request, which the caller sends.
    pub(super) fn arrived(&mut self, number: u32, elapsed_ns: u64) -> bool {
        self.ramp.arrived();
        self.recorder.connected(elapsed_ns);
        let connection = &mut self.connections[number as usize];
        connection.is_open = true;
        connection.is_answered = false;
        // The kernel connects what a server may never accept: 200 of 200 connections where the
        // server, out of descriptors, accepted 30.
        connection.awaits_first = self.spec.sends_first_request && !connection.was_ready;
        self.awaiting_first += u32::from(connection.awaits_first);

        connection.awaits_first
    }

    /// The first request of a connection has no response yet.
    pub(super) fn awaits_first(&self, number: u32) -> bool {
        self.connections[number as usize].awaits_first
    }

    fn end_first_request(&mut self, number: u32) {
        let awaits_first = &mut self.connections[number as usize].awaits_first;
        self.awaiting_first -= u32::from(std::mem::take(awaits_first));
    }

    /// A connection is lost; it is reopened if allowed.
    pub(super) fn lose(&mut self, number: u32, loss: Loss) {
        self.end_first_request(number);
        let connection = &mut self.connections[number as usize];
        connection.is_open = false;

        // Of an idle connection that is reopened, a response alone shows that the server has
        // accepted it. Announced closes are not limited in number, so these would be requests
        // without end.
        if loss != Loss::Announced && matches!(self.spec.mode, Mode::Idle { .. }) {
            connection.was_ready = false;
        }

        let losses_max = self.spec.reconnects_max;
        if self
            .ramp
            .lost(number, loss, &mut connection.losses, losses_max)
        {
            self.recorder.stats.connections.reconnects += 1;
        }
    }

    /// True if a free slot sends its next request at once, as in a closed loop.
    pub(super) fn sends_at_once(&self, now_ns: u64) -> bool {
        let window = self
            .run_state
            .window()
            .filter(|window| now_ns < window.end_ns);
        matches!(self.pace, Pace::Closed) && window.is_some()
    }

    /// A slot is free. After a response it pauses first if there is think time.
    pub(super) fn release(&mut self, slot: u32, has_response: bool, now_ns: u64) {
        if has_response && matches!(self.pace, Pace::Thinking { .. }) {
            self.pace.pause(slot, now_ns);
        } else {
            self.free.push_back(slot);
        }
    }

    /// Assigns due requests to free slots.
    pub(super) fn send_due(&mut self, now_ns: u64, transport: &mut impl Transport) {
        let Some(window) = self.run_state.window() else {
            return;
        };
        let free = &mut self.free;
        self.pace.end_pauses(now_ns, |slot| free.push_back(slot));

        let due = |worker: &Self| worker.due(now_ns).filter(|due_ns| *due_ns < window.end_ns);
        while let Some(due_ns) = due(self) {
            let Some(slot) = self.free.pop_front() else {
                break;
            };
            // Returned requests come first in `due`, so the front one is the one that was assigned.
            if transport.assign(slot, due_ns, self) && self.returned.pop_front().is_none() {
                self.pace.take();
            }
        }

        let oldest_ns = due(self).filter(|oldest_ns| self.is_open_loop() && *oldest_ns < now_ns);
        if let Some(oldest_ns) = oldest_ns {
            self.record_backlog(now_ns - oldest_ns, now_ns);
        }
    }

    /// Due requests have no free connection. If the oldest is older than the response timeout, the
    /// offered rate cannot be sustained, and the load ends.
    fn record_backlog(&mut self, age_ns: u64, now_ns: u64) {
        self.starved_until_ns = now_ns;
        let backlog_ns = &mut self.recorder.second.backlog_ns;
        *backlog_ns = age_ns.max(*backlog_ns);

        if age_ns > self.spec.timeout_ns {
            self.recorder.stats.is_overloaded = true;
            // What is due now is all that will be.
            self.run_state.cut(now_ns);
            self.drain(now_ns, false);
        }
    }

    fn is_open_loop(&self) -> bool {
        matches!(self.pace, Pace::Open(_))
    }

    fn due(&self, now_ns: u64) -> Option<u64> {
        self.returned
            .front()
            .copied()
            .or_else(|| self.pace.due(now_ns))
    }

    /// `count` requests are assigned to a slot.
    pub(super) fn begin(&mut self, count: usize) {
        self.in_flight += count as u64;
    }

    /// A request that was due at `due_ns` is sent; in a closed loop it is due when it is sent.
    /// `None` when the window of a closed loop has ended meanwhile.
    pub(super) fn sending(&self, due_ns: u64) -> Option<Sent> {
        let sent_ns = clock::monotonic_ns();
        let is_late = || {
            self.run_state
                .window()
                .is_none_or(|window| sent_ns >= window.end_ns)
        };
        let due_ns = match self.pace {
            Pace::Open(_) => due_ns,
            Pace::Closed | Pace::Thinking { .. } if is_late() => return None,
            Pace::Held | Pace::Closed | Pace::Thinking { .. } => sent_ns,
        };
        let is_starved = due_ns < self.starved_until_ns;

        Some(Sent {
            sent_ns,
            due_ns,
            is_starved,
        })
    }

    /// A request has a complete response; returns the time.
    pub(super) fn response_complete(
        &mut self,
        number: u32,
        sent: Sent,
        response: &ReceivedResponse,
    ) -> u64 {
        let done_ns = clock::monotonic_ns();
        let connection = &mut self.connections[number as usize];
        connection.was_ready = true;
        connection.is_answered = true;
        self.end_first_request(number);
        self.end(1);
        self.recorder.response_complete(sent, done_ns, response);

        done_ns
    }

    /// Requests of a connection failed.
    pub(super) fn failed(
        &mut self,
        number: u32,
        lost: impl IntoIterator<Item = Sent>,
        class: ErrorClass,
        text: &str,
    ) {
        let now_ns = clock::monotonic_ns();
        for sent in lost {
            // Before the load no request counts, so its failure is one of the connection.
            let is_ramp = self.run_state.window().is_none() && self.awaits_first(number);
            self.end_first_request(number);
            self.end(1);

            if is_ramp {
                self.recorder.connection_failed(class, || text.to_owned());
            } else {
                self.recorder
                    .failed(sent, now_ns, class, || text.to_owned());
            }
        }
    }

    /// A request was not sent because the connection had ended. It is due again.
    pub(super) fn return_request(&mut self, number: u32, sent: Sent) {
        self.end_first_request(number);
        self.end(1);
        // A closed loop has no due times; its slot sends another request.
        if self.is_open_loop() {
            self.returned.push_back(sent.due_ns);
        }
    }

    /// `count` requests have ended.
    pub(super) fn end(&mut self, count: u64) {
        self.in_flight = self.in_flight.saturating_sub(count);
    }

    /// True if a free slot needs the worker: an open loop assigns due requests, a pause must be
    /// ended, and a drain ends with its last response.
    pub(super) fn needs_wakeup(&self) -> bool {
        self.run_state.window().is_none() || !matches!(self.pace, Pace::Closed)
    }

    /// Ends sending.
    fn drain(&mut self, now_ns: u64, is_stopped: bool) {
        self.recorder.stats.connections.open_at_end = self.count(|one| one.is_open);
        self.recorder.stats.connections.answered_at_end =
            Some(self.count(|one| one.is_open && one.is_answered));
        // A connection that opened now would have nothing to send.
        self.ramp.give_up();

        // Of a run that the user stopped, no request is missing.
        if let Some(window) = self.run_state.window().filter(|_| !is_stopped) {
            self.abandon_returned(now_ns);
            self.pace.abandon(window.end_ns, now_ns, &mut self.recorder);
        }

        let timeout_ns = if is_stopped { 0 } else { self.spec.timeout_ns };
        self.run_state.drain(now_ns.saturating_add(timeout_ns));
    }

    fn abandon_returned(&mut self, now_ns: u64) {
        for due_ns in self.returned.drain(..) {
            self.recorder.unsent(due_ns, now_ns);
        }
    }

    /// True if timeouts must be checked and a complete second reported.
    pub(super) fn is_check_due(&mut self, now_ns: u64) -> bool {
        if self.has_in_flight() || self.is_connecting() {
            self.next_check_ns = self.next_check_ns.min(now_ns + CHECK_NS);
        }
        now_ns >= self.next_check_ns
    }

    /// Reports the second that is complete. One reported late would contain responses of the next.
    pub(super) fn report_second(&mut self, now_ns: u64) {
        // Every connection is read for the count, so it is made once per second.
        if now_ns >= self.recorder.second_ends_ns() {
            self.recorder.second.open = self.count(|one| one.is_open);
        }

        if let Some(second) = self.recorder.finished_second(now_ns) {
            let _ = self.reports.send(Message::Second(second));
        }

        self.next_check_ns = (now_ns + IDLE_CHECK_NS).min(self.recorder.second_ends_ns());
    }

    /// The next deadline.
    pub(super) fn next_ns(&self) -> u64 {
        let spun_ns = if self.spec.spins { SPUN_NS } else { 0 };
        // Without a free slot a due time would cause a wake-up in vain; a response frees one.
        let due_ns = self.pace.next_ns().filter(|_| self.may_send());

        let times = [
            Some(self.next_check_ns),
            self.ramp.next_ns(),
            self.run_state.ends_ns(),
            due_ns.map(|due_ns| due_ns.saturating_sub(spun_ns)),
        ];
        times.into_iter().flatten().min().unwrap_or(u64::MAX)
    }

    /// When the request after the next one is due, in an open loop.
    pub(super) fn following_ns(&self) -> Option<u64> {
        self.pace.following_ns().filter(|_| self.may_send())
    }

    /// True if the next due request can be sent when its time comes.
    fn may_send(&self) -> bool {
        self.run_state.window().is_some() && (!self.free.is_empty() || !self.pace.needs_free())
    }

    /// Counts requests without a response, and reports the statistics.
    pub(super) fn finish(&mut self, outstanding: impl IntoIterator<Item = Sent>) {
        let now_ns = clock::monotonic_ns();
        let is_stopped = self.run_state.is_stopped();
        if !is_stopped {
            self.abandon_returned(now_ns);
        }

        for sent in outstanding {
            self.end(1);
            match is_stopped {
                // The user ended the run, so a response that was not awaited is no failure of the
                // server.
                true => self.recorder.stopped(sent),
                false => {
                    let text = || NO_RESPONSE_IN_TIME.to_owned();
                    self.recorder
                        .failed(sent, now_ns, ErrorClass::Timeout, text);
                }
            }
        }

        if let Some(second) = self.recorder.last_second() {
            let _ = self.reports.send(Message::Second(second));
        }

        let stats = std::mem::take(&mut self.recorder.stats);
        let _ = self.reports.send(Message::Finished(Box::new(stats)));
    }
}

pub(super) const NO_RESPONSE_IN_TIME: &str = "no complete response in time";
/// Resolution of timeouts.
const CHECK_NS: u64 = 100_000_000;
/// Without requests in flight: wake-ups are the cost of idle connections.
const IDLE_CHECK_NS: u64 = 1_000_000_000;
/// Busy-waiting before a due time.
const SPUN_NS: u64 = 50_000;

#[cfg(test)]
mod tests;
