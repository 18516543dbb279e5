//! Taking connections, and refusing those that are too many.

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use linerate_sys::poll::Interest;
use linerate_sys::socket;

use super::deadlines::Event;
use super::table::{Connection, Token, WaitsFor};
use super::wire::SocketWire;
use super::{FIRST_LISTENER, Worker};
use crate::server::answers::Reply;
use crate::server::body_path::is_paced;

impl Worker {
    /// Takes who waits at the listener of this token.
    pub(super) fn accept(&mut self, number: u64) {
        let index = usize::try_from(number - FIRST_LISTENER).unwrap_or(usize::MAX);
        // A burst of newcomers must not keep everybody else waiting; those that are left are reported again.
        for _ in 0..ACCEPTED_AT_ONCE {
            let Some(listener) = self.listeners.get(index) else {
                return;
            };
            match socket::accept(listener) {
                Ok(Some((fd, peer))) if self.shared.guests.include(peer.ip()) => self.welcome(fd),
                Ok(Some(_)) => self.counters.refused_by_address.add(1),
                Ok(None) => return,
                Err(_) => return self.pause(),
            }
        }
    }

    /// There is no descriptor or no memory: whoever asks again at once asks forever.
    fn pause(&mut self) {
        self.counters.descriptors_exhausted.add(1);
        self.listen(Interest::default());
        self.deadlines.add(self.clock.now_ns() + PAUSE_NS, Event::Accept);
    }

    pub(super) fn listen(&self, interest: Interest) {
        for (number, listener) in (FIRST_LISTENER..).zip(&self.listeners) {
            // Changing what a registered descriptor is waited for takes nothing that could be lacking.
            let _ = self.epoll.modify(listener, number, interest);
        }
    }

    fn welcome(&mut self, fd: OwnedFd) {
        let open = self.shared.open.fetch_add(1, Ordering::Relaxed);
        let is_guest = open < self.shared.connections_max;
        let counter = if is_guest {
            &self.counters.accepted
        } else {
            &self.counters.refused_at_limit
        };
        counter.add(1);
        if open >= self.shared.connections_max + REFUSED_AT_ONCE {
            self.shared.open.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let connection = Connection {
            is_paced: is_paced(&fd),
            fd,
            since: self.clock.ticks(),
            waits_for: WaitsFor::Input,
            is_guest,
            spill: None,
        };
        if let Some(token) = self.table.insert(connection) {
            self.introduce(token);
        }
    }

    fn introduce(&mut self, token: Token) {
        let Some(connection) = self.table.get(token) else {
            return;
        };
        let is_guest = connection.is_guest;
        if self.epoll.add(&connection.fd, token.number(), Interest::READ).is_err() {
            self.close(token);
        } else if !is_guest {
            self.turn_away(token);
        }
    }

    /// Says that there are too many.
    fn turn_away(&mut self, token: Token) {
        let Some(connection) = self.table.get(token) else {
            return;
        };
        let reply = Reply::refusal(SERVICE_UNAVAILABLE);
        self.answers.push(reply, false, &self.counters, &mut self.outbox);
        // What does not fit into a new socket is not worth waiting for.
        let mut wire = SocketWire(&connection.fd);
        if let Ok(flushed) = self.outbox.flush(&mut wire, self.answers.content()) {
            self.counters.sent_bytes.add(flushed.bytes);
        }
        drop(self.outbox.take_rest());
        self.linger(token);
    }
}

/// Connections taken before others are served again.
const ACCEPTED_AT_ONCE: usize = 64;
/// Connections beyond the limit that are being told so; more are closed without a word.
const REFUSED_AT_ONCE: usize = 64;
/// Pause after the system had no descriptor for a connection.
const PAUSE_NS: u64 = 100_000_000;
const SERVICE_UNAVAILABLE: u16 = 503;
