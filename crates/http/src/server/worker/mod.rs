//! A thread of the server: an event loop over its listeners and connections.
//!
//! A request on a connection costs two system calls, recv and send, and a share of an `epoll_wait`. Everything is read
//! into one buffer of the thread; only what is half there is kept with a connection.

mod accepting;
mod clock;
mod deadlines;
mod patience;
mod serving;
mod table;
mod wire;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use linerate_sys::clock::monotonic_ns;
use linerate_sys::poll::{Epoll, EventFd, Interest};
use linerate_sys::{PageBuffer, Result, socket};

use super::access::Guests;
use super::answers::Answers;
use super::figures::Counters;
use super::outbox::Outbox;
use clock::Clock;
use deadlines::{Deadlines, Event};
use patience::Patience;
use table::{Table, Token, WaitsFor};

/// What all threads of a server have in common.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) guests: Guests,
    /// Longest request body in bytes.
    pub(super) body_bytes_max: u64,
    pub(super) idle_timeout: Duration,
    pub(super) connections_max: usize,
    /// Connections of all threads together.
    pub(super) open: AtomicUsize,
    pub(super) stop: AtomicBool,
}

/// One thread.
pub(super) struct Worker {
    epoll: Epoll,
    listeners: Vec<OwnedFd>,
    shared: Arc<Shared>,
    counters: Arc<Counters>,
    answers: Answers,
    table: Table,
    deadlines: Deadlines,
    patience: Patience,
    /// Answers of the connection that is being served; empty between two of them.
    outbox: Outbox,
    buffer: PageBuffer,
    clock: Clock,
}

impl Worker {
    /// Prepares a thread. Ringing `bell` makes it look at the stop flag.
    ///
    /// # Errors
    /// The operating system's.
    pub(super) fn new(
        listeners: Vec<OwnedFd>,
        bell: &EventFd,
        shared: Arc<Shared>,
        counters: Arc<Counters>,
        answers: Answers,
    ) -> Result<Self> {
        let epoll = Epoll::new()?;
        epoll.add(bell, BELL, Interest::READ)?;
        for (number, listener) in (FIRST_LISTENER..).zip(&listeners) {
            epoll.add(listener, number, Interest::READ)?;
        }
        Ok(Self {
            epoll,
            listeners,
            patience: Patience::new(shared.idle_timeout),
            shared,
            counters,
            answers,
            table: Table::default(),
            deadlines: Deadlines::default(),
            outbox: Outbox::default(),
            buffer: PageBuffer::zeroed(BUFFER_BYTES)?,
            clock: Clock::new(),
        })
    }

    /// Serves until it is told to stop.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub(super) fn run(mut self) -> io::Result<()> {
        let mut events = Vec::new();
        loop {
            self.epoll.wait(&mut events, self.time_to_wait())?;
            if let Some(unix_seconds) = self.clock.advance() {
                self.answers.set_date(unix_seconds);
            }
            for event in &events {
                match event.token {
                    BELL if self.shared.stop.load(Ordering::Acquire) => return Ok(()),
                    BELL => {}
                    number @ FIRST_LISTENER..BELL => self.accept(number),
                    number => self.serve(Token::from_number(number), event),
                }
            }
            while let Some(event) = self.deadlines.take_due(self.clock.now_ns()) {
                self.carry_out(event);
            }
            self.close_idle();
        }
    }

    /// Without connections and deadlines there is nothing to wake up for.
    fn time_to_wait(&self) -> Option<Duration> {
        let look_ns = (!self.table.is_empty()).then(|| self.patience.next_look_ns());
        let next_ns = look_ns.into_iter().chain(self.deadlines.next_ns()).min()?;
        Some(Duration::from_nanos(next_ns.saturating_sub(monotonic_ns())))
    }

    fn carry_out(&mut self, event: Event) {
        match event {
            Event::Accept => self.listen(Interest::READ),
            Event::Close(token) => self.close(token),
        }
    }

    fn close_idle(&mut self) {
        if self.table.is_empty() || !self.patience.is_time_to_look(self.clock.now_ns()) {
            return;
        }
        for token in self.patience.exhausted(&self.table, self.clock.ticks()) {
            self.counters.timed_out.add(1);
            self.close(token);
        }
    }

    fn wait_for(&mut self, token: Token, what: WaitsFor) {
        let Some(connection) = self.table.get(token) else {
            return;
        };
        if connection.waits_for == what {
            return;
        }
        connection.waits_for = what;
        let changed = self.epoll.modify(&connection.fd, token.number(), what.interest());
        if changed.is_err() {
            self.close(token);
        }
    }

    /// The last word is said. What the peer sends beyond it is thrown away for a while: closing at once would make the
    /// kernel answer it with a reset, which can overtake our last word.
    fn linger(&mut self, token: Token) {
        let Some(connection) = self.table.get(token) else {
            return;
        };
        if socket::shutdown_write(&connection.fd).is_err() {
            return self.close(token);
        }
        let spill = connection.spill.get_or_insert_default();
        spill.input = Vec::new();
        spill.lingers = true;
        self.deadlines.add(self.clock.now_ns() + LINGER_NS, Event::Close(token));
        self.wait_for(token, WaitsFor::Input);
    }

    fn close(&mut self, token: Token) {
        let Some(connection) = self.table.remove(token) else {
            return;
        };
        if connection.is_guest {
            self.counters.closed.add(1);
        }
        self.shared.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Tokens of connections never have a highest half of ones.
const FIRST_LISTENER: u64 = (u32::MAX as u64) << 32;
const BELL: u64 = u64::MAX;
/// Read at once; more than a head, so that a partial one and what follows it fit.
const BUFFER_BYTES: usize = 64 * 1024;
/// How long the rest of a connection is read whose last answer was sent.
const LINGER_NS: u64 = 2_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tokens_of_connections_are_not_those_of_listeners() {
        assert!(Token::HIGHEST.number() < FIRST_LISTENER);
    }
}
