//! The control connection of a client: drives the protocol machine, and connects again when the
//! connection breaks.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_model::path::{EndpointPhase, HostDropsReader, PhaseSpec};
use linerate_native::wire::client::{Action, Input, Machine, ProtocolFailure};
use linerate_native::wire::datagram::FlowId;
use linerate_native::wire::hex;
use linerate_native::wire::message::{Hello, Ready, Refusal, TokenProof, Welcome};
use linerate_sys::poll::Interest;
use linerate_sys::{clock, sockopt};
use linerate_trust::{ClientConfig, Role, Token, proof, resume_proof};

use super::event_loop::{CONTROL, EventLoop};
use super::handshake::{Connection, reconnect};
use super::hops::KnownHops;
use super::prober::ProbeTarget;
use super::streams::StreamPlan;
use super::{Login, NativeError, Peer, Target};
use crate::dialect::native::boot_id;
use crate::dialect::native::drops::DropMeter;
use crate::dialect::native::load::EchoSamples;
use crate::interrupts::Interrupts;

/// Longest wait in one turn, so that deadlines of the machine are met.
const STEP: Duration = Duration::from_millis(200);

/// A session with a native server.
pub struct NativeClient {
    target: Target,
    pub(super) peer: Peer,
    pub(super) tls: ClientConfig,
    connection: Option<Connection>,
    machine: Machine,
    token: Option<Token>,
    welcome: Welcome,
    /// Actions that wait for whom they are for.
    arrived: VecDeque<Action>,
    resumed: u32,
    /// The machine wants another connection.
    is_lost: bool,
    retry: Retry,
    pub(super) idle_rtt_ns: Option<i64>,
    /// Hops that earlier phases found.
    pub(super) hops: KnownHops,
    host_drops: Option<HostDropsReader>,
    /// The session cannot continue.
    failed: Option<ProtocolFailure>,
}

/// Attempts to connect again.
#[derive(Default)]
struct Retry {
    /// Time of the next one.
    due: Option<Instant>,
    /// Since when no program listens at the server's address.
    refused_since: Option<Instant>,
}

/// Announcement of a client.
#[derive(Debug, Clone)]
pub struct Announcement {
    /// Streams per direction at most.
    pub streams_max: u32,
    /// Connections of requests and responses at the same time at most.
    pub connections_max: u32,
    /// Length of all phases together at most.
    pub duration_max: Duration,
    /// Phases that it may run.
    pub kinds: Vec<linerate_model::path::PhaseKind>,
    /// The server's facts are wanted.
    pub wants_facts: bool,
    /// Bytes of both directions at most.
    pub bytes_max: Option<u64>,
    /// Longest wait for a turn.
    pub wait_max: Duration,
}

/// Place of a client in the queue of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Clients before it.
    pub ahead: u32,
    /// Expected wait.
    pub wait: Duration,
}

/// Clause of a server that is busy.
pub(super) const BUSY: &str = "busy";
/// Longest wait for an answer of the server.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait for a lost control connection, within which a phase continues.
const RESUME_TIMEOUT: Duration = Duration::from_secs(30);
/// Between two attempts to connect again.
const RETRY_PAUSE: Duration = Duration::from_millis(250);
/// A server at whose address no program listens for this long has ended. One that starts again does
/// not know the session.
const REFUSED_MAX: Duration = Duration::from_secs(3);

impl Retry {
    /// Plans the next attempt after one that failed, until the machine gives up.
    ///
    /// # Errors
    /// An interrupt, or that the server has ended.
    fn after(&mut self, error: NativeError) -> Result<(), NativeError> {
        let now = Instant::now();
        self.due = Some(now + RETRY_PAUSE);

        match error {
            NativeError::Interrupted(signal_text) => Err(NativeError::Interrupted(signal_text)),
            NativeError::ConnectionRefused(text) => {
                let since = *self.refused_since.get_or_insert(now);
                let has_ended = now.duration_since(since) >= REFUSED_MAX;
                if has_ended {
                    Err(NativeError::Protocol(format!(
                        "the server has ended: {text}"
                    )))
                } else {
                    Ok(())
                }
            }
            _ => {
                self.refused_since = None;
                Ok(())
            }
        }
    }
}

impl NativeClient {
    pub(super) fn new(
        target: Target,
        peer: Peer,
        tls: ClientConfig,
        connection: Connection,
        token: Option<Token>,
    ) -> Self {
        Self {
            target,
            peer,
            tls,
            connection: Some(connection),
            machine: Machine::new(Instant::now()),
            token,
            welcome: Welcome::default(),
            arrived: VecDeque::new(),
            resumed: 0,
            is_lost: false,
            retry: Retry::default(),
            idle_rtt_ns: None,
            hops: KnownHops::default(),
            host_drops: None,
            failed: None,
        }
    }

    /// States what is wanted, and waits for the begin of the session.
    pub(super) fn greet(
        &mut self,
        login: Option<&Login>,
        announcement: &Announcement,
        on_turn: &mut dyn FnMut(Turn),
        events: &mut EventLoop<'_>,
    ) -> Result<(), NativeError> {
        let (token, server_proof) = self.token_proofs()?.unzip();
        let hello = Hello {
            program: concat!("linerate ", env!("CARGO_PKG_VERSION")).to_owned(),
            token,
            user: login.map(|login| login.user.clone()),
            password: login.map(|login| login.password.clone()),
            streams_max: announcement.streams_max,
            connections_max: announcement.connections_max,
            duration_max_ns: clock::as_ns(announcement.duration_max),
            bytes_max: announcement.bytes_max,
            wants: announcement.kinds.clone(),
            wants_facts: announcement.wants_facts,
            ..Hello::default()
        };
        self.push_input(Input::Hello {
            hello: Box::new(hello),
            server_proof,
        });

        self.await_welcome(announcement.wait_max, on_turn, events)
    }

    /// This end's proof of its token, and the one that the server has to answer; `None` without a
    /// token.
    fn token_proofs(&self) -> Result<Option<(TokenProof, [u8; 32])>, NativeError> {
        let Some(token) = &self.token else {
            return Ok(None);
        };
        let exporter = self
            .connection
            .as_ref()
            .and_then(|connection| connection.tls.exporter());

        // Without keys there is no proof, and without a proof no session.
        let exporter = exporter
            .ok_or_else(|| NativeError::Identity("the connection is not encrypted".to_owned()))?;

        let own = proof(token, &exporter, Role::Client);
        let own = TokenProof {
            name: token.name().to_owned(),
            proof: hex::encode(&own),
        };
        Ok(Some((own, proof(token, &exporter, Role::Server))))
    }

    /// Waits for the begin of the session, in the queue of the server if it has one.
    fn await_welcome(
        &mut self,
        wait_max: Duration,
        on_turn: &mut dyn FnMut(Turn),
        events: &mut EventLoop<'_>,
    ) -> Result<(), NativeError> {
        let end = Instant::now() + wait_max;
        let mut timeout = ANSWER_TIMEOUT;
        let mut ahead = None;

        loop {
            let answer = self.await_action(timeout, events, |action| match action {
                Action::Welcome(_) | Action::Queued(_) => Some(action.clone()),
                _ => None,
            });
            let left = end.saturating_duration_since(Instant::now());

            match answer {
                Ok(Action::Welcome(welcome)) => {
                    self.welcome = *welcome;
                    return Ok(());
                }
                Ok(Action::Queued(turn)) => {
                    ahead = Some(turn.position);
                    on_turn(Turn {
                        ahead: turn.position,
                        wait: Duration::from_millis(turn.wait_ms),
                    });
                }
                // It is silent between two positions in the queue.
                Err(NativeError::Protocol(_)) if ahead.is_some() && left.is_zero() => {}
                Err(error) => return Err(error),
                Ok(_) => {}
            }

            if let Some(ahead) = ahead.filter(|_| left.is_zero()) {
                let text = format!(
                    "no slot became free within {} s; queue position {}",
                    wait_max.as_secs(),
                    ahead + 1
                );
                return Err(NativeError::Refused {
                    clause: BUSY.to_owned(),
                    text,
                });
            }

            timeout = left.min(ANSWER_TIMEOUT);
        }
    }

    /// The server as it was found.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Welcome of the server.
    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// Number of times that the control connection was re-established.
    pub fn resumed(&self) -> u32 {
        self.resumed
    }

    /// Both ends read the clock of one kernel.
    pub fn is_same_boot(&self) -> bool {
        self.welcome.boot_id.is_some() && self.welcome.boot_id == boot_id()
    }

    /// Offset of the server's monotonic clock and its error in ns, by the time sources of both
    /// hosts; `None` where one of them is not synchronised. The error is that of both wall clocks
    /// (`maxerror`, adjtimex(2)).
    pub fn disciplined_offset(&self) -> Option<(i64, u64)> {
        let error_ns = clock::realtime_error_max_ns()
            .ok()??
            .saturating_add(self.welcome.clock_error_ns?);
        Some((
            clock::realtime_offset_ns().saturating_sub(self.welcome.realtime_offset_ns?),
            error_ns,
        ))
    }

    /// The round trip without load, after which a load has drained.
    pub fn set_idle_rtt_ns(&mut self, idle_rtt_ns: Option<i64>) {
        self.idle_rtt_ns = idle_rtt_ns;
    }

    /// Counts drops of this host in phases of datagrams and new connections.
    pub fn set_host_drops(&mut self, read: HostDropsReader) {
        self.host_drops = Some(read);
    }

    /// Begins to count drops of this host, if that is possible.
    pub(super) fn drop_meter(&self) -> Option<DropMeter> {
        self.host_drops
            .as_ref()
            .map(|read| DropMeter::start(read, self.peer.remote.ip()))
    }

    pub(super) fn probe_target(&self, dscp: u8) -> ProbeTarget {
        ProbeTarget {
            remote: self.peer.remote,
            bind: self.target.bind.clone(),
            dscp,
        }
    }

    pub(super) fn stream_plan(&self, spec: &PhaseSpec, echoes: &Arc<EchoSamples>) -> StreamPlan {
        StreamPlan {
            target: self.probe_target(spec.dscp),
            transport: spec.transport,
            tls: self.tls.clone(),
            congestion: spec.congestion.clone(),
            echoes: (!spec.raw).then(|| Arc::clone(echoes)),
        }
    }

    pub(super) fn flow_id(&self, flow: u32) -> FlowId {
        let secret = hex::decode(&self.welcome.flow_secret).unwrap_or_default();
        let tag = linerate_trust::flow_tag(&secret, flow);
        FlowId { flow, tag }
    }

    /// Has the server prepare a phase.
    pub(super) fn open_phase(
        &mut self,
        spec: &PhaseSpec,
        events: &mut EventLoop<'_>,
    ) -> Result<Ready, NativeError> {
        self.push_input(Input::OpenPhase(Box::new(spec.clone())));
        self.await_action(ANSWER_TIMEOUT, events, |action| match action {
            Action::Ready(ready) => Some(ready.clone()),
            _ => None,
        })
    }

    /// Has the server begin the phase.
    pub(super) fn start_phase(&mut self, events: &mut EventLoop<'_>) -> Result<(), NativeError> {
        self.push_input(Input::Start);
        self.await_action(ANSWER_TIMEOUT, events, |action| {
            matches!(action, Action::Started { .. }).then_some(())
        })
    }

    /// Has the server end the phase; returns what it counted.
    pub(super) fn stop_phase(
        &mut self,
        events: &mut EventLoop<'_>,
    ) -> Result<EndpointPhase, NativeError> {
        self.push_input(Input::Stop);
        self.await_action(RESUME_TIMEOUT, events, |action| match action {
            Action::PhaseResult(result) => Some((**result).clone()),
            _ => None,
        })
    }

    /// Facts of the server's host over the last load; `None` where it gives none.
    pub fn facts(&mut self, interrupts: &dyn Interrupts) -> Option<String> {
        if !self.welcome.facts {
            return None;
        }

        self.push_input(Input::WantFacts);
        let mut events = EventLoop::new(interrupts).ok()?;
        let facts = self.await_action(ANSWER_TIMEOUT, &mut events, |action| match action {
            Action::Facts(facts) => Some(facts.clone()),
            _ => None,
        });
        facts.ok().filter(|facts| facts != "null")
    }

    /// Ends the session.
    pub fn close(mut self) {
        self.push_input(Input::Bye);
    }

    pub(super) fn push_input(&mut self, input: Input) {
        self.machine.handle_local(Instant::now(), input);
        self.execute_actions();
    }

    /// Readable when [`Self::on_control`] has something to do.
    pub(super) fn control_fd(&self) -> Option<BorrowedFd<'_>> {
        self.connection
            .as_ref()
            .map(|connection| connection.fd.as_fd())
    }

    /// Reads what has arrived.
    pub(super) fn on_control(&mut self) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        let now = Instant::now();

        match connection.tls.receive(&connection.fd) {
            Ok(plaintext) if plaintext.is_empty() => {}
            Ok(plaintext) => self.machine.handle_bytes(now, &plaintext),
            Err(error) => {
                tracing::debug!(%error, "control connection lost");
                self.drop_connection();
                self.machine.control_lost(now);
            }
        }

        self.execute_actions();
    }

    /// Lets time pass.
    pub(super) fn on_time(&mut self, interrupts: &dyn Interrupts) -> Result<(), NativeError> {
        self.machine.handle_timeout(Instant::now());
        self.execute_actions();
        self.resume_if_wanted(interrupts)?;

        match &self.failed {
            Some(failure @ ProtocolFailure::Unproven) => {
                Err(NativeError::Identity(failure.to_string()))
            }
            Some(failure) => Err(NativeError::Protocol(failure.to_string())),
            None => Ok(()),
        }
    }

    /// Executes what the machine decided; what is for others waits.
    fn execute_actions(&mut self) {
        while let Some(action) = self.machine.poll_action() {
            match action {
                Action::Send(bytes) => self.send(&bytes),
                Action::Resumed => {}
                Action::ConnectAgain => self.is_lost = true,
                Action::Failed(failure) => self.failed = Some(failure),
                other => self.arrived.push_back(other),
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        if connection.tls.send(&connection.fd, bytes).is_err() {
            self.drop_connection();
            self.machine.control_lost(Instant::now());
        }
    }

    /// Gives a lost connection up. The end of a connection in order would end the session at the
    /// server.
    fn drop_connection(&mut self) {
        if let Some(connection) = self.connection.take() {
            let _ = sockopt::set_reset_on_close(&connection.fd);
        }
    }

    /// Connects again and continues the session.
    fn resume_if_wanted(&mut self, interrupts: &dyn Interrupts) -> Result<(), NativeError> {
        let is_due = self.retry.due.is_none_or(|due| due <= Instant::now());
        if !(self.is_lost && is_due) {
            return Ok(());
        }

        self.drop_connection();
        let connection = match reconnect(&self.target, &self.peer, &self.tls, interrupts) {
            Ok(connection) => connection,
            Err(error) => return self.retry.after(error),
        };
        self.retry = Retry::default();
        self.is_lost = false;

        let secret = hex::decode(&self.welcome.resume_secret).unwrap_or_default();
        let point = self.machine.resume_point();
        let proved = connection.tls.exporter().zip(point);
        let proof = proved.map(|(exporter, point)| {
            resume_proof(&secret, &exporter, point.number, point.received)
        });

        self.connection = Some(connection);
        self.resumed += 1;
        self.machine
            .resume(Instant::now(), &proof.unwrap_or_default());
        self.execute_actions();

        Ok(())
    }

    /// One turn of the loop: waits, serves the control connection, and lets time pass.
    pub(super) fn turn(
        &mut self,
        events: &mut EventLoop<'_>,
        timeout: Duration,
    ) -> Result<(), NativeError> {
        // A closed descriptor leaves the event loop by itself.
        let number = self.resumed();
        if events.watched != Some(number)
            && let Some(fd) = self.control_fd()
        {
            events.epoll.add(fd, CONTROL, Interest::READ)?;
            events.watched = Some(number);
        }

        events.wait(timeout.min(STEP))?;
        if events.take_ready(CONTROL) {
            self.on_control();
        }

        self.on_time(events.interrupts)
    }

    /// Lets a phase without events of its own pass.
    pub(super) fn pause(
        &mut self,
        duration: Duration,
        events: &mut EventLoop<'_>,
    ) -> Result<(), NativeError> {
        let end = Instant::now() + duration;
        while Instant::now() < end {
            self.turn(events, end.saturating_duration_since(Instant::now()))?;
        }

        Ok(())
    }

    /// Waits for an action that `pick` takes.
    pub(super) fn await_action<T>(
        &mut self,
        timeout: Duration,
        events: &mut EventLoop<'_>,
        pick: impl Fn(&Action) -> Option<T>,
    ) -> Result<T, NativeError> {
        let end = Instant::now() + timeout;
        loop {
            let mut arrived = self.arrived.iter().enumerate();
            if let Some((place, picked)) = arrived.find_map(|(n, action)| Some((n, pick(action)?)))
            {
                self.arrived.remove(place);
                return Ok(picked);
            }
            if let Some(error) = self.take_refusal() {
                return Err(error);
            }

            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(NativeError::Protocol(
                    "the server does not answer".to_owned(),
                ));
            }

            self.turn(events, left)?;
        }
    }

    fn take_refusal(&mut self) -> Option<NativeError> {
        let place = self.arrived.iter().position(|action| {
            matches!(
                action,
                Action::Refused(_) | Action::PhaseRefused(_) | Action::Close
            )
        })?;
        match self.arrived.remove(place)? {
            Action::Refused(Refusal { clause, text, .. })
            | Action::PhaseRefused(Refusal { clause, text, .. }) => {
                Some(NativeError::Refused { clause, text })
            }
            _ => Some(NativeError::Protocol(
                "the server ended the session".to_owned(),
            )),
        }
    }
}
