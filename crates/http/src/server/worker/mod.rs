//! A server thread: an event loop over its listeners and connections.
//!
//! A request costs two system calls, recv(2) and send(2), and a share of an epoll_wait(2). All connections share one receive
//! buffer; only incomplete requests and responses are kept per connection.

mod accepting;
mod clock;
mod connection_table;
mod idle_timeouts;
mod serving;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use linerate_model::network::Network;
use linerate_sys::clock::monotonic_ns;
use linerate_sys::poll::{Epoll, EventFd, Interest};
use linerate_sys::{PageBuffer, Result, socket};

use super::responses::ResponseWriter;
use super::stats::Counters;
use super::write_queue::WriteQueue;
use clock::Clock;
use connection_table::{AwaitedEvent, ConnectionTable, Token};
use idle_timeouts::IdleTimeouts;

/// State shared by all threads of a server.
#[derive(Debug)]
pub(super) struct Shared {
    /// Networks that are served.
    pub(super) permitted: Vec<Network>,
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
    responses: ResponseWriter,
    table: ConnectionTable,
    idle_timeouts: IdleTimeouts,
    /// When accepting is resumed; `None` while it is not paused.
    resume_accepting_ns: Option<u64>,
    /// Responses of the current connection; empty otherwise.
    queue: WriteQueue,
    buffer: PageBuffer,
    clock: Clock,
}

impl Worker {
    /// Prepares a thread. `waker` makes it check the stop flag.
    ///
    /// # Errors
    /// The operating system's.
    pub(super) fn new(
        listeners: Vec<OwnedFd>,
        waker: &EventFd,
        shared: Arc<Shared>,
        counters: Arc<Counters>,
        responses: ResponseWriter,
    ) -> Result<Self> {
        let epoll = Epoll::new()?;
        epoll.add(waker, WAKER, Interest::READ)?;
        for (number, listener) in (FIRST_LISTENER..).zip(&listeners) {
            epoll.add(listener, number, Interest::READ)?;
        }
        Ok(Self {
            epoll,
            listeners,
            idle_timeouts: IdleTimeouts::new(shared.idle_timeout),
            shared,
            counters,
            responses,
            table: ConnectionTable::default(),
            resume_accepting_ns: None,
            queue: WriteQueue::default(),
            buffer: PageBuffer::zeroed(BUFFER_BYTES)?,
            clock: Clock::new(),
        })
    }

    /// Serves until the stop flag is set.
    ///
    /// # Errors
    /// When epoll_wait(2) fails.
    pub(super) fn run(mut self) -> io::Result<()> {
        let mut events = Vec::new();
        loop {
            self.epoll.wait(&mut events, self.time_to_wait())?;
            if let Some(unix_seconds) = self.clock.advance() {
                self.responses.set_date(unix_seconds);
            }
            for event in &events {
                match event.token {
                    WAKER if self.shared.stop.load(Ordering::Acquire) => return Ok(()),
                    WAKER => {}
                    number @ FIRST_LISTENER..WAKER => self.accept(number),
                    number => self.serve(Token::from_number(number), event),
                }
            }
            if self.resume_accepting_ns.is_some_and(|at_ns| at_ns <= self.clock.now_ns()) {
                self.resume_accepting_ns = None;
                self.listen(Interest::READ);
            }
            self.close_expired();
        }
    }

    /// `None` without connections and deadlines.
    fn time_to_wait(&self) -> Option<Duration> {
        let scan_ns = (!self.table.is_empty()).then(|| self.idle_timeouts.next_scan_ns());
        let next_ns = scan_ns.into_iter().chain(self.resume_accepting_ns).min()?;
        Some(Duration::from_nanos(next_ns.saturating_sub(monotonic_ns())))
    }

    fn close_expired(&mut self) {
        if self.table.is_empty() || !self.idle_timeouts.is_scan_due(self.clock.now_ns()) {
            return;
        }
        for token in self.idle_timeouts.expired(&self.table, self.clock.ticks()) {
            let partial = self.table.get(token).and_then(|connection| connection.partial.as_ref());
            if !partial.is_some_and(|partial| partial.is_closing) {
                self.counters.timed_out.add(1);
            }
            self.close(token);
        }
    }

    fn await_event(&mut self, token: Token, what: AwaitedEvent) {
        let Some(connection) = self.table.get(token) else {
            return;
        };
        if connection.awaited == what {
            return;
        }
        connection.awaited = what;
        let changed = self.epoll.modify(&connection.fd, token.number(), what.interest());
        if changed.is_err() {
            self.close(token);
        }
    }

    /// Lingering close: an immediate close would make the kernel send a reset for unread data, which can overtake the last
    /// response.
    fn close_lingering(&mut self, token: Token) {
        let Some(connection) = self.table.get(token) else {
            return;
        };
        if socket::shutdown_write(&connection.fd).is_err() {
            return self.close(token);
        }
        connection.since = self.clock.ticks();
        let partial = connection.partial.get_or_insert_default();
        partial.input = Vec::new();
        partial.is_closing = true;
        self.await_event(token, AwaitedEvent::Readable);
    }

    fn close(&mut self, token: Token) {
        let Some(connection) = self.table.remove(token) else {
            return;
        };
        if connection.is_admitted {
            self.counters.closed.add(1);
        }
        self.shared.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Tokens of connections are below this.
const FIRST_LISTENER: u64 = (u32::MAX as u64) << 32;
const WAKER: u64 = u64::MAX;
/// Larger than a header, so that an incomplete one and what follows it fit.
const BUFFER_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_connections_and_listeners_are_disjoint() {
        assert!(Token::HIGHEST.number() < FIRST_LISTENER);
    }
}
