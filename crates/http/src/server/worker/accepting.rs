//! Accepts connections and rejects those above the limit.

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use linerate_sys::poll::Interest;
use linerate_sys::socket;

use super::connection_table::{AwaitedEvent, Connection, Token};
use super::{FIRST_LISTENER, Worker};
use crate::server::responses::Response;
use crate::server::write_queue::SocketTransport;

impl Worker {
    /// Accepts from the listener of this token.
    pub(super) fn accept(&mut self, number: u64) {
        let index = usize::try_from(number - FIRST_LISTENER).unwrap_or(usize::MAX);
        // A burst of new connections must not delay the others; epoll reports the rest again.
        for _ in 0..ACCEPTED_AT_ONCE {
            let Some(listener) = self.listeners.get(index) else {
                return;
            };
            let permitted = &self.shared.permitted;
            match socket::accept(listener) {
                Ok(Some((fd, peer))) if permitted.iter().any(|network| network.contains(peer.ip())) => self.admit(fd),
                Ok(Some(_)) => self.counters.refused_by_address.add(1),
                Ok(None) => return,
                Err(_) => return self.pause(),
            }
        }
    }

    /// Out of descriptors or memory: an immediate retry would spin.
    fn pause(&mut self) {
        self.counters.descriptors_exhausted.add(1);
        self.listen(Interest::default());
        self.resume_accepting_ns = Some(self.clock.now_ns() + PAUSE_NS);
    }

    pub(super) fn listen(&self, interest: Interest) {
        for (number, listener) in (FIRST_LISTENER..).zip(&self.listeners) {
            // Modifying a registered descriptor needs no memory.
            let _ = self.epoll.modify(listener, number, interest);
        }
    }

    fn admit(&mut self, fd: OwnedFd) {
        let open = self.shared.open.fetch_add(1, Ordering::Relaxed);
        let is_admitted = open < self.shared.connections_max;
        let counter = if is_admitted { &self.counters.accepted } else { &self.counters.refused_at_limit };
        counter.add(1);
        if open >= self.shared.connections_max + REFUSED_AT_ONCE {
            self.shared.open.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let connection =
            Connection { fd, since: self.clock.ticks(), awaited: AwaitedEvent::Readable, is_admitted, partial: None };
        if let Some(token) = self.table.insert(connection) {
            self.register(token);
        }
    }

    fn register(&mut self, token: Token) {
        let Some(connection) = self.table.get(token) else {
            return;
        };
        let is_admitted = connection.is_admitted;
        if self.epoll.add(&connection.fd, token.number(), Interest::READ).is_err() {
            self.close(token);
        } else if !is_admitted {
            self.refuse(token);
        }
    }

    /// Rejects a connection with 503.
    fn refuse(&mut self, token: Token) {
        let Some(connection) = self.table.get(token) else {
            return;
        };
        let response = Response::refusal(SERVICE_UNAVAILABLE);
        self.responses.push(response, &self.counters, &mut self.queue);
        // What does not fit into an empty send buffer is dropped.
        let mut transport = SocketTransport(&connection.fd);
        if let Ok(flushed) = self.queue.flush(&mut transport, self.responses.content()) {
            self.counters.sent_bytes.add(flushed.bytes);
        }
        drop(self.queue.take_rest());
        self.close_lingering(token);
    }
}

/// Accepts per event.
const ACCEPTED_AT_ONCE: usize = 64;
/// Connections above the limit that get 503 at a time; more are closed without a response.
const REFUSED_AT_ONCE: usize = 64;
/// Delay before accept(2) is retried.
const PAUSE_NS: u64 = 100_000_000;
const SERVICE_UNAVAILABLE: u16 = 503;
