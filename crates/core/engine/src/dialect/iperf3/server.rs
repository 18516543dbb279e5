//! The server side: one control connection per client, any number of clients.
//!
//! The `registry` decides what concerns more than one session. A session that ends, misbehaves or
//! is refused does not affect the others.

mod connections;
mod context;
mod control_socket;
mod flows;
mod log;
pub(crate) mod registry;
mod session;
mod stream_numbers;
mod tokens;
mod work;

use std::net::SocketAddr;
use std::time::Instant;

use linerate_iperf3::wire::server::{ServerAction, ServerInput};
use linerate_iperf3::wire::{COOKIE_WIRE_LEN, ErrorCode, State, udp_header};
use linerate_model::service::{HandshakeCause, RefusalReason};
use linerate_model::sink::PeerRequests;
use linerate_model::spec::ServerSpec;
use linerate_model::{Failure, ServerEvent, ServerReporter, Transport};
use linerate_sys::cpu;
use linerate_sys::error::io_text;

use crate::dialect::iperf3::control_connection::Received;
use crate::dialect::iperf3::error::failed;
use crate::error::{EngineError, failure};
use crate::interrupts::Interrupts;
use crate::server::blocking_pool::BlockingPool;
use crate::server::{
    Accepted, Admission, FirstDatagram, Intake, Recognised, Server, ServerContext, ServerDialect,
    SessionTable, Sessions, Stopped,
};
use context::Context;
use registry::{SessionRegistry, Stage};
use session::{CONTROL_READ_BYTES, Session};
use tokens::{CONTROL, FLOWS, POOL};
use work::Work;

/// Serves until interrupted, or for one test. `requests` makes what clients may request beside
/// their results.
///
/// # Errors
/// When the server cannot listen, cannot report, or was interrupted while no test could report it.
pub fn run(
    spec: &ServerSpec,
    requests: PeerRequests,
    reporter: &mut dyn ServerReporter,
    interrupts: &dyn Interrupts,
) -> Result<(), Failure> {
    let mut server = listening(spec, reporter, interrupts)?;
    let dialect = dialect(server.spec(), requests)?;
    server.add(Box::new(dialect))?;
    server.run(|| Ok(()))
}

/// A server that listens and has no dialect yet. Its errors have the codes of iperf3.
pub(crate) fn listening<'a>(
    spec: &ServerSpec,
    reporter: &'a mut dyn ServerReporter,
    interrupts: &'a dyn Interrupts,
) -> Result<Server<'a>, Failure> {
    if let Some(cpu) = spec.local.cpu {
        // Before workers exist, which inherit the affinity (sched_setaffinity(2)).
        cpu::pin_process(cpu as usize).map_err(failed(ErrorCode::Affinity))?;
    }

    let mut server = Server::new(spec, reporter, interrupts)?;
    server.listen()?;
    Ok(server)
}

/// The dialect of a server.
pub(crate) fn dialect(
    spec: &ServerSpec,
    requests: PeerRequests,
) -> Result<impl ServerDialect + use<>, Failure> {
    Iperf3Server::new(spec, requests)
}

/// Clients with a control connection, their sessions and the sockets of both.
struct Iperf3Server {
    context: Context,
    registry: SessionRegistry,
    pool: BlockingPool<Work, ServerInput>,
    sessions: Sessions<Session>,
    test_number: u32,
    /// Sessions that ended since the last announcement.
    ended: u32,
}

/// Name of the dialect.
const NAME: &str = "iperf3";

impl Iperf3Server {
    fn new(spec: &ServerSpec, peer_requests: PeerRequests) -> Result<Self, Failure> {
        let sessions = Sessions::new().map_err(failed(ErrorCode::InitTest))?;
        let spec = spec.clone();
        let allow_split_address = spec.policy.allow_split_address;
        let context = Context {
            spec,
            peer_requests,
        };
        let checker = context.login_checker()?;
        let pool = BlockingPool::new(move |work| work::run(work, checker.as_ref()));
        let pool = pool.map_err(failed(ErrorCode::InitTest))?;
        sessions
            .watch(pool.fd(), 0, POOL)
            .map_err(failed(ErrorCode::InitTest))?;

        Ok(Self {
            registry: SessionRegistry::new(allow_split_address),
            context,
            pool,
            sessions,
            test_number: 0,
            ended: 1,
        })
    }

    /// Reports that the server is idle. Every session since the last time was a test, as in the
    /// original.
    fn announce(&mut self, server: &mut ServerContext<'_>) -> Result<(), Failure> {
        self.test_number = self
            .test_number
            .saturating_add(std::mem::take(&mut self.ended));
        let port = self.context.spec.local.port;
        let announced = server.out.listening(port, self.test_number);
        announced.map_err(failure)
    }

    fn on_control(&mut self, id: u64) {
        let Some((session, epoll)) = self.sessions.with_epoll(id) else {
            return;
        };
        let mut buffer = [0; CONTROL_READ_BYTES];
        let now = Instant::now();
        match session.control.receive(&mut buffer) {
            Received::Bytes(bytes) => self.registry.handle_control(now, id, bytes),
            Received::Nothing => {}
            Received::Eof => self.registry.handle_control_eof(now, id),
            Received::Failed(error) => {
                self.registry
                    .handle_control_error(now, id, &io_text(&error));
            }
        }

        // Bytes behind a login or a result are not parsed before its outcome is known; they stay in
        // the kernel.
        session.pause_reading(self.registry.has_work(id), epoll);
        session.follow_unsent(epoll);
    }

    /// Hands out work while a thread is free for it.
    fn advance_work(&mut self) {
        while self.pool.has_room()
            && let Some((id, work)) = self.registry.next_work(Instant::now())
        {
            self.pool.begin(id, work);
        }
    }

    fn take_outcomes(&mut self, server: &mut ServerContext<'_>) {
        for (id, outcome) in self.pool.take_outcomes() {
            self.registry.handle_outcome(Instant::now(), id, outcome);
            if let Some((session, epoll)) = self.sessions.with_epoll(id) {
                session.pause_reading(false, epoll);
                self.forward_inputs(id, server);
            }
        }
    }

    /// Forwards the inputs of a session to the registry, and notes when it is due.
    fn forward_inputs(&mut self, id: u64, server: &ServerContext<'_>) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let due = session.due;
        for mut input in session.take_inputs() {
            if let ServerInput::Results(results) = &mut input {
                results.ran_beside = Some(server.stats.concurrent_max(id));
            }

            self.registry.handle_local(Instant::now(), id, input);
        }

        self.sessions.set_due(id, due);
    }

    /// Carries out what the registry decided, until nothing is left to do.
    fn advance_sessions(&mut self, server: &mut ServerContext<'_>) {
        let before = self.sessions.len();
        loop {
            while let Some(id) = self.registry.next_ready() {
                while let Some(action) = self.registry.poll_action(id) {
                    self.execute(id, action, server);
                    self.forward_inputs(id, server);
                }

                if self.registry.stage(id) != Some(Stage::Negotiating) {
                    server.pending_limit.leave(id);
                }
            }

            match self.registry.next_turn(&mut server.admission) {
                Some(id) => self.begin(id, server),
                None => break,
            }
        }

        if self.sessions.len() < before {
            self.close_unused_listeners(server);
        }
    }

    fn execute(&mut self, id: u64, action: ServerAction, server: &mut ServerContext<'_>) {
        if let ServerAction::Close(outcome) = action {
            return self.close_session(id, outcome, server);
        }
        if let ServerAction::Accepted(test) = &action
            && !self
                .registry
                .agree(Instant::now(), id, test, &mut server.admission)
        {
            return;
        }

        let Some((session, epoll)) = self.sessions.with_epoll(id) else {
            return;
        };
        let starts = matches!(action, ServerAction::StartClock);
        let first_position = self.registry.first_position(id);
        session.execute(action, &self.context, first_position, epoll, server);

        if starts {
            self.log_start(id, server);
        }
    }

    /// Data ports other than the TCP one are open only while a session uses them.
    fn close_unused_listeners(&mut self, server: &mut ServerContext<'_>) {
        let used = |t: Transport| self.sessions.values().any(|s| s.transport() == Some(t));
        if !used(Transport::Udp) {
            server.udp.close(NAME);
        }

        if !used(Transport::Sctp) {
            server.listeners.close_sctp();
        }
    }

    /// What is due of the registry and of the sessions, and what others changed of those.
    fn on_time(&mut self, server: &ServerContext<'_>) {
        let now = Instant::now();
        let is_place_wanted = server.admission.is_place_wanted(now);
        self.registry.handle_timeout(now);

        for id in self.sessions.take_ready() {
            if let Some(session) = self.sessions.get_mut(&id) {
                session.on_time(is_place_wanted);
                self.forward_inputs(id, server);
            }
        }
    }
}

impl ServerDialect for Iperf3Server {
    fn name(&self) -> &'static str {
        NAME
    }

    fn start(&mut self, server: &mut ServerContext<'_>) -> Result<(), Failure> {
        self.announce(server)?;
        let address = server.listeners.address();
        server.out.server_event(&ServerEvent::Listening { address });
        Ok(())
    }

    /// A connection that is no test of another dialect waits as a cookie that is not complete.
    fn recognise(&self, first_bytes: &[u8]) -> Recognised {
        if first_bytes.len() < COOKIE_WIRE_LEN {
            Recognised::NeedMore(COOKIE_WIRE_LEN)
        } else {
            Recognised::Mine
        }
    }

    fn intake(&self, admission: &Admission) -> Intake {
        if self.sessions.is_closed() {
            Intake::Closed
        } else if self.registry.is_busy(admission) {
            Intake::Refused(RefusalReason::Busy)
        } else {
            Intake::Open
        }
    }

    fn accept(
        &mut self,
        connection: Accepted,
        server: &mut ServerContext<'_>,
    ) -> Result<(), Failure> {
        self.add_connection(connection, server)
    }

    /// A hello is recognised by its length alone, its content depends on the age and byte order of
    /// the client; anything longer is late data of an earlier test.
    fn recognises_datagram(&self, first_bytes: &[u8]) -> bool {
        first_bytes.len() == udp_header::HELLO.len()
    }

    fn first_datagram(&mut self, datagram: &FirstDatagram, server: &mut ServerContext<'_>) {
        self.on_hello(datagram, server);
    }

    fn refusal(&self, reason: RefusalReason) -> Vec<u8> {
        match reason {
            RefusalReason::Address => error_message(ErrorCode::AuthTest),
            // Also to a stream without a session.
            _ => vec![State::AccessDenied.byte()],
        }
    }

    fn header_timeout(
        &mut self,
        peer: SocketAddr,
        server: &mut ServerContext<'_>,
    ) -> Result<Vec<u8>, Failure> {
        let explanation = ErrorCode::RecvCookie.message(Some("Connection timed out"));
        server.log_failed_handshake(peer, HandshakeCause::Cookie, explanation);
        if !self.sessions.is_empty() || self.ended > 0 {
            // A stock server in a test refuses every other connection this way.
            return Ok(self.refusal(RefusalReason::Busy));
        }

        self.report_header_timeout(server)?;
        Ok(error_message(ErrorCode::RecvCookie))
    }

    fn evict(&mut self, id: u64, reason: RefusalReason, _server: &mut ServerContext<'_>) {
        self.registry.evict(Instant::now(), id, reason);
    }

    fn sessions(&self) -> &dyn SessionTable {
        &self.sessions
    }

    fn sessions_mut(&mut self) -> &mut dyn SessionTable {
        &mut self.sessions
    }

    fn deadline(&self) -> Option<Instant> {
        let next = [self.sessions.deadline(), self.registry.next_timeout()];
        next.into_iter().flatten().min()
    }

    fn advance(&mut self, server: &mut ServerContext<'_>) -> Result<(), Failure> {
        for (id, kind) in self.sessions.events() {
            match (kind, self.sessions.get_mut(&id)) {
                (POOL, _) => self.take_outcomes(server),
                (CONTROL, Some(_)) => self.on_control(id),
                (FLOWS, Some(session)) => session.on_flows(&mut server.udp),
                _ => {}
            }
        }

        self.on_time(server);
        self.advance_work();
        self.advance_sessions(server);

        if self.ended > 0 && self.sessions.is_empty() {
            if self.context.spec.one_off {
                self.sessions.close();
            } else {
                self.announce(server)?;
            }
        }

        Ok(())
    }

    fn stop(&mut self, signal_text: &str, server: &mut ServerContext<'_>) -> Stopped {
        let stopped = if self.sessions.is_empty() {
            Stopped::Ended
        } else {
            Stopped::Reported
        };
        self.sessions.wake_all().for_each(Session::stop_early);

        self.registry.terminate(Instant::now(), signal_text);
        self.advance_sessions(server);
        stopped
    }

    fn failure(&self, error: EngineError) -> Failure {
        error.into()
    }
}

/// The last message to a client without a session.
fn error_message(code: ErrorCode) -> Vec<u8> {
    let mut message = vec![State::ServerError.byte()];
    // `i_errno`, then `errno`, each as a 32-bit integer in network byte order
    // (iperf_handle_message_client in iperf_client_api.c).
    message.extend_from_slice(&code.number().to_be_bytes());
    message.extend_from_slice(&0i32.to_be_bytes());
    message
}
