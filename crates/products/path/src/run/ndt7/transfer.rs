//! One test of ndt7: a connection whose payload goes in one direction, with measurements of the
//! server beside it.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use linerate_engine::dialect::native::client::Connection;
use linerate_engine::{ClientLayer, Interrupts};
use linerate_model::path::{LoadControl, LoadDecision, LoadSample, PathDirection};
use linerate_sys::poll::{self, Interest};
use linerate_sys::tcp_info::tcp_info;
use linerate_sys::{clock, random};
use linerate_web::wire::client::{Handshake, TEXT_BYTES_MAX};
use linerate_web::wire::frame::{self, FrameReader, Message, Opcode};
use linerate_web::wire::measurement::Measurement;

use crate::run::side_measures::{Ended, failed};

/// Longest time for the response to the handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Longest time to the end of the connection after this end has closed it.
const CLOSE: Duration = Duration::from_secs(1);
/// Between two samples.
const STEP: Duration = Duration::from_millis(100);
/// Payload of a message of an upload.
const MESSAGE_BYTES: usize = 64 << 10;
const READ_BYTES: usize = 256 << 10;
/// Plaintext of a record of TLS 1.3, and what it has besides (RFC 8446, section 5.2).
const RECORD_BYTES: f64 = 16_384.0;
const RECORD_HEAD_BYTES: f64 = 22.0;
/// Calls before time and signals are read again.
const CALLS: u32 = 16;
/// Measurements that are kept: ten a second, while the protocol has four.
const REPORTS_MAX: usize = 1_000;
/// Answers to pings that wait; further pings are not answered.
const PONGS_BYTES_MAX: usize = 4_096;

/// What a test has moved and received.
#[derive(Default)]
pub(super) struct Transferred {
    /// Start of the data, monotonic ns; 0 before.
    pub started_ns: u64,
    pub samples: Vec<LoadSample>,
    /// Measurements of the server.
    pub reports: Vec<Measurement>,
}

/// The connection of a test.
pub(super) struct Transfer<'a> {
    connection: &'a Connection,
    layer: &'a mut ClientLayer,
    is_up: bool,
    interrupts: &'a dyn Interrupts,
    reader: FrameReader,
    buffer: Vec<u8>,
    received_bytes: u64,
    /// Control frames that wait for the end of a message.
    control: Vec<u8>,
    /// The message that is sent over and over again, and how much of it is sent.
    message: Vec<u8>,
    sent: usize,
    /// This end has sent its close frame, or is about to.
    is_closing: bool,
    is_over: bool,
    done: Transferred,
}

impl<'a> Transfer<'a> {
    pub(super) fn new(
        (connection, layer): (&'a Connection, &'a mut ClientLayer),
        direction: PathDirection,
        interrupts: &'a dyn Interrupts,
    ) -> Self {
        // Equal bytes could be compressed on the way.
        let payload: Vec<u8> = (0..MESSAGE_BYTES / 16)
            .flat_map(|_| random::bytes::<16>())
            .collect();
        Self {
            connection,
            layer,
            is_up: direction == PathDirection::Up,
            interrupts,
            reader: FrameReader::of_server(TEXT_BYTES_MAX),
            buffer: vec![0; READ_BYTES],
            received_bytes: 0,
            control: Vec::new(),
            message: frame::masked(Opcode::Binary, &payload, random::bytes()),
            sent: 0,
            is_closing: false,
            is_over: false,
            done: Transferred::default(),
        }
    }

    /// Begins the test and moves data until `control` or the server ends it. `begun` is called when
    /// the data starts.
    pub(super) fn run<C: LoadControl>(
        mut self,
        authority: &str,
        control: &mut C,
        begun: &mut dyn FnMut(&mut C),
    ) -> (Transferred, Result<(), Ended>) {
        let ended = self.begin(authority).and_then(|early| {
            begun(control);
            self.done.started_ns = clock::monotonic_ns();
            self.feed(&early)?;
            self.transfer(control)
        });
        (self.done, ended)
    }

    /// The opening handshake; returns what arrived behind it.
    fn begin(&mut self, authority: &str) -> Result<Vec<u8>, Ended> {
        let test = if self.is_up { "upload" } else { "download" };
        let (handshake, request) = Handshake::new(test, authority, random::bytes());
        let end = Instant::now() + HANDSHAKE;
        // A new connection has room for a request.
        self.layer
            .send(&self.connection.fd, &request)
            .map_err(failed)?;

        let mut head = Vec::new();
        loop {
            let accepted = handshake.accept(&head);
            if let Some(len) = accepted.map_err(|error| Ended::Failed(error.to_string()))? {
                return Ok(head.split_off(len));
            }
            if Instant::now() >= end {
                let reason = "the handshake was not answered".to_owned();
                return Err(Ended::Failed(reason));
            }
            match self.layer.recv(&self.connection.fd, &mut self.buffer) {
                Ok(0) => {
                    let reason = "the server closed the connection".to_owned();
                    return Err(Ended::Failed(reason));
                }
                Ok(len) => head.extend_from_slice(self.buffer.get(..len).unwrap_or_default()),
                Err(error) => {
                    self.on_error(error)?;
                    self.wait_until(Interest::READ, end)?;
                }
            }
        }
    }

    fn transfer(&mut self, control: &mut dyn LoadControl) -> Result<(), Ended> {
        let started = Instant::now();
        let is_up = self.is_up;
        let connection = self.connection;
        let acked = || {
            let info = tcp_info(&connection.fd).ok().filter(|_| is_up);
            info.and_then(|info| info.bytes_acked).unwrap_or(0)
        };
        let acked_before = acked();
        let of_records = match self.layer.is_tls() {
            true => RECORD_BYTES / (RECORD_BYTES + RECORD_HEAD_BYTES),
            false => 1.0,
        };
        let share = MESSAGE_BYTES as f64 / self.message.len() as f64 * of_records;
        let sample = |down_bytes| LoadSample {
            at_ns: clock::as_ns(started.elapsed()),
            down_bytes,
            up_bytes: (acked().saturating_sub(acked_before) as f64 * share) as u64,
            streams: 1,
        };

        for step in 1.. {
            self.pump_until(started + STEP * step)?;
            let sample = sample(self.received_bytes);
            self.done.samples.push(sample);
            if self.is_over || control.sample(&sample, None) == LoadDecision::End {
                break;
            }
        }

        // The end of a message that is under way comes before a control frame.
        let code = frame::NORMAL.to_be_bytes();
        self.control
            .extend(frame::masked(Opcode::Close, &code, random::bytes()));
        self.is_closing = true;
        self.pump_until(Instant::now() + CLOSE)?;
        if is_up {
            // The last measurement of the server counts what was under way.
            self.done.samples.push(sample(self.received_bytes));
        }
        Ok(())
    }

    /// Moves data until this time, or to the end of the test. The last measurement of an upload
    /// comes behind the close frame of this end.
    fn pump_until(&mut self, end: Instant) -> Result<(), Ended> {
        while Instant::now() < end && !self.is_over {
            let mut calls = 0..CALLS;
            let mut has_moved = true;
            while has_moved && !self.is_over && calls.next().is_some() {
                has_moved = self.write()? | self.read()?;
            }

            let is_writing = self.sent > 0 || !self.control.is_empty() || self.layer.has_unsent();
            if self.is_closing && !self.is_up && !is_writing {
                return Ok(());
            }
            if !has_moved {
                let interest = if is_writing || self.is_up && !self.is_closing {
                    Interest::BOTH
                } else {
                    Interest::READ
                };
                self.wait_until(interest, end)?;
            }
        }
        Ok(())
    }

    /// One write: control frames between two messages, and of messages where they are the load the
    /// next part. False if nothing could be written.
    fn write(&mut self) -> Result<bool, Ended> {
        let is_control = self.sent == 0 && !self.control.is_empty();
        let bytes = match is_control {
            true => &self.control[..],
            false if self.sent == 0 && (!self.is_up || self.is_closing) => {
                let flushed = self.layer.flush(&self.connection.fd);
                return flushed.map_or_else(|error| self.on_error(error), |()| Ok(false));
            }
            false => self.message.get(self.sent..).unwrap_or_default(),
        };
        match self.layer.send(&self.connection.fd, bytes) {
            Ok(len) if is_control => drop(self.control.drain(..len)),
            Ok(len) => self.sent = (self.sent + len) % self.message.len(),
            Err(error) => return self.on_error(error),
        }
        Ok(true)
    }

    fn read(&mut self) -> Result<bool, Ended> {
        match self.layer.recv(&self.connection.fd, &mut self.buffer) {
            Ok(0) => self.is_over = true,
            Ok(len) => {
                let buffer = std::mem::take(&mut self.buffer);
                let fed = self.feed(buffer.get(..len).unwrap_or_default());
                self.buffer = buffer;
                fed?;
            }
            Err(error) => return self.on_error(error),
        }
        Ok(true)
    }

    /// False where the connection is not ready. A server may end the test at its time without
    /// reading what is under way.
    fn on_error(&mut self, error: io::Error) -> Result<bool, Ended> {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(false),
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset if self.done.started_ns > 0 => {
                self.is_over = true;
                Ok(false)
            }
            _ => Err(failed(error)),
        }
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), Ended> {
        let reports = &mut self.done.reports;
        let control = &mut self.control;
        let is_over = &mut self.is_over;
        let read = self.reader.feed(bytes, |message| match message {
            Message::Text(text) if reports.len() < REPORTS_MAX => {
                reports.extend(Measurement::parse(&text));
            }
            Message::Ping(payload) if control.len() < PONGS_BYTES_MAX => {
                control.extend(frame::masked(Opcode::Pong, &payload, random::bytes()));
            }
            Message::Close => *is_over = true,
            _ => {}
        });
        self.received_bytes += read.map_err(|error| Ended::Failed(error.to_string()))?;
        Ok(())
    }

    /// Waits for the connection, at most until `end`.
    fn wait_until(&self, interest: Interest, end: Instant) -> Result<(), Ended> {
        let left = end.saturating_duration_since(Instant::now());
        let fds = [
            (self.connection.fd.as_fd(), interest),
            (self.interrupts.fd(), Interest::READ),
        ];
        // An interrupted wait is repeated by the caller.
        let [_, has_signal] = poll::wait_fds(fds, Some(left)).unwrap_or([false; 2]);
        if has_signal && self.interrupts.take().is_some() {
            Err(Ended::Interrupted)
        } else {
            Ok(())
        }
    }
}
