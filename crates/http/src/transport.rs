//! A blocking connection: reads and writes with deadlines, bodies with limits.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::message::body::{BodyError, BodyReader};
use crate::message::framing::BodyFraming;

/// Bytes per read.
const STEP_BYTES: usize = 16 * 1024;

/// A connection and its unparsed input.
#[derive(Debug)]
pub(crate) struct Transport {
    stream: TcpStream,
    pub(crate) buffer: Vec<u8>,
}

/// Why a body cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransferError {
    #[error(transparent)]
    Body(#[from] BodyError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Transport {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    /// Appends received bytes to the buffer. The end of the stream is an error.
    pub(crate) fn fill(&mut self, deadline: Instant) -> io::Result<()> {
        match self.fill_or_end(deadline)? {
            true => Ok(()),
            false => Err(ErrorKind::UnexpectedEof.into()),
        }
    }

    /// As [`Self::fill`]; `false` at the end of the stream.
    pub(crate) fn fill_or_end(&mut self, deadline: Instant) -> io::Result<bool> {
        let mut step = [0; STEP_BYTES];
        loop {
            self.stream.set_read_timeout(Some(left(deadline)?))?;
            match self.stream.read(&mut step) {
                Ok(read) => {
                    self.buffer.extend_from_slice(step.get(..read).unwrap_or_default());
                    return Ok(read > 0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The kernel reports its timeout as `EAGAIN`.
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends all of it.
    pub(crate) fn send(&mut self, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            self.stream.set_write_timeout(Some(left(deadline)?))?;
            match self.stream.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads a body of at most `bytes_max` bytes.
    pub(crate) fn body(
        &mut self,
        framing: BodyFraming,
        bytes_max: u64,
        deadline: Instant,
    ) -> Result<Vec<u8>, TransferError> {
        let (mut reader, mut body) = (BodyReader::new(framing, bytes_max)?, Vec::new());
        loop {
            let (used, is_end) = reader.read(&self.buffer, bytes_max, |payload| body.extend_from_slice(payload))?;
            self.buffer.drain(..used);
            if is_end {
                return Ok(body);
            }
            if !self.fill_or_end(deadline)? {
                let is_complete = reader.ends_with_connection();
                return is_complete.then_some(body).ok_or_else(|| io::Error::from(ErrorKind::UnexpectedEof).into());
            }
        }
    }

    /// Whether the other end has closed, without waiting. Received data stays in the socket.
    pub(crate) fn is_closed(&self) -> bool {
        let waited = self.stream.set_read_timeout(Some(Duration::from_millis(1)));
        match waited.and_then(|()| self.stream.peek(&mut [0])) {
            Ok(read) => read == 0,
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted),
        }
    }

    /// Closes after the last response has arrived: closing with unread data would reset the connection.
    pub(crate) fn close(mut self, deadline: Instant) {
        const UNREAD_BYTES_MAX: usize = 1 << 20;
        let mut read = 0;
        if self.stream.shutdown(std::net::Shutdown::Write).is_ok() {
            while read < UNREAD_BYTES_MAX && self.fill_or_end(deadline).unwrap_or(false) {
                read += self.buffer.len();
                self.buffer.clear();
            }
        }
    }
}

fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}
