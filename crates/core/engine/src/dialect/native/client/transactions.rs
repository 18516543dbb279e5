//! Requests and responses: one outstanding on each connection, or a new connection for each, at
//! once or on a schedule.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::time::Duration;

use linerate_model::path::{PhaseKind, PhaseSpec, ProbeSample, TransactionSpec};
use linerate_native::wire::stream_head::{ANSWER_LEN, StreamHead, StreamKind};
use linerate_sys::poll::{Epoll, Interest};
use linerate_sys::{clock, socket, stream_io};

use super::event_loop::EventLoop;
use super::prober::{ProbeTarget, sample};
use super::{NativeClient, NativeError, is_refusal};
use crate::data::pacing::Schedule;
use crate::wait::{if_ready, time_until};

/// Kind of transactions.
pub(super) struct TransactionPlan {
    kind: PhaseKind,
    target: ProbeTarget,
    token: [u8; 16],
    flows: u32,
    duration: Duration,
    /// Connections that may be open at the same time.
    connections_max: usize,
    /// A request as it is sent.
    request: Vec<u8>,
    response_bytes: usize,
}

/// Completed transactions.
#[derive(Default)]
pub(super) struct Transacted {
    /// All transactions, failed ones as well, up to [`SAMPLES_MAX`].
    pub samples: Vec<ProbeSample>,
    /// Those with a response.
    pub completed: u64,
    /// Connections that the server closed before it answered.
    pub refused: u64,
    /// Why this host began fewer.
    pub notes: Vec<String>,
}

/// Connections that are open, and what they have done.
struct Exchange<'a> {
    plan: &'a TransactionPlan,
    open: BTreeMap<u64, Connection>,
    done: Transacted,
    buffer: Vec<u8>,
}

/// A connection of one flow.
struct Connection {
    fd: OwnedFd,
    since_ns: u64,
    /// Head of the stream and first request, until both are sent.
    opening: Vec<u8>,
    /// Bytes of the opening, or of the request, that are sent.
    sent: usize,
    /// Bytes of the response, and of the answer to the head, that are missing.
    missing: usize,
    is_connecting: bool,
    /// Readiness that the event loop waits for.
    interest: Interest,
}

/// How a transaction ended.
#[derive(PartialEq, Eq)]
enum Outcome {
    Complete,
    Failed,
    Refused,
}

/// Connections that may be open at the same time, where the server allows as many.
const OPEN_MAX: usize = 10_000;
/// Samples that are kept.
const SAMPLES_MAX: usize = 1_000_000;
/// Largest request and response.
const BYTES_MAX: u32 = 1 << 20;
/// Most bytes of responses that one call reads.
const BUFFER_BYTES: usize = 16 * 1024;
/// Longest wait for the answers that are missing at the end of a schedule.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// Connections that are begun before answers are read again.
const BATCH_MAX: u64 = 64;

impl TransactionPlan {
    /// Parameters of this phase, with streams of this token. The server allows `connections_max` at
    /// the same time.
    pub(super) fn new(
        spec: &PhaseSpec,
        sizes: TransactionSpec,
        target: ProbeTarget,
        token: [u8; 16],
        connections_max: Option<u32>,
    ) -> Self {
        let len = |bytes: u32| bytes.clamp(1, BYTES_MAX) as usize;
        Self {
            kind: spec.kind,
            target,
            token,
            flows: spec.streams_max,
            duration: spec.duration_max,
            connections_max: connections_max.map_or(OPEN_MAX, |max| OPEN_MAX.min(max as usize)),
            request: vec![b'q'; len(sizes.request_bytes)],
            response_bytes: len(sizes.response_bytes),
        }
    }
}

/// Runs transactions until the time ends, with `connections_per_s` on a schedule that does not wait
/// for answers. A transaction that fails is a lost sample.
pub(super) fn run(
    plan: &TransactionPlan,
    connections_per_s: Option<u64>,
    client: &mut NativeClient,
    events: &mut EventLoop<'_>,
) -> Result<Transacted, NativeError> {
    let mut exchange = Exchange {
        plan,
        open: BTreeMap::new(),
        done: Transacted::default(),
        buffer: vec![0; BUFFER_BYTES],
    };
    let ran = match connections_per_s {
        Some(per_s) => exchange.run_schedule(per_s, client, events),
        None => exchange.run_in_turn(client, events),
    };
    ran.map(|()| exchange.done)
}

impl Exchange<'_> {
    /// The next transaction of a flow follows the one before, until the server has refused all
    /// connections.
    fn run_in_turn(
        &mut self,
        client: &mut NativeClient,
        events: &mut EventLoop<'_>,
    ) -> Result<(), NativeError> {
        let plan = self.plan;
        for flow in 0..u64::from(plan.flows.max(1)) {
            self.begin(flow, &events.epoll)?;
        }

        let end_ns = clock::monotonic_ns().saturating_add(clock::as_ns(plan.duration));
        while !self.open.is_empty() {
            let left = time_until(end_ns);
            if left.is_zero() {
                break;
            }

            client.turn(events, left)?;
            for event in &events.ready {
                let Some(outcome) = self.advance(event.token, &events.epoll) else {
                    continue;
                };
                if let Some(connection) = self.open.get_mut(&event.token)
                    && plan.kind == PhaseKind::Rr
                    && outcome == Outcome::Complete
                {
                    connection.request(plan, &events.epoll, event.token)?;
                    continue;
                }

                self.open.remove(&event.token);
                // A server that has refused the first connection refuses the next one as well.
                if !(outcome == Outcome::Refused && self.done.completed == 0) {
                    self.begin(event.token, &events.epoll)?;
                }
            }
        }

        Ok(())
    }

    /// Opens connections at a fixed rate: connect, request, response, close. Each sample begins at
    /// the planned moment; one without an answer has failed.
    fn run_schedule(
        &mut self,
        per_s: u64,
        client: &mut NativeClient,
        events: &mut EventLoop<'_>,
    ) -> Result<(), NativeError> {
        // A schedule of bytes at 8 bit each.
        let schedule = Schedule::new(clock::monotonic_ns(), per_s.saturating_mul(8));
        let end_ns = schedule
            .due_ns(0)
            .saturating_add(clock::as_ns(self.plan.duration));
        let last_ns = end_ns.saturating_add(clock::as_ns(ANSWER_MAX));
        let mut begun = 0;

        loop {
            let now_ns = clock::monotonic_ns();
            let until_ns = match schedule.due_ns(begun) {
                next_ns if next_ns < end_ns => next_ns,
                _ if self.open.is_empty() || now_ns >= last_ns => break,
                _ => last_ns,
            };

            client.turn(
                events,
                Duration::from_nanos(until_ns.saturating_sub(now_ns)),
            )?;
            for event in &events.ready {
                if self.advance(event.token, &events.epoll).is_some() {
                    self.open.remove(&event.token);
                }
            }

            let now_ns = clock::monotonic_ns().min(end_ns.saturating_sub(1));
            for _ in 0..schedule
                .allowed_bytes(now_ns)
                .saturating_sub(begun)
                .min(BATCH_MAX)
            {
                self.begin_planned(begun, schedule.due_ns(begun), &events.epoll);
                begun += 1;
            }
        }

        for connection in self.open.values() {
            self.done.add(connection.since_ns, None);
        }
        Ok(())
    }

    fn begin(&mut self, flow: u64, epoll: &Epoll) -> io::Result<()> {
        let connection = Connection::open(self.plan, epoll, flow)?;
        self.open.insert(flow, connection);
        Ok(())
    }

    fn begin_planned(&mut self, number: u64, planned_ns: u64, epoll: &Epoll) {
        let begun = if self.open.len() < self.plan.connections_max {
            self.begin(number, epoll)
                .map_err(|error| format!("this host opens no connection: {error}"))
        } else {
            Err(format!(
                "{} connections wait for an answer, as many as may be open",
                self.plan.connections_max
            ))
        };
        match (begun, self.open.get_mut(&number)) {
            (Ok(()), Some(connection)) => connection.since_ns = planned_ns,
            (begun, _) => {
                let note = begun.err().filter(|note| !self.done.notes.contains(note));
                self.done.notes.extend(note);
                self.done.add(planned_ns, None);
            }
        }
    }

    /// Continues a connection, and counts its transaction once that has ended.
    fn advance(&mut self, flow: u64, epoll: &Epoll) -> Option<Outcome> {
        let connection = self.open.get_mut(&flow)?;
        let outcome = match connection.advance(self.plan, epoll, flow, &mut self.buffer) {
            Ok(false) => return None,
            Ok(true) => Outcome::Complete,
            Err(error) if connection.is_refused_by(self.plan, &error) => Outcome::Refused,
            Err(_) => Outcome::Failed,
        };
        let received_ns = (outcome == Outcome::Complete).then(clock::monotonic_ns);
        self.done.add(connection.since_ns, received_ns);
        self.done.refused += u64::from(outcome == Outcome::Refused);
        Some(outcome)
    }
}

impl Transacted {
    /// Counts a transaction; `received_ns` is absent of one that failed.
    fn add(&mut self, sent_ns: u64, received_ns: Option<u64>) {
        self.completed += u64::from(received_ns.is_some());
        if self.samples.len() < SAMPLES_MAX {
            self.samples.push(sample(sent_ns, received_ns));
        }
    }
}

impl Connection {
    fn open(plan: &TransactionPlan, epoll: &Epoll, flow: u64) -> io::Result<Self> {
        let since_ns = clock::monotonic_ns();
        let fd = plan.target.connect()?;
        epoll.add(&fd, flow, Interest::WRITE)?;

        let kind = if plan.kind == PhaseKind::Rr {
            StreamKind::Rr
        } else {
            StreamKind::Crr
        };
        let stream = u16::try_from(flow).unwrap_or(u16::MAX);
        let head = StreamHead {
            kind,
            flags: 0,
            stream,
            token: plan.token,
            sent_ns: since_ns,
        };

        Ok(Self {
            fd,
            since_ns,
            opening: [head.encode().as_slice(), &plan.request].concat(),
            sent: 0,
            missing: ANSWER_LEN + plan.response_bytes,
            is_connecting: true,
            interest: Interest::WRITE,
        })
    }

    /// The server has closed the connection, which failed with this error, instead of an answer to
    /// its head.
    fn is_refused_by(&self, plan: &TransactionPlan, error: &io::Error) -> bool {
        self.missing > plan.response_bytes && is_refusal(error)
    }

    /// Sends the next request on a connection that is open.
    fn request(&mut self, plan: &TransactionPlan, epoll: &Epoll, flow: u64) -> io::Result<()> {
        self.since_ns = clock::monotonic_ns();
        self.missing = plan.response_bytes;
        self.opening = Vec::new();
        self.sent = 0;
        self.flush(plan, epoll, flow)
    }

    /// Sends and receives what it can; true once the response is complete. `buffer` is for
    /// responses.
    fn advance(
        &mut self,
        plan: &TransactionPlan,
        epoll: &Epoll,
        flow: u64,
        buffer: &mut [u8],
    ) -> io::Result<bool> {
        if self.is_connecting {
            socket::take_error(&self.fd)?;
            self.is_connecting = false;

            if plan.kind == PhaseKind::Rr {
                // The handshake is no part of a transaction.
                self.since_ns = clock::monotonic_ns();
            }
        }

        self.flush(plan, epoll, flow)?;
        while self.missing > 0 {
            let len = self.missing.min(buffer.len());
            let received = stream_io::recv(&self.fd, buffer.get_mut(..len).unwrap_or_default());
            match if_ready(received)? {
                Some(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Some(received) => self.missing = self.missing.saturating_sub(received),
                None => return Ok(false),
            }
        }

        Ok(true)
    }

    /// Sends what fits of the opening or the request, and waits for room while a part of it is not
    /// sent.
    fn flush(&mut self, plan: &TransactionPlan, epoll: &Epoll, flow: u64) -> io::Result<()> {
        let data = if self.opening.is_empty() {
            &plan.request
        } else {
            &self.opening
        };
        while let Some(unsent) = data.get(self.sent..).filter(|unsent| !unsent.is_empty()) {
            match if_ready(stream_io::send(&self.fd, unsent))? {
                Some(len) => self.sent += len,
                None => break,
            }
        }

        let interest = if self.sent < data.len() {
            Interest::BOTH
        } else {
            Interest::READ
        };
        if self.interest != interest {
            self.interest = interest;
            epoll.modify(&self.fd, flow, interest)?;
        }

        Ok(())
    }
}
