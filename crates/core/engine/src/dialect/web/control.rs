//! The control connection of a page: echoes, and its result.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use linerate_sys::sockopt;
use linerate_web::wire::frame::{self, FrameReader, Message, Opcode};
use linerate_web::wire::page::MESSAGE_BYTES_MAX;

use crate::layer::Layer;
use crate::wait::if_ready;

/// An open one.
pub(super) struct Control {
    pub fd: OwnedFd,
    layer: Layer,
    reader: FrameReader,
    /// Bytes that arrived with the request.
    early: Vec<u8>,
    messages: u64,
    second: (Instant, u32),
    pub is_closed: bool,
}

/// Bytes that are read in one turn.
const TURN_BYTES: usize = 4096;
/// Messages per second; a page sends 20.
const MESSAGES_PER_S_MAX: u32 = 200;
/// Longest message that is sent back.
const ECHO_BYTES_MAX: usize = 125;

impl Control {
    pub(super) fn new(fd: OwnedFd, layer: Layer, early: Vec<u8>) -> Self {
        // An echo leaves when it is written.
        let _ = sockopt::TCP_NODELAY.set(&fd, true);
        Self {
            fd,
            layer,
            reader: FrameReader::keeping(MESSAGE_BYTES_MAX),
            early,
            messages: 0,
            second: (Instant::now(), 0),
            is_closed: false,
        }
    }

    /// Reads what has arrived, and sends echoes back. Returns text. Nothing is read while something
    /// waits to be sent, so that a page that does not read cannot fill the memory.
    pub(super) fn advance(&mut self) -> Vec<Vec<u8>> {
        let mut texts = Vec::new();
        let advanced = self.read(&mut texts);
        self.is_closed |= if_ready(advanced).is_err();
        texts
    }

    fn read(&mut self, texts: &mut Vec<Vec<u8>>) -> io::Result<()> {
        self.layer.flush(&self.fd)?;
        if self.has_unsent() {
            return Ok(());
        }

        let early = std::mem::take(&mut self.early);
        self.feed(&early, texts);
        let mut buffer = [0; TURN_BYTES];
        loop {
            match self.layer.recv(&self.fd, &mut buffer)? {
                0 => self.is_closed = true,
                len => self.feed(buffer.get(..len).unwrap_or_default(), texts),
            }
            if self.is_closed || self.has_unsent() || !self.layer.has_received() {
                return Ok(());
            }
        }
    }

    fn feed(&mut self, bytes: &[u8], texts: &mut Vec<Vec<u8>>) {
        let mut replies = Vec::new();
        let mut is_closed = false;
        let mut count = 0;
        let fed = self.reader.feed(bytes, |message| {
            count += 1;
            match message {
                Message::Binary(echo) if echo.len() <= ECHO_BYTES_MAX => {
                    replies.extend(frame::message(Opcode::Binary, &echo));
                }
                Message::Binary(_) => is_closed = true,
                Message::Text(text) => texts.push(text),
                Message::Ping(payload) => replies.extend(frame::message(Opcode::Pong, &payload)),
                Message::Close => is_closed = true,
            }
        });

        if !replies.is_empty() {
            self.send(&replies);
        }
        self.messages += u64::from(count);
        match fed {
            Err(error) => self.close(error.close_code(), &error.to_string()),
            Ok(_) if is_closed => self.close(frame::NORMAL, ""),
            // Policy violation (RFC 6455, section 7.4.1).
            Ok(_) if self.is_flooded(count) => self.close(1008, "too many messages"),
            Ok(_) => {}
        }
    }

    fn is_flooded(&mut self, count: u32) -> bool {
        let (since, messages) = &mut self.second;
        if since.elapsed() >= Duration::from_secs(1) {
            *since = Instant::now();
            *messages = 0;
        }
        *messages += count;
        *messages > MESSAGES_PER_S_MAX
    }

    /// Messages of the page so far.
    pub(super) fn messages(&self) -> u64 {
        self.messages
    }

    pub(super) fn has_unsent(&self) -> bool {
        self.layer.has_unsent()
    }

    pub(super) fn send(&mut self, message: &[u8]) {
        // A failure shows at the next read.
        let _ = self.layer.queue(&self.fd, message);
    }

    /// Sends the last message.
    pub(super) fn close(&mut self, code: u16, reason: &str) {
        if !self.is_closed {
            self.send(&frame::close(code, reason));
            self.layer.close(&self.fd);
            self.is_closed = true;
        }
    }
}
