//! Pending connections: accepted, cookie not yet read.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use linerate_iperf2::opening::OPENING_LEN;
use linerate_iperf3::{Cookie, ErrorCode, State};
use linerate_sys::poll::Epoll;
use linerate_sys::{process, stream_io};

use super::pending::{PendingConnection, Progress};
use super::{READ, tokens};
use crate::server::accept_pause::AcceptPause;
use crate::server::pending_limit::{PendingBounds, PendingLimit};

/// Pending connections, and the limit on them and on clients without parameters.
#[derive(Debug)]
pub(super) struct Acceptor {
    pending: BTreeMap<u64, PendingConnection>,
    pending_limit: PendingLimit,
    next_id: u64,
    /// Clients of other dialects connect here too.
    is_shared: bool,
    pause: AcceptPause,
}

/// How a connection introduces itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstBytes {
    /// A client of this dialect, or a stream of one.
    Cookie(Cookie),
    /// A test without a control connection began with these bytes.
    Other([u8; OPENING_LEN]),
}

/// Effect of a new connection on others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Accepted {
    /// Nothing.
    Welcome,
    /// This one is evicted.
    InsteadOf(u64),
}

impl Acceptor {
    pub(super) fn new(first_id: u64, is_shared: bool) -> Self {
        // Raising the limit again returns the limit in force.
        let descriptors = process::raise_fd_limit().unwrap_or(1024);
        Self {
            pending: BTreeMap::new(),
            pending_limit: PendingLimit::new(PendingBounds::of_descriptors(descriptors)),
            next_id: first_id,
            is_shared,
            pause: AcceptPause::default(),
        }
    }

    /// Most connections that are kept although they are through.
    pub(super) fn closing_max(&self) -> usize {
        self.pending_limit.bounds().total
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    pub(super) fn enter(&mut self, fd: OwnedFd, peer: SocketAddr, epoll: &Epoll) -> Accepted {
        let id = self.next_id;
        self.next_id += 1;
        if epoll.add(fd.as_fd(), tokens(id).control, READ).is_err() {
            return Accepted::Welcome;
        }
        self.pending
            .insert(id, PendingConnection::new(fd, peer, self.is_shared));
        match self.pending_limit.enter(id, peer.ip()) {
            Some(victim) => Accepted::InsteadOf(victim),
            None => Accepted::Welcome,
        }
    }

    /// Reads the first bytes; returns them when they are complete.
    pub(super) fn read(&mut self, id: u64, epoll: &Epoll) -> Option<FirstBytes> {
        match self.pending.get_mut(&id)?.read() {
            Progress::More => None,
            Progress::Cookie(cookie) => Some(FirstBytes::Cookie(cookie)),
            Progress::Other(opening) => Some(FirstBytes::Other(opening)),
            Progress::Gone => {
                self.take(id, epoll);
                self.forget(id);
                None
            }
        }
    }

    /// Takes a connection out of the event loop. It still counts against the limit.
    pub(super) fn take(&mut self, id: u64, epoll: &Epoll) -> Option<(OwnedFd, SocketAddr)> {
        let pending = self.pending.remove(&id)?;
        let _ = epoll.remove(pending.fd());
        Some(pending.into_parts())
    }

    /// A connection no longer counts against the limit.
    pub(super) fn forget(&mut self, id: u64) {
        self.pending_limit.leave(id);
    }

    /// The oldest connection of the address with most pending ones.
    pub(super) fn largest_source(&self) -> Option<u64> {
        self.pending_limit.oldest_of_largest_source()
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        // Later connections have later deadlines.
        let first = self.pending.first_key_value().map(|(_, p)| p.deadline());
        [first, self.pause.deadline()].into_iter().flatten().min()
    }

    /// Connections whose time is up.
    pub(super) fn late(&self, now: Instant) -> Vec<u64> {
        let late = self.pending.iter().take_while(|(_, p)| p.deadline() <= now);
        late.map(|(&id, _)| id).collect()
    }

    /// Pauses accepting; true when a warning is due.
    pub(super) fn pause(&mut self, now: Instant) -> bool {
        self.pause.begin(now)
    }

    pub(super) fn pause_is_over(&mut self, now: Instant) -> bool {
        self.pause.ends(now)
    }
}

/// Answers that the server is busy; also to a stream without a session.
pub(super) fn send_busy(fd: OwnedFd) -> OwnedFd {
    // A new connection has room for one byte; a peer that is gone needs no answer.
    let _ = stream_io::send(fd.as_fd(), &[State::AccessDenied.byte()]);
    fd
}

/// Tells a client what went wrong before a session existed.
pub(super) fn send_error(fd: OwnedFd, code: ErrorCode) -> OwnedFd {
    let mut message = vec![State::ServerError.byte()];
    message.extend_from_slice(&code.number().to_be_bytes());
    message.extend_from_slice(&0i32.to_be_bytes());
    let _ = stream_io::send(fd.as_fd(), &message);
    fd
}
