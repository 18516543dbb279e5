//! A connection of probes: TLS and an echo, or requests and responses.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use linerate_model::path::TransactionSpec;
use linerate_native::stream_head::{StreamAnswer, StreamHead, StreamKind};
use linerate_sys::poll::Interest;
use linerate_sys::{clock, sockopt, stream_io};
use linerate_trust::{ServerConfig, ServerSession};

use crate::dialect::native::tls_stream::TlsStream;

/// One connection. Its head is read.
pub(super) struct ProbeConnection {
    fd: OwnedFd,
    active: Instant,
    /// What the event loop waits for.
    interest: Interest,
    exchange: Exchange,
}

enum Exchange {
    /// Everything that arrives is sent back.
    Echo(Box<TlsStream>),
    Transactions(Transactions),
}

struct Transactions {
    request_bytes: usize,
    response: Vec<u8>,
    /// Bytes of requests that have not been answered.
    pending_bytes: usize,
    /// What is not yet sent.
    unsent: Vec<u8>,
}

/// Requests and responses are at most this long.
const TRANSACTION_BYTES_MAX: u32 = 1 << 20;
/// Responses that may wait for a client that does not read.
const UNSENT_BYTES_MAX: usize = 4 << 20;

impl ProbeConnection {
    pub(super) fn new(
        fd: OwnedFd,
        head: &StreamHead,
        transaction: Option<TransactionSpec>,
        tls: &ServerConfig,
    ) -> Self {
        // Answers are small.
        let _ = sockopt::TCP_NODELAY.set(&fd, true);
        let answer = StreamAnswer { status: 0, stream: head.stream, server_ns: clock::monotonic_ns() }.encode();
        let exchange = match (head.kind, transaction) {
            (StreamKind::Rr | StreamKind::Crr, Some(spec)) => {
                let response_bytes = spec.response_bytes.clamp(1, TRANSACTION_BYTES_MAX) as usize;
                Exchange::Transactions(Transactions {
                    request_bytes: spec.request_bytes.clamp(1, TRANSACTION_BYTES_MAX) as usize,
                    response: vec![b'r'; response_bytes],
                    pending_bytes: 0,
                    unsent: answer.to_vec(),
                })
            }
            _ => {
                let mut stream = TlsStream::server(ServerSession::new(tls));
                stream.send_before(&answer);
                Exchange::Echo(Box::new(stream))
            }
        };
        Self { fd, active: Instant::now(), interest: Interest::READ, exchange }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// When something arrived last.
    pub(super) fn active(&self) -> Instant {
        self.active
    }

    /// What the event loop has to wait for, where that has changed.
    pub(super) fn changed_interest(&mut self) -> Option<Interest> {
        let has_unsent = match &self.exchange {
            Exchange::Echo(stream) => stream.has_unsent(),
            Exchange::Transactions(transactions) => !transactions.unsent.is_empty(),
        };
        let wanted = if has_unsent { Interest::BOTH } else { Interest::READ };
        (std::mem::replace(&mut self.interest, wanted) != wanted).then_some(wanted)
    }

    /// Answers what has arrived; returns the number of requests that were answered. `buffer` is for requests.
    ///
    /// # Errors
    /// When the connection is over.
    pub(super) fn advance(&mut self, buffer: &mut [u8]) -> io::Result<u64> {
        self.active = Instant::now();
        let fd = self.fd.as_fd();
        match &mut self.exchange {
            Exchange::Echo(stream) => {
                let received = stream.receive(fd)?;
                if received.is_empty() {
                    return Ok(0);
                }
                stream.send(fd, &received)?;
                Ok(1)
            }
            Exchange::Transactions(transactions) => transactions.advance(fd, buffer),
        }
    }
}

impl Transactions {
    fn advance(&mut self, fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<u64> {
        let mut answered = 0;
        let mut is_drained = false;
        while !is_drained {
            match stream_io::recv(fd, buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(len) => {
                    self.pending_bytes += len;
                    // The event loop reports what arrives from now on.
                    is_drained = len < buffer.len();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            while self.pending_bytes >= self.request_bytes {
                self.pending_bytes -= self.request_bytes;
                if self.unsent.len() > UNSENT_BYTES_MAX {
                    return Err(ErrorKind::OutOfMemory.into());
                }
                self.unsent.extend_from_slice(&self.response);
                answered += 1;
            }
            self.flush(fd)?;
        }
        self.flush(fd)?;
        Ok(answered)
    }

    fn flush(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match stream_io::send(fd, &self.unsent) {
                Ok(len) => drop(self.unsent.drain(..len)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
