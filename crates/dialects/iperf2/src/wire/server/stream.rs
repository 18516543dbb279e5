//! A TCP connection seen from the server.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use linerate_model::workload::Workload;
use linerate_model::{Direction, EndCondition, Failure, TestSpec, Transport};

use super::{AcceptedTest, Policy, clocks_agree, closed, terminated};
use crate::wire::ack::{AckTimes, ServerAck};
use crate::wire::bounceback::{BounceHead, HEAD_LEN};
use crate::wire::header::{Header, Mode, TcpHeaderReader};
use crate::wire::machine::{Action, Input, machine};
use crate::wire::opening::{OPENING_LEN, Opening, recognise};
use crate::wire::settings::{bounce_spec, server_spec};
use crate::wire::stamp::Timestamp;
use crate::wire::take;

#[derive(Debug)]
enum Phase {
    /// Fewer than four bytes have come.
    Opening(Vec<u8>),
    /// A header is being read.
    Header(TcpHeaderReader),
    /// The first request of a bounce-back test is being read.
    Bounce(Vec<u8>),
    /// Data flow.
    Running,
    /// Ended; input is ignored.
    Closed,
}

/// Longest time that written data take to the client.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(60);

/// One TCP connection. Performs no I/O and reads no clock.
#[derive(Debug)]
pub struct StreamServer {
    policy: Policy,
    accepted_at: Timestamp,
    phase: Phase,
    is_receiving: bool,
    is_sending: bool,
    /// The client sends nothing more.
    has_ended: bool,
    /// Connection that begins when the client has finished.
    afterwards: Option<Action>,
    deadline: Option<Instant>,
    actions: VecDeque<Action>,
}

impl StreamServer {
    /// A connection that was accepted now; `clock` is this end's wall clock.
    pub fn new(now: Instant, clock: Timestamp, policy: Policy) -> Self {
        Self {
            accepted_at: clock,
            phase: Phase::Opening(Vec::new()),
            is_receiving: false,
            is_sending: false,
            has_ended: false,
            afterwards: None,
            deadline: now.checked_add(policy.handshake_timeout),
            actions: VecDeque::new(),
            policy,
        }
    }

    /// Most bytes the caller may read now; `None` when what arrives is data and belongs to it.
    pub fn wanted(&self) -> Option<usize> {
        match &self.phase {
            Phase::Opening(read) => Some(OPENING_LEN.saturating_sub(read.len())),
            Phase::Header(reader) => Some(reader.missing().unwrap_or(0)),
            Phase::Bounce(read) => Some(HEAD_LEN.saturating_sub(read.len())),
            // A client that only receives sends nothing but its end.
            Phase::Running if !self.is_receiving && !self.has_ended => Some(DISCARD_LEN),
            Phase::Running | Phase::Closed => None,
        }
    }

    /// Takes bytes of the connection, in pieces of any size; `clock` is this end's wall clock.
    /// Returns what is left: bytes behind the header are data.
    pub fn handle_bytes<'a>(&mut self, clock: Timestamp, bytes: &'a [u8]) -> &'a [u8] {
        let mut input = bytes;
        while !input.is_empty() {
            match &mut self.phase {
                Phase::Opening(read) => {
                    take(&mut input, read, OPENING_LEN);
                    self.look_at_opening();
                }
                Phase::Header(reader) => match reader.read(&mut input) {
                    Ok(None) => {}
                    Ok(Some((header, len))) => self.accept(clock, header, len),
                    Err(error) => self.refuse(error.to_string()),
                },
                Phase::Bounce(read) => {
                    take(&mut input, read, HEAD_LEN);
                    self.look_at_request();
                }
                Phase::Running if !self.is_receiving => input = &[],
                Phase::Running | Phase::Closed => return input,
            }
        }

        input
    }

    /// The client sends nothing more.
    pub fn handle_eof(&mut self, _now: Instant) {
        match &self.phase {
            Phase::Closed => {}
            Phase::Running => {
                self.is_receiving = false;
                self.has_ended = true;
                // With -r the server's turn begins when the client has finished.
                if let Some(back) = self.afterwards.take() {
                    self.push(back);
                }

                if !self.is_sending {
                    self.close(Ok(()));
                }
            }
            // Port scans and health checks look like this.
            Phase::Opening(read) if read.is_empty() => {
                self.close(Err(closed("the client sent nothing")));
            }
            Phase::Opening(_) | Phase::Header(_) | Phase::Bounce(_) => {
                self.close(Err(closed(
                    "the client closed the connection inside its header",
                )));
            }
        }
    }

    /// Takes what happened on this end.
    pub fn handle_local(&mut self, now: Instant, input: Input) {
        match (input, &self.phase) {
            (_, Phase::Closed) => {}
            (Input::SendingDone { .. }, Phase::Running) if self.is_sending => {
                self.is_sending = false;
                self.push(Action::FinishSending);

                // A client closes when it has received everything: then the time of the data is
                // known.
                if self.has_ended {
                    self.close(Ok(()));
                } else if !self.is_receiving {
                    self.deadline = now.checked_add(DELIVERY_TIMEOUT);
                }
            }
            (Input::SendingDone { .. }, _) => {}
            (Input::Interrupted, _) => self.close(Err(terminated())),
            (Input::Failed(failure), _) => self.close(Err(failure)),
            (Input::DataArrived | Input::DatagramArrived(_) | Input::LastArrived(_), _) => {}
        }
    }

    /// Takes the time, at or after [`Self::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }

        match self.phase {
            Phase::Running => self.close(Ok(())),
            _ => self.close(Err(closed("the client did not say in time what it wants"))),
        }
    }

    fn look_at_opening(&mut self) {
        let Phase::Opening(read) = &mut self.phase else {
            return;
        };
        match recognise(read) {
            Opening::NeedMore => {}
            Opening::Header => {
                let mut reader = TcpHeaderReader::default();
                match reader.read(&mut std::mem::take(read).as_slice()) {
                    Ok(_) => self.phase = Phase::Header(reader),
                    Err(error) => self.refuse(error.to_string()),
                }
            }
            Opening::BounceBack => self.phase = Phase::Bounce(std::mem::take(read)),
            opening @ (Opening::Legacy | Opening::Data) => self.accept_without_header(opening),
            Opening::Foreign => self.refuse("this is not iperf 2".to_owned()),
        }
    }

    fn look_at_request(&mut self) {
        let Phase::Bounce(read) = &mut self.phase else {
            return;
        };
        let Some(head) = read.first_chunk::<HEAD_LEN>() else {
            return;
        };
        match BounceHead::parse(head) {
            Ok(head) => {
                let received = std::mem::take(read);
                let test = AcceptedTest {
                    opening: Opening::BounceBack,
                    header: None,
                    payload_bytes: 0,
                    spec: bounce_spec(&head),
                    clocks_disagree: false,
                };
                self.begin(test, true, true);
                self.push(Action::StartBouncing { received });
            }
            Err(error) => self.refuse(error.to_string()),
        }
    }

    /// The peeked bytes are data like all that follow. The originals lose them.
    fn accept_without_header(&mut self, opening: Opening) {
        // The key travels in the header, so data without one cannot prove it.
        if self.policy.permit_key.is_some() {
            return self.refuse(NO_PERMIT.to_owned());
        }

        let mut spec = TestSpec {
            // Nothing names an amount: the client ends the test by closing.
            end: EndCondition::Unlimited,
            ..TestSpec::default()
        };
        spec.workload.without_header = true;

        let test = AcceptedTest {
            opening,
            header: None,
            payload_bytes: OPENING_LEN,
            spec,
            clocks_disagree: false,
        };
        self.begin(test, true, false);
        self.push(Action::StartReceiving { header_bytes: 0 });
    }

    fn accept(&mut self, clock: Timestamp, mut header: Header, payload_bytes: usize) {
        if !self.policy.permits(header.permit_key.as_deref()) {
            return self.refuse(NO_PERMIT.to_owned());
        }

        let clocks_disagree = header.trip_times && !clocks_agree(header.start, clock);
        let wants_ack = header.wants_ack();

        // Three times let the client estimate the offset of the clocks.
        let times = (header.trip_times).then(|| AckTimes {
            sent: header.start.unwrap_or_default(),
            accepted: self.accepted_at,
            answered: clock,
        });
        // The client names the port, so connecting back is the choice of the operator.
        if header.mode.connects_back() && !self.policy.may_connect_back {
            header.mode = Mode::Forward;
        }

        let mut spec = server_spec(&header, Transport::Tcp);
        // The data are framed all the same, so only the judgement changes.
        spec.workload.trip_times &= !clocks_disagree;
        let mode = header.mode;
        let back = mode.connects_back().then(|| connect_back(&header, &spec));
        // The receiver of framed data learns the frame settings from a header.
        let own_header = (mode == Mode::Reverse && header.frames_tcp_data())
            .then(|| answer_header(&header, &self.policy, clock));

        let test = AcceptedTest {
            opening: Opening::Header,
            header: Some(header),
            payload_bytes,
            spec,
            clocks_disagree,
        };
        self.begin(test, mode.client_sends(), mode.server_sends());

        if wants_ack {
            let version = self.policy.version;
            self.push(Action::Send(ServerAck { version, times }.emit()));
        }

        if mode.client_sends() {
            self.push(Action::StartReceiving { header_bytes: 0 });
        }

        if let Some(header) = own_header {
            self.push(Action::SendPayload(header.emit_tcp()));
        }

        if mode.server_sends() {
            self.push(Action::StartSending);
        }

        match (mode, back) {
            (Mode::Dual, Some(back)) => self.push(back),
            (Mode::TradeOff, back) => self.afterwards = back,
            _ => {}
        }
    }

    fn begin(&mut self, test: AcceptedTest, is_receiving: bool, is_sending: bool) {
        self.push(Action::Accepted(Box::new(test)));
        self.phase = Phase::Running;
        self.is_receiving = is_receiving;
        self.is_sending = is_sending;
        self.deadline = None;
    }

    fn refuse(&mut self, message: String) {
        self.close(Err(crate::wire::client::failure(message)));
    }
}

machine!(StreamServer, phase = Phase::Closed);

/// The header before a server's framed data.
fn answer_header(asked: &Header, policy: &Policy, clock: Timestamp) -> Header {
    Header {
        trip_times: asked.trip_times,
        isochronous: asked.isochronous,
        bursts: asked.bursts,
        start: Some(clock),
        ..Header::new(policy.version, asked.port, asked.amount)
    }
}

fn connect_back(header: &Header, spec: &TestSpec) -> Action {
    let mut spec = spec.clone();
    spec.direction = Direction::Forward;
    spec.workload = Workload::default();
    spec.workload.without_header = true;

    Action::ConnectBack {
        port: header.port,
        spec: Some(Box::new(spec)),
    }
}

const NO_PERMIT: &str = "the client does not know the permit key";
/// Size of reads from a client that only receives.
const DISCARD_LEN: usize = 4096;
