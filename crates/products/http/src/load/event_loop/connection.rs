//! A connection of the generator: small, because ten thousand of them may be idle.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::load::recorder::Sent;
use crate::load::response::ResponseReader;

/// A connection and its outstanding requests.
#[derive(Debug, Default)]
pub(super) struct Connection {
    /// `None` while it is closed.
    socket: Option<OwnedFd>,
    /// When its opening was started; `None` once it is established.
    pub(super) connecting_since_ns: Option<u64>,
    pub(super) reader: ResponseReader,
    /// Requests without a response, the oldest first. Allocated by the first one.
    pub(super) outstanding: VecDeque<Sent>,
    /// An incomplete header.
    pub(super) kept: Option<Box<[u8]>>,
    /// Bytes of requests that did not fit into the send buffer.
    pub(super) unsent_bytes: u32,
}

impl Connection {
    pub(super) fn connect(&mut self, socket: OwnedFd, since_ns: u64) {
        self.socket = Some(socket);
        self.connecting_since_ns = Some(since_ns);
    }

    /// Closes it and resets its state; returns the outstanding requests.
    pub(super) fn close(&mut self) -> VecDeque<Sent> {
        std::mem::take(self).outstanding
    }

    pub(super) fn is_open(&self) -> bool {
        self.socket.is_some() && self.connecting_since_ns.is_none()
    }

    /// Ready for a request.
    pub(super) fn is_free(&self) -> bool {
        self.is_open() && self.outstanding.is_empty()
    }

    /// When the oldest request without a response was sent.
    pub(super) fn oldest_sent_ns(&self) -> Option<u64> {
        self.outstanding.front().map(|sent| sent.sent_ns)
    }

    pub(super) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(AsFd::as_fd)
    }

    /// Part of a response has arrived.
    pub(super) fn has_begun(&self) -> bool {
        self.kept.is_some() || self.reader.has_begun()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_is_small_and_owns_nothing() {
        assert!(
            size_of::<Connection>() <= 160,
            "{}",
            size_of::<Connection>()
        );
        assert_eq!(Connection::default().outstanding.capacity(), 0);
    }
}
