//! The stream of readings, seen from the client.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use linerate_model::http::Reading;

use super::client::{ControlError, text};
use super::transport::Transport;
use crate::message::chunked::Decoder;

/// Longest line of a stream of readings.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Readings of a server as they are made.
#[derive(Debug)]
pub struct Samples {
    server: SocketAddr,
    transport: Transport,
    decoder: Decoder,
    lines: Vec<u8>,
}

impl Samples {
    /// Behind the head of an answer in chunks.
    pub(super) fn new(server: SocketAddr, transport: Transport) -> Self {
        Self {
            server,
            transport,
            decoder: Decoder::new(),
            lines: Vec::new(),
        }
    }

    /// The next reading; `None` when the server ended the stream or none came within `patience`.
    ///
    /// # Errors
    /// When the connection is lost, or what comes is no reading.
    pub fn next_within(&mut self, patience: Duration) -> Result<Option<Reading>, ControlError> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(end) = self.lines.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.lines.drain(..=end).collect();
                let reading = serde_json::from_slice(&line);
                return reading
                    .map(Some)
                    .map_err(|error| ControlError::Foreign(error.to_string()));
            }
            if self.lines.len() > LINE_BYTES_MAX {
                return Err(ControlError::Foreign("a reading does not end".to_owned()));
            }
            let moved = self.transport.next_chunks(&mut self.decoder, &mut self.lines);
            let is_end = moved.map_err(|error| ControlError::Foreign(error.to_string()))?;
            if self.lines.contains(&b'\n') {
                continue;
            }
            if is_end {
                return Ok(None);
            }
            match self.transport.fill(deadline) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(None),
                Err(error) => {
                    return Err(ControlError::Lost {
                        server: self.server,
                        why: text(&error),
                    });
                }
            }
        }
    }
}
