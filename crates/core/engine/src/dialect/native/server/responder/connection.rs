//! A connection of probes: TLS and an echo, or requests and responses.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use linerate_model::path::TransactionSpec;
use linerate_native::wire::stream_head::{StreamAnswer, StreamHead};
use linerate_sys::poll::Interest;
use linerate_sys::{clock, sockopt};
use linerate_trust::{ServerConfig, ServerSession};

use super::meter::{Meter, Room};
use super::transactions::Transactions;
use super::turn::Turn;
use crate::data::quota::Traffic;
use crate::server::limits::allotment::Allotted;
use crate::tls_stream::TlsStream;
use crate::wait::if_ready;

/// One connection. Its head is read.
pub(super) struct ProbeConnection {
    fd: OwnedFd,
    active: Instant,
    /// Readiness that the event loop waits for.
    interest: Interest,
    exchange: Exchange,
    /// Closed with the connection.
    _allotted: Allotted,
}

enum Exchange {
    /// Everything that arrives is sent back.
    Echo(Box<TlsStream>),
    Transactions(Transactions),
}

impl ProbeConnection {
    /// A connection of requests with a `transaction`, otherwise one of echoes.
    pub(super) fn new(
        fd: OwnedFd,
        head: &StreamHead,
        transaction: Option<TransactionSpec>,
        tls: &ServerConfig,
        allotted: Allotted,
    ) -> Self {
        // Answers are small.
        let _ = sockopt::TCP_NODELAY.set(&fd, true);
        let answer = StreamAnswer {
            status: 0,
            stream: head.stream,
            server_ns: clock::monotonic_ns(),
        }
        .encode();

        let exchange = match transaction {
            Some(spec) => Exchange::Transactions(Transactions::new(&fd, spec, &answer)),
            None => {
                let mut stream = TlsStream::server(ServerSession::new(tls));
                stream.send_before(&answer);
                Exchange::Echo(Box::new(stream))
            }
        };
        Self {
            fd,
            active: Instant::now(),
            interest: Interest::READ,
            exchange,
            _allotted: allotted,
        }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// When something arrived last.
    pub(super) fn active(&self) -> Instant {
        self.active
    }

    /// It has requests and responses, which end with their phase.
    pub(super) fn has_transactions(&self) -> bool {
        matches!(self.exchange, Exchange::Transactions(_))
    }

    /// Readiness to wait for, where that has changed. Nothing is read of a client
    /// that does not take its answers.
    pub(super) fn changed_interest(&mut self) -> Option<Interest> {
        let has_unsent = match &self.exchange {
            Exchange::Echo(stream) => stream.has_unsent(),
            Exchange::Transactions(transactions) => transactions.has_unsent(),
        };
        let wanted = if has_unsent {
            Interest::WRITE
        } else {
            Interest::READ
        };
        (std::mem::replace(&mut self.interest, wanted) != wanted).then_some(wanted)
    }

    /// Readiness that the event loop waits for now.
    pub(super) fn interest(&self) -> Interest {
        self.interest
    }

    /// Answers a part of what has arrived. `buffer` is for requests.
    ///
    /// # Errors
    /// When the connection has ended, or the amount that the server allows is used up.
    pub(super) fn advance(&mut self, buffer: &mut [u8], meter: &Meter) -> io::Result<Turn> {
        self.active = Instant::now();
        let fd = self.fd.as_fd();

        match &mut self.exchange {
            Exchange::Transactions(transactions) => transactions.advance(fd, buffer, meter),
            Exchange::Echo(stream) => echo(stream, fd, meter),
        }
    }
}

/// Sends back the data of one read, unless an earlier echo is not sent yet.
fn echo(stream: &mut TlsStream, fd: impl AsFd, meter: &Meter) -> io::Result<Turn> {
    if stream.has_unsent() {
        return if_ready(stream.flush(&fd)).map(|_| Turn::Answered(0));
    }
    if let Room::NotBefore(at_ns) = meter.room(Traffic::Probes)? {
        return Ok(Turn::NotBefore(at_ns));
    }

    let before = stream.moved;
    let received = stream.receive(&fd)?;
    if !received.is_empty() {
        stream.send(&fd, &received)?;
    }

    let after = stream.moved;
    meter.charge(
        Traffic::Probes,
        after.received_bytes - before.received_bytes,
        after.sent_bytes - before.sent_bytes,
    );
    Ok(Turn::Answered(u64::from(!received.is_empty())))
}
