//! Bytes in and out of a control connection, without blocking.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use linerate_model::spec::LocalOptions;
use linerate_sys::{sockopt, stream_io};

use super::keepalive;
use crate::data::socket::limit_idle_time;
use crate::error::{EngineError, Operation};

/// One control connection with its unsent bytes.
#[derive(Debug)]
pub(crate) struct ControlConnection {
    fd: OwnedFd,
    unsent: Vec<u8>,
    position: usize,
}

/// Result of a read of the control connection.
#[derive(Debug)]
pub(crate) enum Received<'a> {
    Bytes(&'a [u8]),
    Nothing,
    Eof,
    Failed(io::Error),
}

impl ControlConnection {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Self {
            fd,
            unsent: Vec::new(),
            position: 0,
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(crate) fn into_fd(self) -> OwnedFd {
        self.fd
    }

    /// Queues bytes and sends what the socket takes.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.unsent.extend_from_slice(bytes);
        self.flush()
    }

    /// Sends what the socket takes; [`ControlConnection::has_unsent`] is true when bytes are left.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while self.position < self.unsent.len() {
            match stream_io::send(&self.fd, &self.unsent[self.position..]) {
                Ok(n) => self.position += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(e),
            }
        }

        self.unsent.clear();
        self.position = 0;
        Ok(())
    }

    pub(crate) fn has_unsent(&self) -> bool {
        self.position < self.unsent.len()
    }

    /// Reads once.
    pub(crate) fn receive<'a>(&self, buffer: &'a mut [u8]) -> Received<'a> {
        match stream_io::recv(&self.fd, buffer) {
            Ok(0) => Received::Eof,
            Ok(n) => Received::Bytes(&buffer[..n]),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                Received::Nothing
            }
            Err(e) => Received::Failed(e),
        }
    }
}

/// Sets what the user specified for control connections; disables Nagle's algorithm.
pub(super) fn prepare(fd: impl AsFd, local: &LocalOptions) -> Result<(), EngineError> {
    sockopt::TCP_NODELAY
        .set(&fd, true)
        .map_err(Operation::NoDelay.failed())?;
    if let Some(timeout) = local.control_timeout.or(local.snd_timeout) {
        limit_idle_time(&fd, timeout).map_err(Operation::UserTimeout.failed())?;
    }

    local
        .control_keepalive
        .as_ref()
        .map_or(Ok(()), |wanted| keepalive::apply(&fd, wanted))
}
