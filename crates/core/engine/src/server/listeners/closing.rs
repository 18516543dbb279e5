//! Connections that wait for the peer to close.
//!
//! Closing a socket with unread bytes sends a reset, which can overtake and destroy our last
//! message. So the write side is closed first and the socket is kept until the peer has closed too,
//! or for a short time.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_sys::poll::{Epoll, Interest};
use linerate_sys::{socket, stream_io};

/// Descriptors on their way out.
pub(crate) struct ClosingConnections {
    closing: Vec<Closing>,
    /// Most connections that are kept; more are closed at once.
    closing_max: usize,
    next_look: Option<Instant>,
}

struct Closing {
    fd: OwnedFd,
    /// Closed together with it.
    _companions: Vec<Arc<OwnedFd>>,
    deadline: Instant,
}

/// Longest time for a peer to close its side.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Poll period; nothing waits for these connections.
const LOOK: Duration = Duration::from_millis(100);
/// Bytes discarded per poll.
const DISCARD_BYTES: usize = 4096;

impl ClosingConnections {
    pub(crate) fn new(closing_max: usize) -> Self {
        Self {
            closing: Vec::new(),
            closing_max,
            next_look: None,
        }
    }

    /// Closes all of them: their descriptors are needed.
    pub(crate) fn close_all(&mut self) {
        self.closing.clear();
        self.next_look = None;
    }

    /// Takes a descriptor over, and others that are closed with it; its events have `token`.
    pub(crate) fn add(
        &mut self,
        fd: OwnedFd,
        companions: Vec<Arc<OwnedFd>>,
        epoll: &Epoll,
        token: u64,
    ) {
        // More than the bound are closed at once: anyone decides how many there are.
        if self.closing.len() < self.closing_max && socket::shutdown_write(&fd).is_ok() {
            // Without the event it is noticed at the next poll.
            let _ = epoll.add(&fd, token, Interest::READ);
            let now = Instant::now();
            let deadline = now + TIMEOUT;
            self.closing.push(Closing {
                fd,
                _companions: companions,
                deadline,
            });
            self.next_look.get_or_insert(now + LOOK);
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.next_look
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.closing.is_empty()
    }

    /// Something happened to one of them.
    pub(crate) fn poll_soon(&mut self) {
        self.next_look = Some(Instant::now());
    }

    /// Drops those whose peer has closed or whose time is up, if a poll is due.
    pub(crate) fn expire(&mut self, now: Instant) {
        if self.next_look.is_some_and(|t| t <= now) {
            self.look(now);
        }
    }

    /// Drops those whose peer has closed or whose time is up.
    pub(crate) fn look(&mut self, now: Instant) {
        let mut buffer = [0; DISCARD_BYTES];
        self.closing
            // The read also empties the receive queue: close(2) with unread bytes sends a reset
            // (RFC 2525 section 2.17).
            .retain(|l| l.deadline > now && !peer_has_closed(&l.fd, &mut buffer));
        self.next_look = (!self.closing.is_empty()).then(|| now + LOOK);
    }
}

fn peer_has_closed(fd: &OwnedFd, buffer: &mut [u8]) -> bool {
    match stream_io::recv(fd, buffer) {
        Ok(n) => n == 0,
        Err(e) => e.kind() != std::io::ErrorKind::WouldBlock,
    }
}
