//! Accepts connections and rejects those above the limit.

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use linerate_sys::poll::Interest;
use linerate_sys::socket;

use super::connection_table::Connection;
use super::{FIRST_LISTENER, Worker};

impl Worker {
    /// Accepts from the listener of this token.
    pub(super) fn accept(&mut self, token: u64) {
        let index = usize::try_from(token - FIRST_LISTENER).unwrap_or(usize::MAX);
        // A burst of new connections must not delay the others; epoll reports the rest again.
        for _ in 0..ACCEPTED_AT_ONCE {
            let Some(listener) = self.listeners.get(index) else {
                return;
            };
            let permitted = &self.io.shared.permitted;

            match socket::accept(listener) {
                Ok(Some((fd, peer)))
                    if permitted.iter().any(|network| network.contains(peer.ip())) =>
                {
                    self.admit(fd);
                }
                // The descriptor is dropped, which closes the connection without a response.
                Ok(Some(_)) => self.io.counters.refused_by_address.add(1),
                Ok(None) => return,
                Err(_) => return self.pause(),
            }
        }
    }

    /// Out of descriptors or memory: an immediate retry would spin.
    fn pause(&mut self) {
        self.io.counters.descriptors_exhausted.add(1);
        // epoll(7) is level-triggered: a connection that waits would end every epoll_wait(2).
        self.listen(Interest::default());
        self.resume_accepting_ns = Some(self.io.clock.now_ns + PAUSE_NS);
    }

    pub(super) fn listen(&self, interest: Interest) {
        for (token, listener) in (FIRST_LISTENER..).zip(&self.listeners) {
            // Modifying a registered descriptor needs no memory.
            let _ = self.epoll.modify(listener, token, interest);
        }
    }

    fn admit(&mut self, fd: OwnedFd) {
        let shared = &self.io.shared;
        // Counted before the limit is checked: threads that accept at the same time cannot exceed
        // it together.
        let open = shared.open.fetch_add(1, Ordering::Relaxed);
        let is_admitted = open < shared.connections_max;
        let counters = &self.io.counters;
        let counter = if is_admitted {
            &counters.accepted
        } else {
            &counters.refused_at_limit
        };
        counter.add(1);

        // A rejected connection holds its descriptor until the lingering close ends, so their
        // number is bounded as well.
        if open >= shared.connections_max + REFUSED_AT_ONCE {
            shared.open.fetch_sub(1, Ordering::Relaxed);
            return;
        }

        let since = self.io.clock.ticks();
        let connection = Connection {
            fd,
            since,
            awaited: Interest::READ,
            is_admitted,
            partial: None,
        };
        // Descriptors run out long before indices of 32 bits.
        let Some((index, connection)) = self.table.insert(connection) else {
            return;
        };
        let registered = self
            .epoll
            .add(&connection.fd, u64::from(index), Interest::READ);
        if registered.is_err() || (!is_admitted && self.io.refuse(connection).is_err()) {
            self.close(index);
        }
    }
}

/// Accepts per event.
const ACCEPTED_AT_ONCE: usize = 64;
/// Connections above the limit that get 503 at a time; more are closed without a response.
const REFUSED_AT_ONCE: usize = 64;
/// Delay before accept(2) is retried.
const PAUSE_NS: u64 = 100_000_000;
