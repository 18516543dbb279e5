//! Bytes in and out of a control connection, without blocking.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use linerate_model::spec::LocalOptions;
use linerate_sys::poll::{Epoll, Interest};
use linerate_sys::{socket, sockopt, stream_io};

use super::keepalive;
use crate::data::socket::limit_idle_time;
use crate::error::{EngineError, Operation};
use crate::send_buffer::SendBuffer;
use crate::wait::if_ready;

/// One control connection with its unsent bytes.
pub(crate) struct ControlConnection {
    fd: OwnedFd,
    unsent: SendBuffer,
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
            unsent: SendBuffer::default(),
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
        self.unsent.push(bytes);
        self.flush()
    }

    /// Sends what the socket takes.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let sent = self.unsent.flush(|bytes| stream_io::send(&self.fd, bytes));
        sent.map(drop)
    }

    /// Sends what the socket takes, and nothing after that.
    pub(crate) fn end_sending(&mut self) {
        let _ = self.flush();
        self.unsent.clear();
        let _ = socket::shutdown_write(&self.fd);
    }

    /// Begins to be read, with this token.
    pub(crate) fn watch(&mut self, epoll: &Epoll, token: u64) -> linerate_sys::Result<()> {
        self.unsent_watched = false;
        epoll.add(&self.fd, token, Interest::READ)
    }

    /// Waits for writability only while bytes are unsent: a control connection is nearly always
    /// writable.
    pub(crate) fn follow_unsent(&mut self, epoll: &Epoll, token: u64) {
        let write = !self.unsent.is_empty();
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

        match if_ready(stream_io::recv(&self.fd, buffer)) {
            Ok(Some(0)) => Received::Eof,
            Ok(Some(n)) => Received::Bytes(&buffer[..n]),
            Ok(None) => Received::Nothing,
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
