//! Bytes in and out of a control connection, without blocking.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use linerate_model::spec::LocalOptions;
use linerate_sys::poll::{Epoll, Interest};
use linerate_sys::{socket, sockopt, stream_io};

use super::keepalive;
use crate::data::socket::limit_idle_time;
use crate::error::{EngineError, Operation};

/// One control connection with its unsent bytes.
pub(crate) struct ControlConnection {
    fd: OwnedFd,
    unsent: Vec<u8>,
    position: usize,
    /// The event loop announces room for what is unsent.
    unsent_watched: bool,
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
            unsent_watched: false,
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

    /// Sends what the socket takes, and nothing after that.
    pub(crate) fn end_sending(&mut self) {
        let _ = self.flush();
        self.unsent.clear();
        let _ = socket::shutdown_write(&self.fd);
    }

    fn has_unsent(&self) -> bool {
        self.position < self.unsent.len()
    }

    /// Begins to be read, with this token.
    pub(crate) fn watch(&mut self, epoll: &Epoll, token: u64) -> linerate_sys::Result<()> {
        self.unsent_watched = false;
        epoll.add(&self.fd, token, Interest::READ)
    }

    /// Waits for writability only while bytes are unsent: a control connection is nearly always
    /// writable.
    pub(crate) fn follow_unsent(&mut self, epoll: &Epoll, token: u64) {
        let write = self.has_unsent();
        let interest = Interest {
            write,
            ..Interest::READ
        };
        // Modifying a registered descriptor fails only when memory is short; the next send tries
        // again.
        if write != self.unsent_watched && epoll.modify(&self.fd, token, interest).is_ok() {
            self.unsent_watched = write;
        }
    }

    /// Sends what is unsent, because the peer may wait for it, and reads once.
    pub(crate) fn receive<'a>(&mut self, buffer: &'a mut [u8]) -> Received<'a> {
        if let Err(error) = self.flush() {
            return Received::Failed(error);
        }

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
