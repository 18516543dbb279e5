//! Connections that have not said what they want.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use linerate_iperf2::StreamServer;
use linerate_iperf2::server::{AcceptedTest, Policy};
use linerate_model::Failure;
use linerate_sys::error::io_text;
use linerate_sys::{clock, stream_io};

use crate::iperf2::dialogue::{Deed, Dialogue, Reads, wall};

/// One of them.
pub(super) struct Waiting {
    fd: OwnedFd,
    pub(super) peer: SocketAddr,
    dialogue: Dialogue,
    accepted_ns: u64,
}

/// A connection or flow whose client has named its test.
pub(super) struct Opened {
    pub(super) fd: OwnedFd,
    pub(super) peer: SocketAddr,
    pub(super) dialogue: Dialogue,
    /// When the connection was accepted, on the monotonic clock.
    pub(super) accepted_ns: Option<u64>,
    /// Datagrams that arrived before there was a worker, and when.
    pub(super) early: Vec<(Vec<u8>, u64)>,
}

/// What became of it.
pub(super) enum Said {
    Nothing,
    Wants(Box<AcceptedTest>),
    Gone(Option<Failure>),
}

impl Waiting {
    /// `read` are bytes that somebody else has taken from the connection already.
    pub(super) fn new(fd: OwnedFd, peer: SocketAddr, policy: Policy, read: &[u8]) -> Self {
        let mut machine = StreamServer::new(Instant::now(), wall(), policy);
        machine.handle_bytes(wall(), read);
        Self {
            fd,
            peer,
            dialogue: Dialogue::StreamServer(Box::new(machine)),
            accepted_ns: clock::monotonic_ns(),
        }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.dialogue.deadline()
    }

    /// Reads what has come, and looks at the time.
    pub(super) fn advance(&mut self) -> Said {
        let mut buffer = [0; 512];
        loop {
            match self.dialogue.next() {
                Some(Deed::Accepted(test)) => return Said::Wants(test),
                Some(Deed::Close(outcome)) => return Said::Gone(outcome.err()),
                // Nothing else precedes one of the two.
                Some(_) => continue,
                None => {}
            }
            let Reads::Bytes(wanted) = self.dialogue.reads() else {
                return Said::Nothing;
            };
            let len = wanted.clamp(1, buffer.len());
            match stream_io::recv(self.fd.as_fd(), &mut buffer[..len]) {
                Ok(0) => self.dialogue.eof(),
                Ok(n) => self.dialogue.bytes(&buffer[..n]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    if self.dialogue.deadline().is_none_or(|t| Instant::now() < t) {
                        return Said::Nothing;
                    }
                    self.dialogue.on_time();
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => self.dialogue.failed(&io_text(&e)),
            }
        }
    }

    pub(super) fn into_opened(self) -> Opened {
        Opened {
            fd: self.fd,
            peer: self.peer,
            dialogue: self.dialogue,
            accepted_ns: Some(self.accepted_ns),
            early: Vec::new(),
        }
    }
}
