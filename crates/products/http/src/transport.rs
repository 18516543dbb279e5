//! A blocking connection: reads and writes with deadlines.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Bytes per read.
const STEP_BYTES: usize = 16 * 1024;

/// A connection and its unparsed input.
#[derive(Debug)]
pub(crate) struct Transport {
    stream: TcpStream,
    pub(crate) buffer: Vec<u8>,
}

impl Transport {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    /// Appends received bytes to the buffer; `false` at the end of the stream.
    pub(crate) fn fill_or_end(&mut self, deadline: Instant) -> io::Result<bool> {
        let mut step = [0; STEP_BYTES];
        loop {
            self.stream.set_read_timeout(Some(left(deadline)?))?;
            match self.stream.read(&mut step) {
                Ok(read) => {
                    self.buffer
                        .extend_from_slice(step.get(..read).unwrap_or_default());
                    return Ok(read > 0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The kernel reports its timeout as `EAGAIN`.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Err(ErrorKind::TimedOut.into());
                }
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
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Err(ErrorKind::TimedOut.into());
                }
                Err(error) => return Err(error),
            }
        }

        Ok(())
    }
}

fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        Err(ErrorKind::TimedOut.into())
    } else {
        Ok(left)
    }
}
