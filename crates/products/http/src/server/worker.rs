//! A server thread: an event loop over its listeners and connections.
//!
//! A request costs two system calls, recv(2) and send(2), and a share of an epoll_wait(2). All
//! connections share one receive buffer; only incomplete requests and responses are kept per
//! connection.
//!
//! Connections take turns ([`Turn`]): epoll_wait(2) reports a connection with more to send again,
//! behind all others that are ready.
//!
//! [`Turn`]: super::write_queue::Turn

mod accepting;
mod clock;
mod connection_table;
mod serving;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use linerate_sys::clock::monotonic_ns;
use linerate_sys::poll::{Epoll, EventFd, Interest, Ready};
use linerate_sys::{PageBuffer, Result};

use super::responses::ResponseWriter;
use super::stats::Counters;
use super::write_queue::WriteQueue;
use clock::{Clock, IdleTimeouts};
use connection_table::ConnectionTable;
use serving::{BUFFER_BYTES, ConnectionIo, Outcome};

pub(super) use serving::Shared;

/// One thread.
pub(super) struct Worker {
    epoll: Epoll,
    listeners: Vec<OwnedFd>,
    table: ConnectionTable,
    io: ConnectionIo,
    idle_timeouts: IdleTimeouts,
    /// When accepting is resumed; `None` while it is not paused.
    resume_accepting_ns: Option<u64>,
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

        // The listeners are the thread's own (`SO_REUSEPORT`, socket(7)), so a connection wakes one
        // thread.
        for (number, listener) in (FIRST_LISTENER..).zip(&listeners) {
            epoll.add(listener, number, Interest::READ)?;
        }

        Ok(Self {
            epoll,
            listeners,
            table: ConnectionTable::default(),
            idle_timeouts: IdleTimeouts::new(shared.idle_timeout),
            resume_accepting_ns: None,
            io: ConnectionIo {
                shared,
                counters,
                responses,
                queue: WriteQueue::default(),
                buffer: PageBuffer::zeroed(BUFFER_BYTES)?,
                clock: Clock::new(),
            },
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
            if let Some(unix_seconds) = self.io.clock.advance() {
                self.io.responses.set_date(unix_seconds);
            }

            for event in &events {
                match event.token {
                    WAKER if self.io.shared.stop.load(Ordering::Acquire) => return Ok(()),
                    WAKER => {}
                    token @ FIRST_LISTENER..WAKER => self.accept(token),
                    token => self.serve(token, event),
                }
            }

            // All events of this call are handled; none of them can match a reused index.
            self.table.recycle();
            if self
                .resume_accepting_ns
                .is_some_and(|at_ns| at_ns <= self.io.clock.now_ns)
            {
                self.resume_accepting_ns = None;
                self.listen(Interest::READ);
            }

            // After the events: a connection with input in this batch has made progress.
            self.close_expired();
        }
    }

    /// `None` without connections and deadlines.
    fn time_to_wait(&self) -> Option<Duration> {
        let scan_ns = (!self.table.is_empty()).then_some(self.idle_timeouts.next_scan_ns);
        let next_ns = scan_ns.into_iter().chain(self.resume_accepting_ns).min()?;
        // The clock is read once more: the events of this iteration took time.
        Some(Duration::from_nanos(next_ns.saturating_sub(monotonic_ns())))
    }

    fn close_expired(&mut self) {
        if self.table.is_empty() || !self.idle_timeouts.is_scan_due(self.io.clock.now_ns) {
            return;
        }

        for index in self
            .idle_timeouts
            .expired(&self.table, self.io.clock.ticks())
        {
            let partial = self
                .table
                .get(index)
                .and_then(|connection| connection.partial.as_ref());
            // A lingering close had its last response, so its expiry is no timeout of the client.
            if !partial.is_some_and(|partial| partial.is_closing) {
                self.io.counters.timed_out.add(1);
            }

            self.close(index);
        }
    }

    /// Handles an event of a connection, if it still exists.
    fn serve(&mut self, token: u64, event: &Ready) {
        // Tokens below `FIRST_LISTENER` fit into 32 bits.
        let index = u32::try_from(token).unwrap_or(u32::MAX);
        let Some(connection) = self.table.get(index) else {
            return;
        };
        let is_open = match self.io.serve(connection, event) {
            // An unchanged interest saves epoll_ctl(2), a third system call per request.
            Ok(Outcome::Await(interest)) if interest == connection.awaited => true,
            Ok(Outcome::Await(interest)) => {
                connection.awaited = interest;
                self.epoll.modify(&connection.fd, token, interest).is_ok()
            }
            Ok(Outcome::Close) | Err(_) => false,
        };
        if !is_open {
            self.close(index);
        }
    }

    fn close(&mut self, index: u32) {
        let Some(connection) = self.table.remove(index) else {
            return;
        };
        // Rejected connections count as `refused_at_limit` alone.
        if connection.is_admitted {
            self.io.counters.closed.add(1);
        }

        self.io.shared.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Tokens of connections, which are their indices, are below this.
const FIRST_LISTENER: u64 = 1 << 32;
const WAKER: u64 = u64::MAX;
