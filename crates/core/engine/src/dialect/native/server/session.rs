//! One client: its control connection, its protocol machine and the phase that runs.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use linerate_model::path::PhaseSpec;
use linerate_model::service::{HandshakeCause, RefusalReason};
use linerate_model::{
    EndCondition, EndpointTotals, Failure, FailureKind, Flow, StreamId, StreamRole, StreamSummary,
    Summary, TestSpec, Transport,
};
use linerate_native::wire::datagram::FlowId;
use linerate_native::wire::hex;
use linerate_native::wire::message::{Hello, Refusal, Resume};
use linerate_native::wire::opening::ACCEPTED;
use linerate_native::wire::server::{CloseReason, Input, Machine};
use linerate_native::wire::stream_head::{StreamHead, StreamKind};
use linerate_sys::poll::{Epoll, Interest};
use linerate_sys::sockopt;
use linerate_trust::{ServerSession, random, verify_resume};

use super::active_phase::ActivePhase;
use super::client_hops;
use super::context::{Context, Shared};
use super::event_tokens::CONTROL;
use super::request::PendingRequest;
use super::responder::{Meter, Responder, Task};
use crate::data::quota::{Quota, Traffic};
use crate::hops::{self, PathTrace};
use crate::server::limits::allotment::Allotment;
use crate::server::{self, ByteTotals, ServerContext, token};
use crate::tls_stream::TlsStream;
use crate::wait::if_ready;

/// A client.
pub(super) struct Session {
    pub id: u64,
    pub peer: SocketAddr,
    /// Absent between two connections of a session that continues.
    pub connection: Option<Connection>,
    pub machine: Machine,
    opened: Instant,
    /// Name that a client resumes it by.
    pub name: String,
    pub resume_secret: [u8; 32],
    pub flow_secret: [u8; 32],
    pub responder: Option<Responder>,
    pub phase: Option<ActivePhase>,
    /// Descriptors that admission counted for its phases.
    pub allotment: Allotment,
    /// Connections of requests and responses that it may have open at once.
    pub connections_max: u32,
    /// Quota of all that it sends and receives.
    pub quota: Quota,
    /// Meter of its probes and transactions.
    pub meter: Meter,
    pub request: Option<PendingRequest>,
    pub hops: PathTrace,
    /// Facts of this host over the last load.
    pub facts: Option<String>,
    /// Name of the token that the client has proved, or of the user that has logged in.
    pub user: Option<String>,
    /// The log has the reason for which it ends.
    pub is_logged: bool,
    /// Wrong proof or password, and when the client learns of it.
    pub refusal: Option<(Instant, Input)>,
    pub hello: Option<Box<Hello>>,
    /// In the queue.
    pub waiting: Option<Waiting>,
    /// Bytes of loads and datagrams of the phases that have ended.
    moved: ByteTotals,
    pub next_flow: u32,
    pub resume: Option<Resume>,
    pub closed: Option<CloseReason>,
    /// A limit of the server that ended it.
    stopped_by: Option<RefusalReason>,
}

/// A client that waits for its turn.
pub(super) struct Waiting {
    pub hello: Box<Hello>,
    /// It is refused then.
    pub until: Instant,
    /// Its place is announced again then.
    pub announce_at: Instant,
}

/// Longest TLS handshake of a client.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest life of a session without a control connection and without a load.
const RECONNECT_MAX: Duration = Duration::from_secs(3);

/// A control connection.
pub(super) struct Connection {
    fd: OwnedFd,
    tls: TlsStream,
    waits_for_room: bool,
}

impl Connection {
    /// Plaintext of the client. As long as the client does not take what it is sent, nothing more
    /// of it is read: each of its messages may lead to a message for it.
    fn receive(&mut self) -> io::Result<Vec<u8>> {
        if self.tls.has_unsent() {
            return if_ready(self.tls.flush(&self.fd)).map(|_| Vec::new());
        }

        self.tls.receive(self.fd.as_fd())
    }
}

impl Session {
    pub(super) fn new(id: u64, fd: OwnedFd, peer: SocketAddr, context: &Context) -> Self {
        let _ = sockopt::TCP_NODELAY.set(&fd, true);
        let mut tls = TlsStream::server(ServerSession::new(&context.tls));
        // In clear text, before TLS: the client decides by these bytes whether the server is a
        // native one.
        tls.send_before(&ACCEPTED);

        // A new connection has room for a few bytes; a failure shows at the next read.
        let _ = tls.flush(&fd);
        let now = Instant::now();
        Self {
            id,
            peer,
            connection: Some(Connection {
                fd,
                tls,
                waits_for_room: false,
            }),
            machine: Machine::new(now),
            opened: now,
            name: hex::encode(&random::<16>()),
            resume_secret: random(),
            flow_secret: random(),
            responder: None,
            phase: None,
            allotment: Allotment::new(0),
            connections_max: 0,
            quota: Quota::default(),
            meter: Meter::default(),
            request: None,
            hops: PathTrace::default(),
            facts: None,
            user: None,
            is_logged: false,
            refusal: None,
            hello: None,
            waiting: None,
            moved: ByteTotals::default(),
            next_flow: 1,
            resume: None,
            closed: None,
            stopped_by: None,
        }
    }

    /// Absent between two connections.
    pub(super) fn control_fd(&self) -> Option<BorrowedFd<'_>> {
        self.connection
            .as_ref()
            .map(|connection| connection.fd.as_fd())
    }

    /// Admission has accepted it.
    pub(super) fn is_admitted(&self) -> bool {
        self.hello.is_some()
    }

    /// Passes what happened at this end to the machine.
    pub(super) fn input(&mut self, input: Input) {
        self.machine.handle_local(Instant::now(), input);
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let handshake = self
            .is_handshaking()
            .then(|| self.opened + HANDSHAKE_TIMEOUT);
        let phase = self.phase.as_ref().and_then(ActivePhase::deadline);
        let waiting = self
            .waiting
            .as_ref()
            .map(|waiting| waiting.until.min(waiting.announce_at));
        let refusal = self.refusal.as_ref().map(|(at, _)| *at);

        let own = [
            handshake,
            phase,
            self.reconnect_deadline(),
            waiting,
            refusal,
        ];
        self.machine
            .poll_timeout()
            .into_iter()
            .chain(own.into_iter().flatten())
            .min()
    }

    /// Latest moment for another control connection, unless the streams of a load show that the
    /// client lives.
    fn reconnect_deadline(&self) -> Option<Instant> {
        let lost_since = self.machine.lost_since()?;
        let is_loaded = self.phase.as_ref().is_some_and(ActivePhase::has_streams);
        (!is_loaded).then(|| lost_since + RECONNECT_MAX)
    }

    fn is_handshaking(&self) -> bool {
        self.connection
            .as_ref()
            .is_some_and(|connection| connection.tls.is_handshaking())
    }

    /// Something has arrived on the control connection, or there is room again.
    pub(super) fn on_control(&mut self) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        let now = Instant::now();

        match connection.receive() {
            Ok(plaintext) if plaintext.is_empty() => {}
            Ok(plaintext) => self.machine.handle_bytes(now, &plaintext),
            // A client that resumes a session resets the connection before: this one has ended
            // without a message.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                self.closed = Some(CloseReason::Lost);
            }
            Err(error) => {
                tracing::debug!(client = self.id, %error, "control connection lost");
                self.connection = None;
                self.machine.control_lost(now);
            }
        }
    }

    /// Lets time pass, and carries out what the machine decides.
    pub(super) fn advance(&mut self, shared: &mut Shared<'_>, server: &mut ServerContext<'_>) {
        let now = Instant::now();
        // Since the connection was opened, and not since the last byte: a slow handshake holds a
        // descriptor too.
        if self.is_handshaking() && now >= self.opened + HANDSHAKE_TIMEOUT {
            self.connection = None;
            self.machine.control_lost(now);
        }

        self.machine.handle_timeout(now);
        if let Some((_, refusal)) = self.refusal.take_if(|(at, _)| now >= *at) {
            self.input(refusal);
        }

        self.await_turn(now, server);
        self.advance_phase(now, server);

        if self
            .reconnect_deadline()
            .is_some_and(|deadline| now >= deadline)
        {
            self.closed = Some(CloseReason::Lost);
        }

        self.take_response();
        while let Some(action) = self.machine.poll_action() {
            self.execute(action, shared, server);
        }

        self.watch(shared.epoll);
    }

    fn advance_phase(&mut self, now: Instant, server: &ServerContext<'_>) {
        let Some(phase) = &mut self.phase else { return };
        phase.advance();

        if self
            .phase
            .as_ref()
            .is_some_and(|phase| phase.is_overdue(now))
        {
            self.end_phase(server);
        }
    }

    fn take_response(&mut self) {
        let Some(outcome) = self.request.as_ref().and_then(PendingRequest::take) else {
            return;
        };
        self.request = None;
        self.input(outcome);
    }

    /// Ends the phase and passes its result on.
    pub(super) fn end_phase(&mut self, server: &ServerContext<'_>) {
        let Some(mut phase) = self.phase.take() else {
            return;
        };
        // Before the totals are read, so that no worker moves bytes that the result lacks.
        phase.stop_senders();
        let totals = phase.totals();
        self.moved.received_bytes += totals.received_bytes;
        self.moved.sent_bytes += totals.sent_bytes;

        let probes = self
            .responder
            .as_ref()
            .map(Responder::counts)
            .unwrap_or_default();
        if let Some(responder) = &self.responder {
            responder.push_task(Task::EndPhase);
        }

        let (mut result, facts) = phase.finish(probes);
        result.hops = self.hops.end();
        let sent: u32 = result.hops.iter().map(|hop| hop.sent).sum();
        self.meter
            .charge(Traffic::Probes, 0, u64::from(sent) * hops::PROBE_BYTES);

        result.concurrent_max = Some(server.stats.concurrent_max(self.id));
        self.facts = facts.or(self.facts.take());
        self.input(Input::PhaseEnded(Box::new(result)));
    }

    /// Traces the hops to the client until the phase ends.
    pub(super) fn start_hops(&mut self, phase: &PhaseSpec, device: Option<&str>) {
        let Some(connection) = &self.connection else {
            return;
        };
        let control = connection.fd.as_fd();
        let open = || client_hops::open(control, device, phase.dscp);
        // A host without descriptors for it sends no answers; the phase is the same without.
        if let Err(error) = self.hops.start(phase, open) {
            tracing::debug!(client = self.id, %error, "no trace of the hops");
        }
    }

    pub(super) fn send(&mut self, bytes: &[u8]) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        if connection.tls.send(&connection.fd, bytes).is_err() {
            self.connection = None;
            self.machine.control_lost(Instant::now());
        }
    }

    /// Sends what waits, as far as there is room.
    pub(super) fn flush(&mut self) {
        while let Some(action) = self.machine.poll_action() {
            if let linerate_native::wire::server::Action::Send(bytes) = action {
                self.send(&bytes);
            }
        }
    }

    fn watch(&mut self, epoll: &Epoll) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        let waits = connection.tls.has_unsent();
        if waits != connection.waits_for_room {
            connection.waits_for_room = waits;
            let interest = if waits {
                // Not both: while output waits nothing more is read, and a level-triggered read
                // event would repeat without end.
                Interest::WRITE
            } else {
                Interest::READ
            };

            // Modifying a registered descriptor fails only when memory is short; the next send
            // tries again.
            let _ = epoll.modify(&connection.fd, token(self.id, CONTROL), interest);
        }
    }

    /// Keying material of the present connection.
    pub(super) fn exporter(&self) -> Option<[u8; 32]> {
        self.connection.as_ref()?.tls.exporter()
    }

    /// Continues over the connection of another session that has not begun.
    pub(super) fn take_over(
        &mut self,
        other: &mut Self,
        resume: &Resume,
        epoll: &Epoll,
    ) -> Result<(), String> {
        let exporter = other.exporter().ok_or("the connection is not encrypted")?;
        let proof: [u8; 32] = hex::decode(&resume.proof).ok_or("the proof is not hexadecimal")?;
        if !verify_resume(
            &self.resume_secret,
            &exporter,
            resume.number,
            resume.received,
            &proof,
        ) {
            return Err("the proof is wrong".to_owned());
        }

        self.machine
            .resume(Instant::now(), resume)
            .map_err(|error| error.to_string())?;
        let connection = other.connection.take().ok_or("the connection is closed")?;
        epoll
            .add(&connection.fd, token(self.id, CONTROL), Interest::READ)
            .map_err(|error| error.text())?;
        self.connection = Some(connection);

        Ok(())
    }

    /// Another session has taken the connection, or has not.
    pub(super) fn on_handed_over(&mut self, outcome: Result<(), String>) {
        let input = match outcome {
            Ok(()) => Input::HandedOver,
            Err(text) => Input::Refused(Refusal::new("resume", text)),
        };
        self.input(input);
    }

    /// Takes a stream whose token was valid. False if the phase has no use for it.
    pub(super) fn add_stream(&mut self, fd: &OwnedFd, head: StreamHead, context: &Context) -> bool {
        let Some(fd) = own(fd) else { return false };
        if head.kind == StreamKind::Load {
            return self
                .phase
                .as_mut()
                .is_some_and(|phase| phase.add_stream(fd, &head, &context.tls));
        }

        let transaction = match head.kind {
            StreamKind::Rr | StreamKind::Crr => {
                match self.phase.as_ref().and_then(|phase| phase.spec.transaction) {
                    Some(transaction) => Some(transaction),
                    None => return false,
                }
            }
            // Probes continue while a load drains, after the end of its phase.
            _ => None,
        };
        let (Some(responder), Some(allotted)) = (&self.responder, self.allotment.take()) else {
            return false;
        };
        responder.push_task(Task::Connection {
            fd,
            head,
            transaction,
            allotted,
        });

        true
    }

    /// Takes a flow whose first datagram was answered.
    pub(super) fn add_flow(&mut self, fd: OwnedFd, id: FlowId) {
        match &mut self.phase {
            // A failure shows as a flow without data.
            Some(phase) if phase.spec.direction.is_some() => drop(phase.add_flow(fd, id)),
            _ => {
                if let (Some(responder), Some(allotted)) = (&self.responder, self.allotment.take())
                {
                    responder.push_task(Task::Flow { fd, id, allotted });
                }
            }
        }
    }

    /// The server ends by a signal.
    pub(super) fn stop_server(&mut self, signal_text: &str) {
        let reason = format!("the server ends by signal {signal_text}");
        self.input(Input::Stopping(reason));
    }

    /// Ends the session: closes its connection and reports its test.
    pub(super) fn end(mut self, server: &mut ServerContext<'_>) {
        let totals = server::Session::totals(&mut self);
        self.phase = None;
        let outcome = self.outcome();
        let summary = self.summary(totals);
        let was_test =
            server.end_test(self.id, self.name.clone(), totals, Some(&summary), &outcome);
        let was_admitted = was_test || self.is_admitted();
        if !was_admitted
            && !self.is_logged
            && let Err(failure) = &outcome
        {
            let explanation = failure.message.clone();
            server.log_failed_handshake(self.peer, HandshakeCause::Parameters, explanation);
        }

        if let Some(connection) = self.connection.take() {
            server.close(connection.fd, Vec::new());
        }
    }

    /// Both directions, for the log and for records.
    fn summary(&self, moved: ByteTotals) -> Summary {
        let duration_ns = linerate_sys::clock::as_ns(self.opened.elapsed());
        let totals = |bytes| Some(EndpointTotals::new(bytes, duration_ns, None));
        let forward = StreamSummary {
            role: StreamRole::Receiver,
            flow: Flow::Forward,
            receiver: totals(moved.received_bytes),
            ..StreamSummary::default()
        };

        let reverse = StreamSummary {
            id: StreamId(1),
            role: StreamRole::Sender,
            flow: Flow::Reverse,
            sender: totals(moved.sent_bytes),
            ..StreamSummary::default()
        };
        Summary {
            streams: vec![forward, reverse],
            ..Summary::default()
        }
    }

    fn outcome(&self) -> Result<(), Failure> {
        let message = match (&self.stopped_by, &self.closed) {
            (Some(reason), _) => reason.to_string(),
            (None, Some(CloseReason::Bye | CloseReason::Left | CloseReason::HandedOver)) => {
                return Ok(());
            }
            (None, Some(reason)) => describe(reason),
            (None, None) => "the server ended it".to_owned(),
        };
        Err(Failure::new(FailureKind::Error, message))
    }
}

fn describe(reason: &CloseReason) -> String {
    match reason {
        CloseReason::Refused { clause } => format!("refused: {clause}"),
        CloseReason::Unproven => "the client proves neither token nor login".to_owned(),
        CloseReason::Fault(fault) => format!("a message of the client is wrong: {fault}"),
        CloseReason::PeerFault(fault) => format!("the client rejects a message: {fault}"),
        CloseReason::Timeout => "the client did not send what was due in time".to_owned(),
        CloseReason::Lost => "the control connection was lost".to_owned(),
        CloseReason::TimeLimit => "the session exceeded its agreed duration".to_owned(),
        CloseReason::ResultLate => "no result in time".to_owned(),
        _ => "the server ended it".to_owned(),
    }
}

impl server::Session for Session {
    fn totals(&mut self) -> ByteTotals {
        let running = self
            .phase
            .as_ref()
            .map(ActivePhase::totals)
            .unwrap_or_default();
        let parts = [self.moved, running, self.meter.totals()];
        ByteTotals {
            received_bytes: parts.iter().map(|part| part.received_bytes).sum(),
            sent_bytes: parts.iter().map(|part| part.sent_bytes).sum(),
        }
    }

    fn stop(&mut self, reason: RefusalReason) {
        self.stopped_by = Some(reason);
        self.input(Input::Stopping(reason.to_string()));
    }
}

/// The test as statistics and quotas see it: both directions, for the longest time that the client
/// announces.
pub(super) fn announced(hello: &Hello) -> TestSpec {
    let is_udp = hello.wants.iter().all(|kind| kind.is_udp());
    TestSpec {
        transport: if is_udp {
            Transport::Udp
        } else {
            Transport::Tcp
        },
        direction: linerate_model::Direction::Bidirectional,
        streams: hello.streams_max,
        end: EndCondition::Duration(Duration::from_nanos(hello.duration_max_ns)),
        ..TestSpec::default()
    }
}

/// Another descriptor of a connection that its acceptor gives up.
fn own(fd: &OwnedFd) -> Option<OwnedFd> {
    fd.try_clone().ok()
}
