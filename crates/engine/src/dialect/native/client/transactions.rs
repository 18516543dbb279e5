//! Requests and responses: one outstanding on each connection, or a new connection for each.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use linerate_model::path::{PhaseKind, ProbeSample, TransactionSpec};
use linerate_native::stream_head::{ANSWER_LEN, StreamHead, StreamKind};
use linerate_sys::poll::{Epoll, Interest};
use linerate_sys::socket::{self, Protocol};
use linerate_sys::{clock, sockopt, stream_io};

use super::bind;
use super::prober::ProbeTarget;
use crate::interrupts::Interrupts;

/// What is run.
pub(super) struct TransactionPlan {
    pub(super) kind: PhaseKind,
    pub(super) target: ProbeTarget,
    pub(super) token: [u8; 16],
    pub(super) sizes: TransactionSpec,
    pub(super) flows: u32,
    pub(super) duration: Duration,
}

/// A connection of one flow.
pub(super) struct Connection {
    fd: OwnedFd,
    since_ns: u64,
    /// Bytes of head and request that are to be sent, or that have been.
    unsent: Vec<u8>,
    /// Bytes of the response, and of the answer to the head, that are missing.
    missing: usize,
    is_connecting: bool,
}

/// What an event led to.
pub(super) enum Step {
    Nothing,
    /// A response is complete.
    Complete,
}

/// Token of the event loop that no flow has.
pub(super) const INTERRUPT: u64 = u64::MAX;
/// Samples that are kept.
const SAMPLES_MAX: usize = 1_000_000;
/// Largest request and response.
const BYTES_MAX: u32 = 1 << 20;

/// Runs transactions until the time is over. A transaction that fails is a lost sample.
///
/// # Errors
/// When this host has no event loop, or the user interrupts.
pub(super) fn run(plan: &TransactionPlan, interrupts: &dyn Interrupts) -> io::Result<Vec<ProbeSample>> {
    let epoll = Epoll::new().map_err(io::Error::other)?;
    epoll.add(interrupts.fd(), INTERRUPT, Interest::READ).map_err(io::Error::other)?;
    let mut connections = BTreeMap::new();
    for flow in 0..u64::from(plan.flows.max(1)) {
        connections.insert(flow, Connection::open(plan, &epoll, flow)?);
    }
    let end = Instant::now() + plan.duration;
    let (mut samples, mut events) = (Vec::new(), Vec::new());
    while Instant::now() < end && !connections.is_empty() {
        // An interrupted wait is repeated.
        let _ = epoll.wait(&mut events, Some(end.saturating_duration_since(Instant::now())));
        for event in &events {
            if event.token == INTERRUPT && interrupts.take().is_some() {
                return Err(ErrorKind::Interrupted.into());
            }
            let Some(connection) = connections.get_mut(&event.token) else { continue };
            let stepped = connection.advance(plan, &epoll, event.token);
            if matches!(stepped, Ok(Step::Nothing)) {
                continue;
            }
            let received_ns = stepped.is_ok().then(clock::monotonic_ns);
            let sent_ns = connection.since_ns;
            if samples.len() < SAMPLES_MAX {
                samples.push(ProbeSample { sent_ns, peer_received_ns: None, peer_sent_ns: None, received_ns });
            }
            if plan.kind == PhaseKind::Crr || stepped.is_err() {
                connections.remove(&event.token);
                connections.insert(event.token, Connection::open(plan, &epoll, event.token)?);
            } else {
                connection.request(plan)?;
                connection.watch(&epoll, event.token)?;
            }
        }
    }
    Ok(samples)
}

impl Connection {
    pub(super) fn open(plan: &TransactionPlan, epoll: &Epoll, flow: u64) -> io::Result<Self> {
        let since_ns = clock::monotonic_ns();
        let ProbeTarget { remote, bind: from, dscp } = &plan.target;
        let fd = socket::open(remote, Protocol::Tcp).map_err(io::Error::other)?;
        bind(fd.as_fd(), from, remote).map_err(io::Error::other)?;
        // Without it the ports of closed connections stay in TIME_WAIT.
        let _ = sockopt::set_reset_on_close(&fd);
        let _ = sockopt::TCP_NODELAY.set(&fd, true);
        if *dscp != 0 {
            let _ = sockopt::set_tos(&fd, dscp << 2);
        }
        socket::connect(&fd, remote).map_err(io::Error::other)?;
        epoll.add(fd.as_fd(), flow, Interest::WRITE).map_err(io::Error::other)?;
        let kind = if plan.kind == PhaseKind::Rr { StreamKind::Rr } else { StreamKind::Crr };
        let stream = u16::try_from(flow).unwrap_or(u16::MAX);
        let head = StreamHead { kind, flags: 0, stream, token: plan.token, sent_ns: since_ns };
        let mut unsent = head.encode().to_vec();
        unsent.extend(request(plan.sizes));
        Ok(Self { fd, since_ns, unsent, missing: ANSWER_LEN + response_bytes(plan.sizes), is_connecting: true })
    }

    /// Its transaction began at this moment.
    pub(super) fn since(self, since_ns: u64) -> Self {
        Self { since_ns, ..self }
    }

    pub(super) fn since_ns(&self) -> u64 {
        self.since_ns
    }

    /// Sends the next request on a connection that is open.
    fn request(&mut self, plan: &TransactionPlan) -> io::Result<()> {
        self.since_ns = clock::monotonic_ns();
        self.missing = response_bytes(plan.sizes);
        self.unsent = request(plan.sizes);
        self.flush()
    }

    pub(super) fn advance(&mut self, plan: &TransactionPlan, epoll: &Epoll, flow: u64) -> io::Result<Step> {
        if self.is_connecting {
            socket::take_error(&self.fd).map_err(io::Error::other)?;
            self.is_connecting = false;
            if plan.kind == PhaseKind::Rr {
                // The handshake is no part of a transaction.
                self.since_ns = clock::monotonic_ns();
            }
        }
        self.flush()?;
        self.watch(epoll, flow)?;
        self.receive()
    }

    /// Waits for room while a part of the request is not sent.
    fn watch(&self, epoll: &Epoll, flow: u64) -> io::Result<()> {
        let interest = if self.unsent.is_empty() { Interest::READ } else { Interest::BOTH };
        epoll.modify(self.fd.as_fd(), flow, interest).map_err(io::Error::other)
    }

    fn flush(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match stream_io::send(&self.fd, &self.unsent) {
                Ok(len) => drop(self.unsent.drain(..len)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn receive(&mut self) -> io::Result<Step> {
        let mut buffer = [0; 16 * 1024];
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

fn request(sizes: TransactionSpec) -> Vec<u8> {
    vec![b'q'; sizes.request_bytes.clamp(1, BYTES_MAX) as usize]
}

fn response_bytes(sizes: TransactionSpec) -> usize {
    sizes.response_bytes.clamp(1, BYTES_MAX) as usize
}
