//! A TLS session over a non-blocking socket.

mod intake;

use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::AsFd;
use std::time::Instant;

use linerate_sys::stream_io;
use linerate_trust::{CHANNEL_BINDING, ClientSession, Fingerprint, ServerSession, TlsError};

use crate::wait::if_ready;
use intake::{IntakeLimits, IntakeRate, OF_CLIENTS, OF_SERVER};

#[cfg(any(test, fuzzing))]
#[path = "../fuzzing/tls_stream.rs"]
pub(crate) mod fuzzing;

/// One end of a session, with what is read and not yet taken, and what is encrypted and not yet
/// sent.
pub(crate) struct TlsStream {
    session: Session,
    /// Bound of [`Self::receive`], for messages.
    limits: IntakeLimits,
    rate: IntakeRate,
    received: Vec<u8>,
    taken: usize,
    outgoing: Vec<u8>,
    sent: usize,
    /// Bytes of the peer that precede the session and have not arrived.
    skipped: usize,
    /// Bytes of messages that have been received, and all bytes that have been sent.
    pub moved: Moved,
}

/// Bytes on the wire.
#[derive(Clone, Copy, Default)]
pub(crate) struct Moved {
    pub received_bytes: u64,
    pub sent_bytes: u64,
}

enum Session {
    Client(ClientSession),
    Server(ServerSession),
}

/// Plaintext that one write encrypts at most: four records.
const WRITE_BYTES_MAX: usize = 64 * 1024;
/// Ciphertext of one read.
const READ_BYTES: usize = 64 * 1024;

impl TlsStream {
    pub(crate) fn client(session: ClientSession) -> Self {
        Self::new(Session::Client(session), OF_SERVER)
    }

    pub(crate) fn server(session: ServerSession) -> Self {
        Self::new(Session::Server(session), OF_CLIENTS)
    }

    fn new(session: Session, limits: IntakeLimits) -> Self {
        let rate = IntakeRate::new(limits);
        Self {
            session,
            limits,
            rate,
            received: Vec::new(),
            taken: 0,
            outgoing: Vec::new(),
            sent: 0,
            skipped: 0,
            moved: Moved::default(),
        }
    }

    /// Bytes that precede the session on the wire leave first.
    pub(crate) fn send_before(&mut self, bytes: &[u8]) {
        self.outgoing.extend_from_slice(bytes);
    }

    /// Bytes of the peer that precede the session; they are skipped.
    pub(crate) fn skip_before(&mut self, bytes: usize) {
        self.skipped = bytes;
    }

    /// Reads the socket once, sends what the handshake needs, and returns the plaintext. What stays
    /// in the socket wakes an event loop again.
    ///
    /// # Errors
    /// `UnexpectedEof` when the peer has closed the connection, `InvalidData` when it violates TLS
    /// or sends more than the limits of this end, and those of the socket.
    pub(crate) fn receive(&mut self, fd: impl AsFd) -> io::Result<Vec<u8>> {
        let mut ciphertext = vec![0; self.limits.turn_bytes];
        match if_ready(stream_io::recv(&fd, &mut ciphertext))? {
            Some(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Some(len) => self.feed_limited(ciphertext.get(..len).unwrap_or_default())?,
            None => {}
        }

        let received = std::mem::take(&mut self.received);
        match if_ready(self.flush(&fd)) {
            Err(error) if received.is_empty() => Err(error),
            _ => Ok(received),
        }
    }

    /// Takes ciphertext within the limits of this end.
    fn feed_limited(&mut self, ciphertext: &[u8]) -> io::Result<()> {
        self.moved.received_bytes += ciphertext.len() as u64;
        let before = self.session.records_received();
        self.feed(ciphertext)?;

        let records = self.session.records_received() - before;

        if !self
            .rate
            .charge(Instant::now(), records, ciphertext.len() as u64)
        {
            let text = format!(
                "more than {} TLS records or KiB per second",
                self.limits.units_per_s
            );
            return Err(io::Error::new(ErrorKind::InvalidData, text));
        }

        Ok(())
    }

    fn feed(&mut self, ciphertext: &[u8]) -> io::Result<()> {
        let skipped = self.skipped.min(ciphertext.len());
        self.skipped -= skipped;
        let ciphertext = ciphertext.get(skipped..).unwrap_or_default();
        self.session.receive(ciphertext).map_err(invalid)?;
        self.received.extend(self.session.take_received());
        Ok(())
    }

    /// Encrypts all of it, and sends what the socket takes.
    pub(crate) fn send(&mut self, fd: impl AsFd, plaintext: &[u8]) -> io::Result<()> {
        self.session.send(plaintext).map_err(invalid)?;
        if_ready(self.flush(&fd)).map(drop)
    }

    /// Something encrypted waits for room in the socket.
    pub(crate) fn has_unsent(&self) -> bool {
        self.sent < self.outgoing.len()
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        match &self.session {
            Session::Client(session) => session.is_handshaking(),
            Session::Server(session) => session.is_handshaking(),
        }
    }

    /// Keying material that binds proofs to this session (RFC 9266), once the handshake is
    /// complete.
    pub(crate) fn exporter(&self) -> Option<[u8; 32]> {
        match &self.session {
            Session::Client(session) => session.exporter(CHANNEL_BINDING),
            Session::Server(session) => session.exporter(CHANNEL_BINDING),
        }
    }

    /// Key of the server, at a client.
    pub(crate) fn peer(&self) -> Option<Fingerprint> {
        match &self.session {
            Session::Client(session) => session.peer(),
            Session::Server(_) => None,
        }
    }

    /// Sends what is encrypted; `WouldBlock` while some of it is left.
    pub(crate) fn flush(&mut self, fd: impl AsFd) -> io::Result<()> {
        loop {
            if self.sent == self.outgoing.len() {
                self.outgoing = self.session.take_outgoing();
                self.sent = 0;
                if self.outgoing.is_empty() {
                    return Ok(());
                }
            }

            let sent = stream_io::send(&fd, self.outgoing.get(self.sent..).unwrap_or_default())?;
            self.sent += sent;
            self.moved.sent_bytes += sent as u64;
        }
    }

    /// Writes a part of a stream of bytes; what is encrypted and not yet sent counts as written.
    /// `WouldBlock` during the handshake.
    pub(crate) fn write(&mut self, fd: impl AsFd, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.flush(&fd)?;
        if self.is_handshaking() {
            return Err(ErrorKind::WouldBlock.into());
        }

        let mut written = 0;
        for part in parts {
            let len = part.len().min(WRITE_BYTES_MAX - written);
            self.session
                .send(part.get(..len).unwrap_or_default())
                .map_err(invalid)?;
            written += len;
        }

        if_ready(self.flush(&fd))?;
        Ok(written)
    }

    /// Reads a part of a stream of bytes; 0 at its end.
    pub(crate) fn read(&mut self, fd: impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
        let received = self.received(fd)?;
        let len = received.len().min(buffer.len());
        if let (Some(from), Some(to)) = (received.get(..len), buffer.get_mut(..len)) {
            to.copy_from_slice(from);
        }
        self.taken += len;
        Ok(len)
    }

    /// As [`Self::read`], without the bytes.
    pub(crate) fn skip(&mut self, fd: impl AsFd, len: usize) -> io::Result<usize> {
        let len = self.received(fd)?.len().min(len);
        self.taken += len;
        Ok(len)
    }

    /// What is read and not taken, after a read of the socket if there is nothing; empty at the end.
    fn received(&mut self, fd: impl AsFd) -> io::Result<&[u8]> {
        if !self.has_received() {
            self.received = Vec::new();
            self.taken = 0;
            let mut ciphertext = vec![0; READ_BYTES];
            let len = stream_io::recv(&fd, &mut ciphertext)?;
            if len == 0 {
                return Ok(&[]);
            }

            self.feed(ciphertext.get(..len).unwrap_or_default())?;
            if_ready(self.flush(&fd))?;
            if !self.has_received() {
                // A part of a record.
                return Err(ErrorKind::WouldBlock.into());
            }
        }

        Ok(self.received.get(self.taken..).unwrap_or_default())
    }

    /// Something is read and not taken.
    pub(crate) fn has_received(&self) -> bool {
        self.taken < self.received.len()
    }

    /// Takes the first bytes of the peer, which were read from the socket already.
    pub(crate) fn begin(&mut self, fd: impl AsFd, ciphertext: &[u8]) -> io::Result<()> {
        self.feed(ciphertext)?;
        if_ready(self.flush(fd)).map(drop)
    }

    /// Announces that nothing follows, if there is room for that.
    pub(crate) fn close(&mut self, fd: impl AsFd) {
        match &mut self.session {
            Session::Client(session) => session.close(),
            Session::Server(session) => session.close(),
        }
        let _ = self.flush(fd);
    }
}

/// The peer, or a bound of ours, ends the session.
#[expect(
    clippy::needless_pass_by_value,
    reason = "errors are passed by `map_err`"
)]
fn invalid(error: TlsError) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error.to_string())
}

impl Session {
    fn send(&mut self, plaintext: &[u8]) -> Result<(), TlsError> {
        match self {
            Self::Client(session) => session.send(plaintext),
            Self::Server(session) => session.send(plaintext),
        }
    }

    fn receive(&mut self, ciphertext: &[u8]) -> Result<(), TlsError> {
        match self {
            Self::Client(session) => session.receive(ciphertext),
            Self::Server(session) => session.receive(ciphertext),
        }
    }

    fn records_received(&self) -> u64 {
        match self {
            Self::Client(session) => session.records_received(),
            Self::Server(session) => session.records_received(),
        }
    }

    fn take_outgoing(&mut self) -> Vec<u8> {
        match self {
            Self::Client(session) => session.take_outgoing(),
            Self::Server(session) => session.take_outgoing(),
        }
    }

    fn take_received(&mut self) -> Vec<u8> {
        match self {
            Self::Client(session) => session.take_received(),
            Self::Server(session) => session.take_received(),
        }
    }
}
