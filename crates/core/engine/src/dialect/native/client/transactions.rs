//! Requests and responses: one outstanding on each connection, or a new connection for each.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use linerate_model::path::{PhaseKind, PhaseSpec, ProbeSample, TransactionSpec};
use linerate_native::wire::stream_head::{ANSWER_LEN, StreamHead, StreamKind};
use linerate_sys::poll::{Epoll, Interest};
use linerate_sys::socket::{self, Protocol};
use linerate_sys::{clock, sockopt, stream_io};

use super::prober::ProbeTarget;
use super::{bind, is_refusal};
use crate::interrupts::Interrupts;

/// Kind of transactions.
pub(super) struct TransactionPlan {
    pub(super) kind: PhaseKind,
    pub(super) target: ProbeTarget,
    pub(super) token: [u8; 16],
    pub(super) flows: u32,
    pub(super) duration: Duration,
    /// Connections that may be open at the same time.
    pub(super) connections_max: usize,
    /// A request as it is sent.
    request: Vec<u8>,
    response_bytes: usize,
}

/// Completed transactions.
#[derive(Debug, Default)]
pub(super) struct Transacted {
    /// All transactions, failed ones as well, up to [`SAMPLES_MAX`].
    pub(super) samples: Vec<ProbeSample>,
    /// Those with a response.
    pub(super) completed: u64,
    /// Connections that the server closed before it answered.
    pub(super) refused: u64,
}

/// A connection of one flow.
pub(super) struct Connection {
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

/// Result of an event.
pub(super) enum Step {
    Nothing,
    /// A response is complete.
    Complete,
}

/// Token of the event loop that no flow has.
pub(super) const INTERRUPT: u64 = u64::MAX;
/// Connections that may be open at the same time, where the server allows as many.
const OPEN_MAX: usize = 10_000;
/// Samples that are kept.
const SAMPLES_MAX: usize = 1_000_000;
/// Largest request and response.
const BYTES_MAX: u32 = 1 << 20;
/// Most bytes of responses that one call reads.
pub(super) const BUFFER_BYTES: usize = 16 * 1024;

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

impl Transacted {
    /// Counts a transaction; `received_ns` is absent of one that failed.
    pub(super) fn add(&mut self, sent_ns: u64, received_ns: Option<u64>) {
        self.completed += u64::from(received_ns.is_some());
        if self.samples.len() < SAMPLES_MAX {
            self.samples.push(ProbeSample {
                sent_ns,
                peer_received_ns: None,
                peer_sent_ns: None,
                received_ns,
            });
        }
    }
}

/// Runs transactions until the time ends, or until the server has refused all connections. A
/// transaction that fails is a lost sample.
///
/// # Errors
/// When this host has no event loop, or the user interrupts.
pub(super) fn run(plan: &TransactionPlan, interrupts: &dyn Interrupts) -> io::Result<Transacted> {
    let epoll = Epoll::new().map_err(io::Error::other)?;
    epoll
        .add(interrupts.fd(), INTERRUPT, Interest::READ)
        .map_err(io::Error::other)?;
    let mut connections = BTreeMap::new();

    for flow in 0..u64::from(plan.flows.max(1)) {
        connections.insert(flow, Connection::open(plan, &epoll, flow)?);
    }

    let end = Instant::now() + plan.duration;
    let (mut done, mut events) = (Transacted::default(), Vec::new());
    let mut buffer = vec![0; BUFFER_BYTES];

    while Instant::now() < end && !connections.is_empty() {
        // An interrupted wait is repeated.
        let _ = epoll.wait(
            &mut events,
            Some(end.saturating_duration_since(Instant::now())),
        );
        for event in &events {
            if event.token == INTERRUPT && interrupts.take().is_some() {
                return Err(ErrorKind::Interrupted.into());
            }

            let Some(connection) = connections.get_mut(&event.token) else {
                continue;
            };
            let stepped = connection.advance(plan, &epoll, event.token, &mut buffer);
            if matches!(stepped, Ok(Step::Nothing)) {
                continue;
            }

            let is_failed = stepped.is_err();
            done.add(connection.since_ns, (!is_failed).then(clock::monotonic_ns));
            let is_refused = stepped.is_err_and(|error| connection.is_refused_by(plan, &error));
            done.refused += u64::from(is_refused);

            if plan.kind == PhaseKind::Rr && !is_failed {
                connection.request(plan, &epoll, event.token)?;
                continue;
            }

            connections.remove(&event.token);
            // A server that has refused the first connection refuses the next one as well.
            if !(is_refused && done.completed == 0) {
                connections.insert(event.token, Connection::open(plan, &epoll, event.token)?);
            }
        }
    }

    Ok(done)
}

impl Connection {
    pub(super) fn open(plan: &TransactionPlan, epoll: &Epoll, flow: u64) -> io::Result<Self> {
        let since_ns = clock::monotonic_ns();
        let ProbeTarget {
            remote,
            bind: from,
            dscp,
        } = &plan.target;
        let fd = socket::open(remote, Protocol::Tcp).map_err(io::Error::other)?;
        bind(fd.as_fd(), from, remote).map_err(io::Error::other)?;

        // Without it the ports of closed connections stay in TIME_WAIT.
        let _ = sockopt::set_reset_on_close(&fd);
        let _ = sockopt::TCP_NODELAY.set(&fd, true);

        if *dscp != 0 {
            let _ = sockopt::set_tos(&fd, dscp << 2);
        }

        socket::connect(&fd, remote).map_err(io::Error::other)?;
        epoll
            .add(fd.as_fd(), flow, Interest::WRITE)
            .map_err(io::Error::other)?;

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

    /// Its transaction began at this moment.
    pub(super) fn since(self, since_ns: u64) -> Self {
        Self { since_ns, ..self }
    }

    pub(super) fn since_ns(&self) -> u64 {
        self.since_ns
    }

    /// The server has closed the connection, which failed with this error, instead of an answer to
    /// its head.
    pub(super) fn is_refused_by(&self, plan: &TransactionPlan, error: &io::Error) -> bool {
        self.missing > plan.response_bytes && is_refusal(error)
    }

    /// Sends the next request on a connection that is open.
    fn request(&mut self, plan: &TransactionPlan, epoll: &Epoll, flow: u64) -> io::Result<()> {
        self.since_ns = clock::monotonic_ns();
        self.missing = plan.response_bytes;
        (self.opening, self.sent) = (Vec::new(), 0);
        self.flush(plan, epoll, flow)
    }

    /// Sends and receives what it can. `buffer` is for responses.
    pub(super) fn advance(
        &mut self,
        plan: &TransactionPlan,
        epoll: &Epoll,
        flow: u64,
        buffer: &mut [u8],
    ) -> io::Result<Step> {
        if self.is_connecting {
            socket::take_error(&self.fd).map_err(io::Error::other)?;
            self.is_connecting = false;

            if plan.kind == PhaseKind::Rr {
                // The handshake is no part of a transaction.
                self.since_ns = clock::monotonic_ns();
            }
        }

        self.flush(plan, epoll, flow)?;
        self.receive(buffer)
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
            match stream_io::send(&self.fd, unsent) {
                Ok(len) => self.sent += len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }

        let interest = if self.sent < data.len() {
            Interest::BOTH
        } else {
            Interest::READ
        };
        if self.interest != interest {
            self.interest = interest;
            epoll
                .modify(self.fd.as_fd(), flow, interest)
                .map_err(io::Error::other)?;
        }

        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Step> {
        while self.missing > 0 {
            let len = self.missing.min(buffer.len());
            match stream_io::recv(&self.fd, buffer.get_mut(..len).unwrap_or_default()) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(received) => self.missing = self.missing.saturating_sub(received),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Step::Nothing),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }

        Ok(Step::Complete)
    }
}
