//! Pending TCP connections: accepted, header not yet read.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use linerate_iperf2::wire::StreamServer;
use linerate_iperf2::wire::server::{AcceptedTest, Policy};
use linerate_model::Failure;
use linerate_sys::error::io_text;
use linerate_sys::{clock, stream_io};

use crate::dialect::iperf2::machine::{Action, Machine, ReadMode, wall};
use crate::server::Accepted;
use crate::wait::if_ready;

/// One of them.
pub(super) struct PendingConnection {
    fd: OwnedFd,
    pub peer: SocketAddr,
    machine: Machine,
    accepted_ns: u64,
}

/// A connection or flow whose client has named its test.
pub(super) struct AcceptedConnection {
    pub fd: OwnedFd,
    pub peer: SocketAddr,
    pub machine: Machine,
    /// When the connection was accepted, on the monotonic clock.
    pub accepted_ns: Option<u64>,
    /// Datagrams that arrived before there was a worker, and when.
    pub early: Vec<(Vec<u8>, u64)>,
}

/// Its outcome.
pub(super) enum HeaderRead {
    Incomplete,
    Test(Box<AcceptedTest>),
    Closed(Option<Failure>),
}

impl PendingConnection {
    pub(super) fn new(connection: Accepted, policy: Policy) -> Self {
        let mut machine = StreamServer::new(Instant::now(), wall(), policy);
        machine.handle_bytes(wall(), &connection.first_bytes);
        Self {
            fd: connection.fd,
            peer: connection.peer,
            machine: Machine::StreamServer(Box::new(machine)),
            accepted_ns: clock::monotonic_ns(),
        }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.machine.deadline()
    }

    /// Reads what has arrived, and checks the timeout.
    pub(super) fn advance(&mut self) -> HeaderRead {
        let mut buffer = [0; 512];
        loop {
            match self.machine.next() {
                Some(Action::Accepted(test)) => return HeaderRead::Test(test),
                Some(Action::Close(outcome)) => return HeaderRead::Closed(outcome.err()),
                // Nothing else precedes one of the two.
                Some(_) => continue,
                None => {}
            }

            let ReadMode::Bytes(wanted) = self.machine.read_mode() else {
                return HeaderRead::Incomplete;
            };
            let len = wanted.clamp(1, buffer.len());
            match if_ready(stream_io::recv(&self.fd, &mut buffer[..len])) {
                Ok(Some(0)) => self.machine.eof(),
                Ok(Some(n)) => self.machine.bytes(&buffer[..n]),
                Ok(None) => {
                    if self.machine.deadline().is_none_or(|t| Instant::now() < t) {
                        return HeaderRead::Incomplete;
                    }
                    self.machine.on_time();
                }
                Err(e) => self.machine.failed(&io_text(&e)),
            }
        }
    }

    pub(super) fn into_opened(self) -> AcceptedConnection {
        AcceptedConnection {
            fd: self.fd,
            peer: self.peer,
            machine: self.machine,
            accepted_ns: Some(self.accepted_ns),
            early: Vec::new(),
        }
    }
}
