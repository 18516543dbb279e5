//! A TCP connection seen from the client.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use linerate_model::{Failure, FailureKind};

use crate::wire::ack::{ACK_LEN, ServerAck, TIMED_ACK_LEN};
use crate::wire::header::{Header, Mode, TcpHeaderReader};
use crate::wire::machine::{Action, Input, machine};
use crate::wire::stamp::Timestamp;
use crate::wire::take;

/// Longest wait for a server's answer. The originals wait for ever.
pub const ACK_TIMEOUT: Duration = Duration::from_secs(4);
/// Time a receiver is given beyond the test's, and shortest time for what the server still sends.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest wait for the header before a server's framed data.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// Setup of a client's connection.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamClientSetup {
    /// The header; `None` sends data without one (`-C`, and connections back).
    pub header: Option<Header>,
    /// Time limit of the test.
    pub time_limit: Option<Duration>,
}

/// State of the input and its meaning.
#[derive(Debug)]
enum Incoming {
    /// The server's answer; data wait for it.
    Ack(Vec<u8>),
    /// The header of a server that frames its data.
    Header(TcpHeaderReader),
    /// Data; they belong to the caller.
    Data,
    /// An unexpected answer, until the server closes. Left unread it would turn our close into a
    /// reset.
    Discard,
    /// The server has closed.
    Ended,
}

/// One TCP connection. Performs no I/O and reads no clock.
#[derive(Debug)]
pub struct StreamClient {
    setup: StreamClientSetup,
    incoming: Incoming,
    is_sending: bool,
    is_closed: bool,
    deadline: Option<Instant>,
    actions: VecDeque<Action>,
}

impl StreamClient {
    /// An open connection. The first action sends the header, if there is one.
    pub fn new(now: Instant, setup: StreamClientSetup) -> Self {
        let mut client = Self {
            incoming: Incoming::Discard,
            is_sending: false,
            is_closed: false,
            deadline: None,
            actions: VecDeque::new(),
            setup,
        };
        let header = client.setup.header.as_ref();
        let detects_peer = header.is_some_and(|header| header.detect_peer);

        if let Some(header) = header {
            client
                .actions
                .push_back(Action::SendPayload(header.emit_tcp()));
        }

        if detects_peer {
            client.incoming = Incoming::Ack(Vec::new());
            // Data wait: without an answer this end would not know the release of the server.
            client.deadline = now.checked_add(ACK_TIMEOUT);
        } else {
            client.begin(now);
        }

        client
    }

    /// Most bytes the caller may read now; `None` when what arrives is data and belongs to it.
    pub fn wanted(&self) -> Option<usize> {
        match &self.incoming {
            Incoming::Ack(read) => Some(self.ack_len().saturating_sub(read.len())),
            Incoming::Header(reader) => Some(reader.missing().unwrap_or(0)),
            Incoming::Discard => Some(DISCARD_LEN),
            Incoming::Data | Incoming::Ended => None,
        }
    }

    /// Takes bytes of the connection, in pieces of any size; `clock` is this end's wall clock.
    /// Returns what is left: bytes behind the server's header are data.
    pub fn handle_bytes<'a>(
        &mut self,
        now: Instant,
        clock: Timestamp,
        bytes: &'a [u8],
    ) -> &'a [u8] {
        let mut input = bytes;
        while !input.is_empty() && !self.is_closed {
            match &mut self.incoming {
                Incoming::Ack(_) => self.read_ack(now, clock, &mut input),
                Incoming::Header(reader) => match reader.read(&mut input) {
                    Ok(None) => {}
                    Ok(Some((_, header_bytes))) => {
                        self.incoming = Incoming::Data;
                        self.push(Action::StartReceiving { header_bytes });
                        self.set_receive_limit(now);
                    }
                    Err(error) => self.fail(format!("the server's header is not valid: {error}")),
                },
                // Read all the same: unread bytes would turn our close into a reset.
                Incoming::Discard => input = &[],
                Incoming::Data | Incoming::Ended => return input,
            }
        }

        input
    }

    /// The server sends nothing more.
    pub fn handle_eof(&mut self, _now: Instant) {
        if self.is_closed {
            return;
        }

        match std::mem::replace(&mut self.incoming, Incoming::Ended) {
            Incoming::Ack(_) => {
                self.fail("the server closed the connection instead of answering".to_owned());
            }
            Incoming::Header(_) => {
                self.fail("the server closed the connection before its data".to_owned());
            }
            Incoming::Data | Incoming::Discard | Incoming::Ended if !self.is_sending => {
                self.close(Ok(()));
            }
            Incoming::Data | Incoming::Discard | Incoming::Ended => {}
        }
    }

    /// Takes what happened on this end.
    pub fn handle_local(&mut self, now: Instant, input: Input) {
        match input {
            _ if self.is_closed => {}
            Input::SendingDone { .. } => self.finish_sending(now),
            // A receiver has nothing to finish; a sender finishes as at the end of its time.
            Input::Interrupted if self.is_sending => self.finish_sending(now),
            Input::Interrupted => self.close(Ok(())),
            Input::Failed(failure) => self.close(Err(failure)),
            Input::DataArrived | Input::DatagramArrived(_) | Input::LastArrived(_) => {}
        }
    }

    /// Takes the time, at or after [`Self::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }

        match self.incoming {
            Incoming::Ack(_) => self.fail(NO_ACK.to_owned()),
            Incoming::Header(_) => self.fail("the server did not begin to send".to_owned()),
            // A server that does not stop in time has been measured long enough.
            Incoming::Data | Incoming::Discard | Incoming::Ended => self.close(Ok(())),
        }
    }

    /// Data begin to flow.
    fn begin(&mut self, now: Instant) {
        self.deadline = None;
        let (mode, is_framed) = match &self.setup.header {
            Some(header) => (header.mode, header.frames_tcp_data()),
            None => (Mode::Forward, false),
        };
        if mode.client_sends() {
            self.is_sending = true;
            self.push(Action::StartSending);
        }

        if !mode.server_sends() {
            self.incoming = Incoming::Discard;
        // Only here the server sends a header; on a shared socket its data come without.
        } else if is_framed && mode == Mode::Reverse {
            self.incoming = Incoming::Header(TcpHeaderReader::default());
            self.deadline = now.checked_add(HEADER_TIMEOUT);
        } else {
            self.incoming = Incoming::Data;
            self.push(Action::StartReceiving { header_bytes: 0 });
            self.set_receive_limit(now);
        }
    }

    fn read_ack(&mut self, now: Instant, clock: Timestamp, input: &mut &[u8]) {
        let len = self.ack_len();
        let Incoming::Ack(read) = &mut self.incoming else {
            return;
        };
        // The answer may arrive in pieces.
        take(input, read, len);

        if read.len() < len {
            return;
        }

        let Some(ack) = ServerAck::parse(read) else {
            return self.fail("the server's answer is not valid".to_owned());
        };
        self.push(Action::ServerAck(ack));

        if let Some(times) = ack.times {
            self.push(Action::ClockCheck(times.clock_check(clock)));
        }

        self.begin(now);
    }

    fn ack_len(&self) -> usize {
        let timed = self
            .setup
            .header
            .as_ref()
            .is_some_and(|header| header.trip_times);
        if timed { TIMED_ACK_LEN } else { ACK_LEN }
    }

    fn finish_sending(&mut self, now: Instant) {
        if !self.is_sending {
            return;
        }

        self.is_sending = false;
        self.push(Action::FinishSending);

        if matches!(self.incoming, Incoming::Ended) {
            self.close(Ok(()));
        } else {
            let limit = self.setup.time_limit.unwrap_or_default().max(DRAIN_TIMEOUT);
            self.deadline = now.checked_add(limit);
        }
    }

    fn set_receive_limit(&mut self, now: Instant) {
        self.deadline = self
            .setup
            .time_limit
            .and_then(|limit| now.checked_add(limit + DRAIN_TIMEOUT));
    }

    fn fail(&mut self, message: String) {
        if !self.is_closed {
            self.close(Err(failure(message)));
        }
    }
}

machine!(StreamClient, is_closed = true);

pub(crate) fn failure(message: String) -> Failure {
    Failure::new(FailureKind::Error, message)
}

/// Size of reads of an unexpected answer.
const DISCARD_LEN: usize = 4096;
const NO_ACK: &str = "the server did not answer; releases before 2.0.14 never do";
