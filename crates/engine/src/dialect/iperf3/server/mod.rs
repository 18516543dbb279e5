//! A server: one control thread, any number of sessions.
//!
//! Listener, pending connections and sessions are different types; a session that ends,
//! misbehaves or is refused does not affect the others. Nothing here blocks: every wait is a deadline of the one
//! loop. The `registry` decides what concerns more than one session.

mod accepting;
mod acceptor;
mod blocking_pool;
mod context;
mod control_socket;
mod flows;
mod iperf2;
mod log;
mod pending;
pub(crate) mod registry;
mod session;
mod stream_numbers;
mod udp_listener;
mod work_queue;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use linerate_iperf3::ErrorCode;
use linerate_iperf3::server::{ServerAction, ServerInput};
use linerate_model::policy::Iperf2Listener;
use linerate_model::sink::PeerRequests;
use linerate_model::spec::ServerSpec;
use linerate_model::{Failure, FailureKind, ServerEvent, ServerReporter, Transport};
use linerate_sys::poll::{self, Epoll, Interest, Ready};
use linerate_sys::{clock, cpu, scheduling};

use crate::dialect::iperf2::server::Iperf2Server;
use crate::dialect::iperf3::error::failed;
use crate::interrupts::Interrupts;
use crate::server::admission::Admission;
use crate::server::closing::ClosingConnections;
use crate::server::listen::Listeners;
use crate::server::quotas::CHECK_NS;
use crate::server::server_stats::ServerStats;
use acceptor::Acceptor;
use blocking_pool::BlockingPool;
use context::Context;
use registry::{SessionRegistry, Stage};
use session::{Admitted, CONTROL_READ_BYTES, ControlInput, ServerSockets, Session, Tokens};
use udp_listener::UdpListener;

/// Serves until interrupted, or for one test. `requests` makes what clients may request beside their results.
///
/// # Errors
/// When the server cannot listen, cannot report, or was interrupted while no test could report it.
pub fn run(
    spec: &ServerSpec,
    requests: PeerRequests,
    reporter: &mut dyn ServerReporter,
    interrupts: &dyn Interrupts,
) -> Result<(), Failure> {
    run_after_open(spec, requests, reporter, interrupts, || Ok(()))
}

/// As [`run`]; calls `opened` when all ports are bound, before the first client is accepted.
///
/// # Errors
/// As [`run`], and that of `opened`.
pub fn run_after_open(
    spec: &ServerSpec,
    requests: PeerRequests,
    reporter: &mut dyn ServerReporter,
    interrupts: &dyn Interrupts,
    opened: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let server = Server::open(spec, requests, reporter, interrupts)?;
    // Clients wait for answers of this thread while hundreds of others move data; without the favour they wait longer. It
    // needs a privilege that `opened` may give up.
    let _ = scheduling::wake_soon();
    opened()?;
    server.serve()
}

struct Server<'a> {
    out: &'a mut dyn ServerReporter,
    interrupts: &'a dyn Interrupts,
    context: Context,
    epoll: Epoll,
    listeners: Listeners,
    udp: Option<UdpListener>,
    /// Tests without a control connection.
    iperf2: Option<Iperf2Server>,
    acceptor: Acceptor,
    admission: Admission,
    registry: SessionRegistry,
    pool: BlockingPool,
    sessions: BTreeMap<u64, Session>,
    closing: ClosingConnections,
    stats: ServerStats,
    next_progress: Option<Instant>,
    next_look: Option<Instant>,
    /// See [`Interrupts::alive`].
    next_heartbeat: Option<Instant>,
    test_number: u32,
    /// Sessions that ended since the last announcement.
    ended: u32,
    idle_since: Instant,
    /// The reports of running tests contain the interrupt.
    interrupt_is_reported: bool,
}

// Tokens of the event loop. A connection or session owns four: its control connection, its notices, its UDP streams,
// and one that is never used.
const LISTENER: u64 = 0;
const SCTP_LISTENER: u64 = 1;
const UDP_LISTENER: u64 = 2;
const INTERRUPT: u64 = 3;
const CLOSING: u64 = 4;
const IPERF2: u64 = 5;
const POOL: u64 = 6;
const FIRST_ID: u64 = 2;
const TOKENS_PER_ID: u64 = 4;

fn tokens(id: u64) -> Tokens {
    let first = id * TOKENS_PER_ID;
    Tokens {
        control: first,
        notice: first + 1,
        flows: first + 2,
        sctp_listener: SCTP_LISTENER,
        udp_listener: UDP_LISTENER,
    }
}

const READ: Interest = Interest::READ;
/// Default period of progress events.
const PROGRESS_DEFAULT: Duration = Duration::from_secs(1);
/// Time clients have to take note that the server ends.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(1);
/// Poll period of that wait.
const CLOSING_POLL: Duration = Duration::from_millis(5);

impl<'a> Server<'a> {
    fn open(
        spec: &ServerSpec,
        requests: PeerRequests,
        out: &'a mut dyn ServerReporter,
        interrupts: &'a dyn Interrupts,
    ) -> Result<Self, Failure> {
        if let Some(cpu) = spec.local.cpu {
            cpu::pin_process(cpu as usize).map_err(failed(ErrorCode::Affinity))?;
        }
        let epoll = Epoll::new().map_err(failed(ErrorCode::InitTest))?;
        let (listeners, warning) = Listeners::open(&spec.local)?;
        let mut spec = spec.clone();
        spec.local.port = listeners.address().port();
        if let Some(text) = warning {
            out.warning(&text);
        }
        epoll
            .add(listeners.tcp(), LISTENER, READ)
            .map_err(failed(ErrorCode::Listen))?;
        epoll
            .add(interrupts.fd(), INTERRUPT, READ)
            .map_err(failed(ErrorCode::InitTest))?;
        let admission = Admission::new(&spec.policy, spec.one_off).within_host();
        let registry = SessionRegistry::new(spec.policy.allow_split_address);
        let iperf2 = iperf2::open(&spec)?;
        if let Some(iperf2) = &iperf2 {
            epoll
                .add(iperf2.fd(), IPERF2, READ)
                .map_err(failed(ErrorCode::InitTest))?;
        }
        let context = Context::new(spec, requests)?;
        let pool = BlockingPool::new(context.login_checker()?).map_err(failed(ErrorCode::InitTest))?;
        epoll.add(pool.fd(), POOL, READ).map_err(failed(ErrorCode::InitTest))?;
        let spec = &context.spec;
        let acceptor = Acceptor::new(FIRST_ID, spec.policy.iperf2 == Iperf2Listener::SamePort);
        Ok(Self {
            out,
            interrupts,
            context,
            pool,
            epoll,
            listeners,
            udp: None,
            iperf2,
            closing: ClosingConnections::new(acceptor.closing_max()),
            acceptor,
            admission,
            registry,
            sessions: BTreeMap::new(),
            stats: ServerStats::new(Instant::now()),
            next_progress: None,
            next_look: None,
            next_heartbeat: None,
            test_number: 0,
            ended: 1,
            idle_since: Instant::now(),
            interrupt_is_reported: false,
        })
    }

    fn serve(mut self) -> Result<(), Failure> {
        match self.serve_to_the_end() {
            Err(failure) if failure.kind == FailureKind::Interrupted && self.interrupt_is_reported => Ok(()),
            outcome => outcome,
        }
    }

    fn serve_to_the_end(&mut self) -> Result<(), Failure> {
        self.announce()?;
        let address = self.listeners.address();
        self.out.server_event(&ServerEvent::Listening { address });
        let mut events = Vec::new();
        loop {
            self.next_heartbeat = self.interrupts.alive();
            let wait = self.epoll.wait(&mut events, self.timeout());
            wait.map_err(|e| ErrorCode::Select.failure(Some(&e.to_string())))?;
            for event in std::mem::take(&mut events) {
                self.dispatch(event)?;
            }
            self.on_time()?;
            self.advance_iperf2();
            self.advance_work();
            self.advance_sessions();
            if self.ended > 0 && self.sessions.is_empty() {
                if self.context.spec.one_off {
                    return Ok(());
                }
                self.announce()?;
            }
            if self.idle_for_too_long()? {
                return Ok(());
            }
        }
    }

    /// Tells that the server is idle. Every session since the last time was a test, as in the original.
    fn announce(&mut self) -> Result<(), Failure> {
        self.test_number = self.test_number.saturating_add(std::mem::take(&mut self.ended));
        self.idle_since = Instant::now();
        self.out
            .listening(self.context.spec.local.port, self.test_number)
            .map_err(|e| sink_failure(&e))
    }

    fn timeout(&self) -> Option<Duration> {
        let others = [
            self.acceptor.next_deadline(),
            self.registry.next_timeout(),
            self.closing.next_deadline(),
            self.idle_deadline(),
            self.next_progress,
            self.next_look,
            self.next_heartbeat,
            self.iperf2.as_ref().and_then(Iperf2Server::deadline),
        ];
        let sessions = self.sessions.values().filter_map(Session::due);
        let nearest = sessions.chain(others.into_iter().flatten()).min();
        nearest.map(|t| t.saturating_duration_since(Instant::now()))
    }

    fn dispatch(&mut self, event: Ready) -> Result<(), Failure> {
        match event.token {
            LISTENER | SCTP_LISTENER => self.accept(event.token),
            UDP_LISTENER => {
                self.on_datagrams();
                Ok(())
            }
            INTERRUPT => self.on_interrupt(),
            CLOSING => {
                self.closing.poll_soon();
                Ok(())
            }
            POOL => {
                self.take_outcomes();
                Ok(())
            }
            // It advances in every turn.
            IPERF2 => Ok(()),
            token => {
                let id = token / TOKENS_PER_ID;
                if !self.sessions.contains_key(&id) {
                    return self.on_pending(id);
                }
                let own = tokens(id);
                if token == own.control {
                    self.on_control(id);
                } else if let Some(session) = self.sessions.get_mut(&id) {
                    if token == own.flows {
                        session.on_flows();
                    } else {
                        session.on_time();
                    }
                    self.forward_inputs(id);
                }
                Ok(())
            }
        }
    }

    fn on_control(&mut self, id: u64) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let mut buffer = [0; CONTROL_READ_BYTES];
        let now = Instant::now();
        match session.read_control(&mut buffer) {
            ControlInput::Bytes(bytes) => self.registry.handle_control(now, id, bytes),
            ControlInput::Nothing => {}
            ControlInput::Eof => self.registry.handle_control_eof(now, id),
            ControlInput::Failed(cause) => self.registry.handle_control_error(now, id, &cause),
        }
        let sockets = ServerSockets {
            epoll: &self.epoll,
            tokens: tokens(id),
            listeners: &mut self.listeners,
            udp: &mut self.udp,
        };
        session.pause_reading(self.registry.has_work(id), &sockets);
        session.follow_unsent(&sockets);
    }

    /// Hands out work while a thread is free for it.
    fn advance_work(&mut self) {
        while self.pool.has_room()
            && let Some((id, work)) = self.registry.next_work(Instant::now())
        {
            self.pool.begin(id, work);
        }
    }

    fn take_outcomes(&mut self) {
        for (id, outcome) in self.pool.take_outcomes() {
            self.registry.handle_outcome(Instant::now(), id, outcome);
            let Some(session) = self.sessions.get_mut(&id) else {
                continue;
            };
            let sockets = ServerSockets {
                epoll: &self.epoll,
                tokens: tokens(id),
                listeners: &mut self.listeners,
                udp: &mut self.udp,
            };
            session.pause_reading(false, &sockets);
            self.forward_inputs(id);
        }
    }

    /// Forwards the inputs of a session to the registry.
    fn forward_inputs(&mut self, id: u64) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        for mut input in session.take_inputs() {
            if let ServerInput::Results(results) = &mut input {
                results.ran_beside = Some(self.stats.concurrent_max(id));
            }
            self.registry.handle_local(Instant::now(), id, input);
        }
    }

    /// Carries out what the registry decided, until nothing is left to do.
    fn advance_sessions(&mut self) {
        loop {
            while let Some(id) = self.registry.next_ready() {
                while let Some(action) = self.registry.poll_action(id) {
                    self.act(id, action);
                    self.forward_inputs(id);
                }
                if self.registry.stage(id) != Some(Stage::Negotiating) {
                    self.acceptor.forget(id);
                }
            }
            match self.registry.next_turn(&mut self.admission) {
                Some(id) => self.begin(id),
                None => break,
            }
        }
        self.close_unused_listeners();
    }

    fn act(&mut self, id: u64, action: ServerAction) {
        if let ServerAction::Close(outcome) = action {
            return self.close_session(id, outcome);
        }
        if let ServerAction::Accepted(test) = &action
            && !self.registry.agree(Instant::now(), id, test, &mut self.admission)
        {
            return;
        }
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let starts = matches!(action, ServerAction::StartClock);
        let mut sockets = ServerSockets {
            epoll: &self.epoll,
            tokens: tokens(id),
            listeners: &mut self.listeners,
            udp: &mut self.udp,
        };
        let admitted = Admitted {
            first_position: self.registry.first_position(id),
            quota: self.admission.quotas().quota(id),
        };
        session.act(action, &self.context, admitted, &mut sockets);
        if starts {
            self.note_start(id);
        }
    }

    /// Data ports other than the TCP one are open only while a session uses them.
    fn close_unused_listeners(&mut self) {
        let used = |t: Transport| self.sessions.values().any(|s| s.transport() == Some(t));
        if self.udp.is_some() && !used(Transport::Udp) {
            self.udp = None;
        }
        if self.listeners.sctp().is_some() && !used(Transport::Sctp) {
            self.listeners.close_sctp();
        }
    }

    fn on_time(&mut self) -> Result<(), Failure> {
        let now = Instant::now();
        self.closing.expire(now);
        self.registry.handle_timeout(now);
        let due: Vec<u64> = self
            .sessions
            .iter()
            .filter(|(_, s)| s.due().is_some_and(|t| t <= now))
            .map(|(&id, _)| id)
            .collect();
        for id in due {
            if let Some(session) = self.sessions.get_mut(&id) {
                session.on_time();
            }
            self.forward_inputs(id);
        }
        if self.acceptor.pause_is_over(now) {
            for (listener, token) in self.listeners.all([LISTENER, SCTP_LISTENER]) {
                let _ = self.epoll.add(listener, token, READ);
            }
        }
        self.on_header_timeouts(now)?;
        self.check_limits(now);
        self.report_progress_when_due(now);
        Ok(())
    }

    fn check_limits(&mut self, now: Instant) {
        if !self.admission.quotas().needs_checks() {
            self.next_look = None;
            return;
        }
        if self.next_look.is_some_and(|t| now < t) {
            return;
        }
        self.next_look = Some(now + Duration::from_nanos(CHECK_NS));
        let totals: Vec<(u64, u64)> = self
            .sessions
            .iter_mut()
            .map(|(&id, s)| (id, s.moved()))
            .chain(self.iperf2.iter_mut().flat_map(Iperf2Server::moved))
            .map(|(id, m)| (id, m.received_bytes.saturating_add(m.sent_bytes)))
            .collect();
        for (id, reason) in self.admission.quotas().check(clock::monotonic_ns(), totals.into_iter()) {
            if let Some(session) = self.sessions.get_mut(&id) {
                session.exceed(reason);
            } else if let Some(iperf2) = &mut self.iperf2 {
                iperf2.exceed(id, reason);
            }
            self.forward_inputs(id);
        }
    }

    fn on_interrupt(&mut self) -> Result<(), Failure> {
        let asked_to_stop = self.interrupts.take();
        if self.interrupts.take_reload() {
            self.reload();
        }
        let Some(signal_text) = asked_to_stop else {
            return Ok(());
        };
        self.out.server_event(&ServerEvent::Stopping {
            signal_text: signal_text.clone(),
        });
        self.interrupt_is_reported = !self.sessions.is_empty();
        for session in self.sessions.values_mut() {
            session.stop_early();
        }
        self.terminate_iperf2();
        self.registry.terminate(Instant::now(), &signal_text);
        self.advance_sessions();
        self.flush_closing();
        Err(Failure {
            kind: FailureKind::Interrupted,
            message: format!("the server has terminated by signal {signal_text}"),
            code: None,
        })
    }

    fn reload(&mut self) {
        match self.context.reload() {
            Ok(()) => self.out.server_event(&ServerEvent::Reloaded),
            Err(text) => self
                .out
                .warning(&format!("the lists of addresses stay as they were: {text}")),
        }
    }

    /// Lets the last messages reach the clients: a connection that is closed too early takes them back. Another signal
    /// ends the wait.
    fn flush_closing(&mut self) {
        let end = Instant::now() + CLOSING_TIMEOUT;
        while !self.closing.is_empty() && Instant::now() < end {
            self.closing.look(Instant::now());
            match poll::wait_fd(self.interrupts.fd(), READ, Some(CLOSING_POLL)) {
                Ok(true) if self.interrupts.take().is_none() => {}
                Ok(false) => {}
                _ => return,
            }
        }
    }

    fn idle_deadline(&self) -> Option<Instant> {
        let timeout = self.context.spec.idle_timeout?;
        (self.sessions.is_empty() && self.acceptor.is_empty()).then(|| self.idle_since + timeout)
    }

    /// Re-opens the listener after a long idle time, in case its interface came and went; true when a one-off server
    /// gives up instead.
    fn idle_for_too_long(&mut self) -> Result<bool, Failure> {
        if self.idle_deadline().is_none_or(|t| t > Instant::now()) {
            return Ok(false);
        }
        if self.context.spec.one_off {
            return Ok(true);
        }
        self.listeners.reopen(&self.context.spec.local)?;
        self.epoll
            .add(self.listeners.tcp(), LISTENER, READ)
            .map_err(failed(ErrorCode::Listen))?;
        self.idle_since = Instant::now();
        self.out.reopened().map_err(|e| sink_failure(&e))?;
        Ok(false)
    }
}

fn sink_failure(error: &linerate_model::SinkError) -> Failure {
    Failure {
        kind: FailureKind::Error,
        message: error.to_string(),
        code: None,
    }
}
