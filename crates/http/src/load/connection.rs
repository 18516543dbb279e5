//! A connection of the generator: small, because ten thousand of them may be idle.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::recorder::Sent;
use super::response::ResponseReader;

/// A connection and its outstanding requests.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    link: Link,
    pub(crate) reader: ResponseReader,
    /// Requests without a response, the oldest first. Allocated by the first one.
    pub(crate) outstanding: VecDeque<Sent>,
    /// An incomplete header.
    pub(crate) kept: Option<Box<[u8]>>,
    /// Bytes of requests that did not fit into the send buffer.
    pub(crate) unsent_bytes: u32,
    /// Unannounced losses.
    pub(crate) losses: u8,
    /// It has been open, and has a first response if one is required.
    pub(crate) was_ready: bool,
}

#[derive(Debug, Default)]
enum Link {
    #[default]
    Closed,
    Connecting {
        socket: OwnedFd,
        since_ns: u64,
    },
    Open(OwnedFd),
}

impl Connection {
    pub(crate) fn connect(&mut self, socket: OwnedFd, since_ns: u64) {
        self.link = Link::Connecting { socket, since_ns };
    }

    /// The connection is established; returns when it was started.
    pub(crate) fn establish(&mut self) -> Option<u64> {
        match std::mem::take(&mut self.link) {
            Link::Connecting { socket, since_ns } => {
                self.link = Link::Open(socket);
                Some(since_ns)
            }
            other => {
                self.link = other;
                None
            }
        }
    }

    /// Closes it and resets its state; returns the outstanding requests.
    pub(crate) fn close(&mut self) -> VecDeque<Sent> {
        self.link = Link::Closed;
        self.reader = ResponseReader::default();
        self.kept = None;
        self.unsent_bytes = 0;
        std::mem::take(&mut self.outstanding)
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self.link, Link::Open(_))
    }

    /// Ready for a request.
    pub(crate) fn is_free(&self) -> bool {
        self.is_open() && self.outstanding.is_empty()
    }

    /// When its opening was started.
    pub(crate) fn connecting_since(&self) -> Option<u64> {
        match self.link {
            Link::Connecting { since_ns, .. } => Some(since_ns),
            Link::Closed | Link::Open(_) => None,
        }
    }

    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        match &self.link {
            Link::Closed => None,
            Link::Connecting { socket, .. } | Link::Open(socket) => Some(socket.as_fd()),
        }
    }

    /// Part of a response has arrived.
    pub(crate) fn has_begun(&self) -> bool {
        self.kept.is_some() || self.reader.has_begun()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_is_small_and_owns_nothing() {
        assert!(size_of::<Connection>() <= 160, "{}", size_of::<Connection>());
        assert_eq!(Connection::default().outstanding.capacity(), 0);
    }
}
