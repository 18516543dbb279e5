//! One test of ndt7: a connection whose payload goes in one direction, with measurements of the
//! server beside it.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use linerate_engine::Interrupts;
use linerate_engine::dialect::native::client::Connection;
use linerate_model::path::{LoadControl, LoadDecision, LoadSample, PathDirection};
use linerate_sys::poll::{self, Interest};
use linerate_sys::tcp_info::tcp_info;
use linerate_sys::{clock, random, stream_io};
use linerate_web::wire::client::{Handshake, Report, TEXT_BYTES_MAX};
use linerate_web::wire::frame::{self, FrameReader, Message, Opcode};

/// Longest time for the response to the handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Longest time to the end of the connection after this end has closed it.
const CLOSE: Duration = Duration::from_secs(1);
/// Between two samples.
const STEP: Duration = Duration::from_millis(100);
/// Payload of a message of an upload.
const MESSAGE_BYTES: usize = 64 << 10;
const READ_BYTES: usize = 256 << 10;
/// Calls before time and signals are read again.
const CALLS: u32 = 16;
/// Measurements that are kept: ten a second, while the protocol has four.
const REPORTS_MAX: usize = 1_000;
/// Answers to pings that wait; further pings are not answered.
const PONGS_BYTES_MAX: usize = 4_096;

/// Why a test ended before its time.
pub(super) enum Failure {
    Interrupted,
    Failed(String),
}

/// What a test has moved and received.
#[derive(Default)]
pub(super) struct Transferred {
    /// Start of the data, monotonic ns; 0 before.
    pub started_ns: u64,
    pub samples: Vec<LoadSample>,
    /// Measurements of the server.
    pub reports: Vec<Report>,
}

/// The connection of a test.
pub(super) struct Transfer<'a> {
    connection: &'a Connection,
    direction: PathDirection,
    interrupts: &'a dyn Interrupts,
    reader: FrameReader,
    received_bytes: u64,
    /// Control frames that wait for the end of a message.
    control: Vec<u8>,
    /// The message that is sent over and over again, and how much of it is sent.
    message: Vec<u8>,
    sent: usize,
    is_over: bool,
    done: Transferred,
}

impl<'a> Transfer<'a> {
    pub(super) fn new(
        connection: &'a Connection,
        direction: PathDirection,
        interrupts: &'a dyn Interrupts,
    ) -> Self {
        // Equal bytes could be compressed on the way.
        let payload: Vec<u8> = (0..MESSAGE_BYTES / 16)
            .flat_map(|_| random::bytes::<16>())
            .collect();
        Self {
            connection,
            direction,
            interrupts,
            reader: FrameReader::of_server(TEXT_BYTES_MAX),
            received_bytes: 0,
            control: Vec::new(),
            message: frame::masked(Opcode::Binary, &payload, random::bytes()),
            sent: 0,
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
    ) -> (Transferred, Result<(), Failure>) {
        let ended = self.begin(authority).and_then(|early| {
            begun(control);
            self.done.started_ns = clock::monotonic_ns();
            self.feed(&early)?;
            self.transfer(control)
        });
        (self.done, ended)
    }

    /// The opening handshake; returns what arrived behind it.
    fn begin(&mut self, authority: &str) -> Result<Vec<u8>, Failure> {
        let test = match self.direction {
            PathDirection::Down => "download",
            PathDirection::Up => "upload",
        };
        let (handshake, request) = Handshake::new(test, authority, random::bytes());
        let end = Instant::now() + HANDSHAKE;
        // A new connection has room for a request.
        stream_io::send(&self.connection.fd, &request).map_err(failed)?;

        let (mut head, mut buffer) = (Vec::new(), [0; 4_096]);
        loop {
            let accepted = handshake.accept(&head);
            if let Some(len) = accepted.map_err(|error| Failure::Failed(error.to_string()))? {
                return Ok(head.split_off(len));
            }
            self.wait(Interest::READ, end, "the handshake was not answered")?;
            match stream_io::recv(&self.connection.fd, &mut buffer) {
                Ok(0) => {
                    return Err(Failure::Failed(
                        "the server closed the connection".to_owned(),
                    ));
                }
                Ok(len) => head.extend_from_slice(buffer.get(..len).unwrap_or_default()),
                Err(error) if is_transient(&error) => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }

    fn transfer(&mut self, control: &mut dyn LoadControl) -> Result<(), Failure> {
        let (started, is_up) = (Instant::now(), self.direction == PathDirection::Up);
        let acked = || {
            let info = tcp_info(&self.connection.fd).ok();
            info.and_then(|info| info.bytes_acked).unwrap_or(0)
        };
        let acked_before = if is_up { acked() } else { 0 };
        let share = MESSAGE_BYTES as f64 / self.message.len() as f64;
        let mut buffer = vec![0; READ_BYTES];

        let sample = |down_bytes: u64| {
            let acked_bytes = if is_up {
                acked().saturating_sub(acked_before)
            } else {
                0
            };
            LoadSample {
                at_ns: clock::as_ns(started.elapsed()),
                down_bytes,
                up_bytes: (acked_bytes as f64 * share) as u64,
                streams: 1,
            }
        };

        for step in 1.. {
            let due = started + STEP * step;
            while Instant::now() < due && !self.is_over {
                let is_blocked = !self.pump(&mut buffer)?;
                if is_blocked {
                    let interest = if is_up {
                        Interest::BOTH
                    } else {
                        Interest::READ
                    };
                    self.wait_until(interest, due)?;
                }
            }

            let sample = sample(self.received_bytes);
            self.done.samples.push(sample);
            if self.is_over || control.sample(&sample, None) == LoadDecision::End {
                break;
            }
        }

        self.close(&mut buffer)?;
        if is_up {
            // The last measurement of the server counts what was under way.
            self.done.samples.push(sample(self.received_bytes));
        }
        Ok(())
    }

    /// Ends the test in order: the last measurement of an upload comes meanwhile.
    fn close(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        let end = Instant::now() + CLOSE;
        // The end of a message that is under way comes before a control frame.
        self.control.extend(frame::masked(
            Opcode::Close,
            &frame::NORMAL.to_be_bytes(),
            random::bytes(),
        ));
        let is_under_way = |transfer: &Self| transfer.sent > 0 || !transfer.control.is_empty();
        self.write(false)?;
        while !self.is_over && Instant::now() < end {
            let may_write = is_under_way(self) && self.write(false)?;
            if self.direction == PathDirection::Down && !is_under_way(self) {
                return Ok(());
            }
            let may_read = self.read(buffer)?;
            if !may_write && !may_read {
                let interest = if is_under_way(self) {
                    Interest::BOTH
                } else {
                    Interest::READ
                };
                self.wait_until(interest, end)?;
            }
        }
        Ok(())
    }

    /// Moves what can be moved at once; false if both directions are blocked.
    fn pump(&mut self, buffer: &mut [u8]) -> Result<bool, Failure> {
        let is_up = self.direction == PathDirection::Up;
        let mut has_moved = false;
        for _ in 0..CALLS {
            let is_writing = is_up || !self.control.is_empty();
            let may_write = is_writing && self.write(is_up)?;
            let may_read = self.read(buffer)?;
            has_moved |= may_write || may_read;
            if (!may_write && !may_read) || self.is_over {
                break;
            }
        }
        Ok(has_moved)
    }

    /// One write: control frames between two messages, and of messages where they are the load the
    /// next part. False if nothing could be written.
    fn write(&mut self, is_load: bool) -> Result<bool, Failure> {
        let is_between = self.sent == 0;
        let bytes = match is_between && !self.control.is_empty() {
            true => &self.control[..],
            false if is_between && !is_load => return Ok(false),
            false => self.message.get(self.sent..).unwrap_or_default(),
        };
        match stream_io::send(&self.connection.fd, bytes) {
            Ok(len) if is_between && !self.control.is_empty() => {
                self.control.drain(..len.min(self.control.len()));
                Ok(true)
            }
            Ok(len) => {
                self.sent = (self.sent + len) % self.message.len();
                Ok(true)
            }
            Err(error) if is_transient(&error) => Ok(false),
            // A server may end the test at its time without reading what is under way.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
                ) =>
            {
                self.is_over = true;
                Ok(false)
            }
            Err(error) => Err(failed(error)),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<bool, Failure> {
        match stream_io::recv(&self.connection.fd, buffer) {
            Ok(0) => self.is_over = true,
            Ok(len) => self.feed(buffer.get(..len).unwrap_or_default())?,
            Err(error) if is_transient(&error) => return Ok(false),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => self.is_over = true,
            Err(error) => return Err(failed(error)),
        }
        Ok(true)
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let Self {
            reader,
            control,
            is_over,
            done,
            ..
        } = self;
        let read = reader.feed(bytes, |message| match message {
            Message::Text(text) if done.reports.len() < REPORTS_MAX => {
                done.reports.extend(Report::parse(&text));
            }
            Message::Ping(payload) if control.len() < PONGS_BYTES_MAX => {
                control.extend(frame::masked(Opcode::Pong, &payload, random::bytes()));
            }
            Message::Close => *is_over = true,
            _ => {}
        });
        self.received_bytes += read.map_err(|error| Failure::Failed(error.to_string()))?;
        Ok(())
    }

    /// Waits for the connection, at most until `end`.
    fn wait_until(&self, interest: Interest, end: Instant) -> Result<(), Failure> {
        let left = end.saturating_duration_since(Instant::now());
        let fds = [
            (self.connection.fd.as_fd(), interest),
            (self.interrupts.fd(), Interest::READ),
        ];
        // An interrupted wait is repeated by the caller.
        let [_, has_signal] = poll::wait_fds(fds, Some(left)).unwrap_or([false; 2]);
        match has_signal && self.interrupts.take().is_some() {
            true => Err(Failure::Interrupted),
            false => Ok(()),
        }
    }

    fn wait(&self, interest: Interest, end: Instant, otherwise: &str) -> Result<(), Failure> {
        match Instant::now() < end {
            true => self.wait_until(interest, end),
            false => Err(Failure::Failed(otherwise.to_owned())),
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "errors are passed by `map_err`"
)]
fn failed(error: io::Error) -> Failure {
    Failure::Failed(error.to_string())
}
