//! A server: one control thread, any number of sessions.
//!
//! The listener, connections that have not said who they are, and sessions are different types; a session that ends,
//! misbehaves or is refused changes nothing for the others. Nothing here blocks: every wait is a deadline of the one
//! loop. What concerns more than one session is decided at the `desk`.

mod accept_pause;
mod access;
mod context;
mod control_socket;
mod crowd;
pub(crate) mod desk;
mod flows;
mod gate;
mod limits;
mod linger;
mod listen;
mod liveness;
mod login_guard;
mod neighbours;
mod numbering;
mod pending;
mod queue;
mod rate_guard;
mod record;
pub(crate) mod resource_quota;
mod rules;
mod session;
mod tally;
mod udp_door;
mod work_queue;
mod worker_pool;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use linerate_iperf3::server::{ServerAction, ServerInput};
use linerate_iperf3::{Cookie, ErrorCode};
use linerate_model::service::RefusalReason;
use linerate_model::sharing::Uncontrolled;
use linerate_model::spec::ServerSpec;
use linerate_model::{Failure, FailureKind, ServerEvent, ServerReporter, Transport};
use linerate_sys::poll::{self, Epoll, Interest, Ready};
use linerate_sys::{clock, cpu, scheduling};

pub(crate) use accept_pause::AcceptPause;
pub(crate) use crowd::{Bounds, Crowd};
pub(crate) use gate::accept;
pub(crate) use limits::Claim;
pub(crate) use liveness::{Liveness, least_bytes, patience};
pub(crate) use record::record;
pub(crate) use resource_quota::Needs;
pub(crate) use rules::{Rulebook, Rules};
pub(crate) use tally::Moved;

use crate::data_socket::failed;
use crate::interrupts::Interrupts;
use crate::iperf2::server::House;
use context::Context;
use desk::{Arrival, Desk, Stage};
use gate::{Gate, Newcomer, Word};
use limits::LOOK_NS;
use linger::Linger;
use listen::Listeners;
use session::{CONTROL_READ_BYTES, Doors, Heard, Session, Terms, Tokens};
use tally::Tally;
use udp_door::{Hello, UdpDoor};
use worker_pool::WorkerPool;

/// Serves until interrupted, or for one test.
///
/// # Errors
/// When the server cannot listen, cannot report, or was interrupted while no test could report it.
pub fn run(spec: &ServerSpec, reporter: &mut dyn ServerReporter, interrupts: &dyn Interrupts) -> Result<(), Failure> {
    run_after_open(spec, reporter, interrupts, || Ok(()))
}

/// As [`run`]; calls `opened` when all ports are bound, before the first client is accepted.
///
/// # Errors
/// As [`run`], and that of `opened`.
pub fn run_after_open(
    spec: &ServerSpec,
    reporter: &mut dyn ServerReporter,
    interrupts: &dyn Interrupts,
    opened: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let server = Server::open(spec, reporter, interrupts)?;
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
    udp: Option<UdpDoor>,
    /// Tests without a control connection.
    house: Option<House>,
    gate: Gate,
    desk: Desk,
    pool: WorkerPool,
    sessions: BTreeMap<u64, Session>,
    linger: Linger,
    tally: Tally,
    next_progress: Option<Instant>,
    next_look: Option<Instant>,
    /// See [`Interrupts::alive`].
    next_heartbeat: Option<Instant>,
    test_number: u32,
    /// Sessions that ended since the last announcement.
    ended: u32,
    idle_since: Instant,
    /// The reports of running tests have told of the interrupt.
    interrupt_is_reported: bool,
}

// Tokens of the event loop. A connection or session owns four: its control connection, its notices, its UDP streams,
// and one that is never used.
const LISTENER: u64 = 0;
const SCTP_LISTENER: u64 = 1;
const UDP_DOOR: u64 = 2;
const INTERRUPT: u64 = 3;
const LINGER: u64 = 4;
const HOUSE: u64 = 5;
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
        udp_door: UDP_DOOR,
    }
}

const READ: Interest = Interest::READ;
/// Time between two looks at what the running tests have moved, when no reports are written.
const PROGRESS_DEFAULT: Duration = Duration::from_secs(1);
/// Time clients have to take note that the server ends.
const FAREWELL: Duration = Duration::from_secs(1);
/// Time between two looks whether they have.
const FAREWELL_LOOK: Duration = Duration::from_millis(5);

impl<'a> Server<'a> {
    fn open(
        spec: &ServerSpec,
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
        let desk = Desk::new(&spec.sharing, spec.one_off).within(&spec.sharing);
        let house = neighbours::open(&spec)?;
        if let Some(house) = &house {
            epoll
                .add(house.fd(), HOUSE, READ)
                .map_err(failed(ErrorCode::InitTest))?;
        }
        let context = Context::new(spec)?;
        let pool = WorkerPool::new(context.login_checker()?).map_err(failed(ErrorCode::InitTest))?;
        epoll.add(pool.fd(), POOL, READ).map_err(failed(ErrorCode::InitTest))?;
        let spec = &context.spec;
        let gate = Gate::new(FIRST_ID, spec.sharing.uncontrolled == Uncontrolled::SamePort);
        Ok(Self {
            out,
            interrupts,
            context,
            pool,
            epoll,
            listeners,
            udp: None,
            house,
            linger: Linger::new(gate.leaving_max()),
            gate,
            desk,
            sessions: BTreeMap::new(),
            tally: Tally::new(Instant::now()),
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
            self.advance_house();
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
            self.gate.next_deadline(),
            self.desk.next_timeout(),
            self.linger.next_deadline(),
            self.idle_deadline(),
            self.next_progress,
            self.next_look,
            self.next_heartbeat,
            self.house.as_ref().and_then(House::deadline),
        ];
        let sessions = self.sessions.values().filter_map(Session::due);
        let nearest = sessions.chain(others.into_iter().flatten()).min();
        nearest.map(|t| t.saturating_duration_since(Instant::now()))
    }

    fn dispatch(&mut self, event: Ready) -> Result<(), Failure> {
        match event.token {
            LISTENER | SCTP_LISTENER => self.accept(event.token),
            UDP_DOOR => {
                self.on_datagrams();
                Ok(())
            }
            INTERRUPT => self.on_interrupt(),
            LINGER => {
                self.linger.look_soon();
                Ok(())
            }
            POOL => {
                self.take_outcomes();
                Ok(())
            }
            // It is looked after in every turn.
            HOUSE => Ok(()),
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
                    self.tell_desk(id);
                }
                Ok(())
            }
        }
    }

    fn accept(&mut self, token: u64) -> Result<(), Failure> {
        let mut newcomers = Vec::new();
        let listener = match token {
            SCTP_LISTENER => self.listeners.sctp(),
            _ => Some(self.listeners.tcp()),
        };
        if let Some(listener) = listener
            && let Err(error) = gate::accept(listener, &mut newcomers)
        {
            self.out_of_descriptors(token, &error);
        }
        for (fd, peer) in newcomers {
            self.greet(fd, peer);
        }
        Ok(())
    }

    /// Those who are here keep their service; of those who only take up room the greediest leaves.
    fn out_of_descriptors(&mut self, token: u64, error: &std::io::Error) {
        if self.gate.pause(Instant::now()) {
            self.out.warning(&format!("unable to accept a connection: {error}"));
        }
        let listener = match token {
            SCTP_LISTENER => self.listeners.sctp(),
            _ => Some(self.listeners.tcp()),
        };
        if let Some(listener) = listener {
            // It is taken in again when the pause is over; a second removal finds nothing.
            let _ = self.epoll.remove(listener);
        }
        self.linger.give_up();
        if let Some(victim) = self.gate.greediest() {
            self.crowd_out(victim);
        }
    }

    /// A new connection is a client or a stream of one; its first 37 bytes will tell.
    fn greet(&mut self, fd: OwnedFd, peer: SocketAddr) {
        if !self.context.access().admits(peer.ip()) {
            let reason = RefusalReason::Address;
            self.out.server_event(&ServerEvent::Refused { peer, reason });
            self.linger
                .add(gate::refuse(fd, ErrorCode::AuthTest), Vec::new(), &self.epoll, LINGER);
        } else if self.desk.refuses_unheard() {
            self.turn_away(fd, peer, RefusalReason::Busy);
        } else if let Newcomer::InsteadOf(victim) = self.gate.enter(fd, peer, &self.epoll) {
            self.crowd_out(victim);
        }
    }

    fn turn_away(&mut self, fd: OwnedFd, peer: SocketAddr, reason: RefusalReason) {
        self.out.server_event(&ServerEvent::Refused { peer, reason });
        self.linger.add(gate::turn_away(fd), Vec::new(), &self.epoll, LINGER);
    }

    fn crowd_out(&mut self, id: u64) {
        if let Some((fd, peer)) = self.gate.take(id, &self.epoll) {
            self.turn_away(fd, peer, RefusalReason::Crowded);
        } else {
            self.desk.turn_out(Instant::now(), id, RefusalReason::Crowded);
        }
        self.gate.forget(id);
    }

    fn on_pending(&mut self, id: u64) -> Result<(), Failure> {
        let Some(word) = self.gate.read(id, &self.epoll) else {
            return Ok(());
        };
        let Some((fd, peer)) = self.gate.take(id, &self.epoll) else {
            return Ok(());
        };
        let cookie = match word {
            Word::Cookie(cookie) => cookie,
            Word::Uncontrolled(opening) => {
                self.gate.forget(id);
                self.hand_over(fd, peer, &opening);
                return Ok(());
            }
        };
        match self.desk.arrive(Instant::now(), id, peer, cookie) {
            Arrival::Stream(owner) => {
                self.gate.forget(id);
                self.add_stream(owner, fd);
            }
            Arrival::Seat => {
                self.open_session(id, fd, peer, cookie)?;
                self.seat(id);
            }
            Arrival::Wait => {
                self.gate.forget(id);
                self.open_session(id, fd, peer, cookie)?;
            }
            Arrival::Refused(reason) => {
                self.gate.forget(id);
                self.turn_away(fd, peer, reason);
            }
        }
        Ok(())
    }

    fn open_session(&mut self, id: u64, fd: OwnedFd, peer: SocketAddr, cookie: Cookie) -> Result<(), Failure> {
        let sink = self.out.open_test().map_err(|e| sink_failure(&e))?;
        let session = Session::new(fd, peer, cookie, sink, &self.context);
        if self.epoll.add(session.control_fd(), tokens(id).control, READ).is_ok() {
            self.sessions.insert(id, session);
        } else {
            self.desk.depart(Instant::now(), id);
            self.gate.forget(id);
        }
        Ok(())
    }

    fn seat(&mut self, id: u64) {
        if let Some(session) = self.sessions.get(&id) {
            self.desk.seat(Instant::now(), id, self.context.setup(session.cookie()));
            self.tell_desk(id);
        }
    }

    fn add_stream(&mut self, owner: u64, fd: OwnedFd) {
        if let Some(session) = self.sessions.get_mut(&owner) {
            let doors = Doors {
                epoll: &self.epoll,
                tokens: tokens(owner),
                listeners: &mut self.listeners,
                udp: &mut self.udp,
            };
            session.add_stream(fd, &self.context, &doors);
            self.tell_desk(owner);
        }
    }

    fn on_control(&mut self, id: u64) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let mut buffer = [0; CONTROL_READ_BYTES];
        let now = Instant::now();
        match session.hear(&mut buffer) {
            Heard::Bytes(bytes) => self.desk.handle_control(now, id, bytes),
            Heard::Nothing => {}
            Heard::Eof => self.desk.handle_control_eof(now, id),
            Heard::Failed(cause) => self.desk.handle_control_error(now, id, &cause),
        }
        let doors = Doors {
            epoll: &self.epoll,
            tokens: tokens(id),
            listeners: &mut self.listeners,
            udp: &mut self.udp,
        };
        session.pause_reading(self.desk.has_work(id), &doors);
        session.follow_unsent(&doors);
    }

    /// Hands out work while a thread is free for it.
    fn advance_work(&mut self) {
        while self.pool.has_room()
            && let Some((id, work)) = self.desk.next_work(Instant::now())
        {
            self.pool.begin(id, work);
        }
    }

    fn take_outcomes(&mut self) {
        for (id, outcome) in self.pool.take_outcomes() {
            self.desk.handle_outcome(Instant::now(), id, outcome);
            let Some(session) = self.sessions.get_mut(&id) else {
                continue;
            };
            let doors = Doors {
                epoll: &self.epoll,
                tokens: tokens(id),
                listeners: &mut self.listeners,
                udp: &mut self.udp,
            };
            session.pause_reading(false, &doors);
            self.tell_desk(id);
        }
    }

    fn on_datagrams(&mut self) {
        // Hellos may come to light while another one is let in; nothing else would announce them.
        while let Some(door) = &mut self.udp {
            let hellos = door.hellos();
            for hello in &hellos {
                self.on_hello(hello);
            }
            if !self.udp.as_ref().is_some_and(UdpDoor::has_waiting) {
                return;
            }
        }
    }

    /// Lets a UDP stream in, if it is expected from there. Strangers get no answer and leave no trace.
    fn on_hello(&mut self, hello: &Hello) {
        if self.sessions.values_mut().any(|s| s.answer_again(hello.from)) {
            return;
        }
        let Some(owner) = self.desk.claimant(hello.from.ip()) else {
            return;
        };
        let (Some(door), Some(session)) = (&mut self.udp, self.sessions.get_mut(&owner)) else {
            return;
        };
        let reply = session.udp_reply();
        match door.admit(hello, &self.context.spec.local, &self.epoll, UDP_DOOR, reply) {
            Ok(fd) => self.add_stream(owner, fd),
            Err(error) => {
                session.fail(error);
                self.tell_desk(owner);
            }
        }
        self.advance_sessions();
    }

    /// Passes on what a session said.
    fn tell_desk(&mut self, id: u64) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        for mut input in session.take_said() {
            if let ServerInput::Results(results) = &mut input {
                results.ran_beside = Some(self.tally.beside_max(id));
            }
            self.desk.handle_local(Instant::now(), id, input);
        }
    }

    /// Carries out what the desk decided, until nothing is left to do.
    fn advance_sessions(&mut self) {
        loop {
            while let Some(id) = self.desk.next_ready() {
                while let Some(action) = self.desk.poll_action(id) {
                    self.act(id, action);
                    self.tell_desk(id);
                }
                if self.desk.stage(id) != Some(Stage::Asked) {
                    self.gate.forget(id);
                }
            }
            match self.desk.next_turn() {
                Some(id) => self.seat(id),
                None => break,
            }
        }
        self.close_unused_doors();
    }

    fn act(&mut self, id: u64, action: ServerAction) {
        if let ServerAction::Close(outcome) = action {
            return self.close_session(id, outcome);
        }
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let starts = matches!(action, ServerAction::StartClock);
        let mut doors = Doors {
            epoll: &self.epoll,
            tokens: tokens(id),
            listeners: &mut self.listeners,
            udp: &mut self.udp,
        };
        let terms = Terms {
            first_position: self.desk.first_position(id),
            quota: self.desk.ledger().quota(id),
        };
        session.act(action, &self.context, terms, &mut doors);
        if starts {
            self.note_start(id);
        }
    }

    /// Data ports other than the TCP one are open only while a session uses them.
    fn close_unused_doors(&mut self) {
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
        self.linger.expire(now);
        self.desk.handle_timeout(now);
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
            self.tell_desk(id);
        }
        if self.gate.pause_is_over(now) {
            for (listener, token) in self.listeners.all([LISTENER, SCTP_LISTENER]) {
                let _ = self.epoll.add(listener, token, READ);
            }
        }
        self.on_late_newcomers(now)?;
        self.look_at_limits(now);
        self.report_progress_when_due(now);
        Ok(())
    }

    /// Connections that did not say who they are in time.
    fn on_late_newcomers(&mut self, now: Instant) -> Result<(), Failure> {
        let mut reported = !self.sessions.is_empty();
        for id in self.gate.late(now) {
            let Some((fd, peer)) = self.gate.take(id, &self.epoll) else {
                continue;
            };
            self.gate.forget(id);
            self.note_silence(peer);
            if reported {
                self.linger.add(gate::turn_away(fd), Vec::new(), &self.epoll, LINGER);
            } else {
                reported = true;
                self.linger
                    .add(gate::refuse(fd, ErrorCode::RecvCookie), Vec::new(), &self.epoll, LINGER);
                self.report_silent_client()?;
            }
        }
        Ok(())
    }

    fn look_at_limits(&mut self, now: Instant) {
        if !self.desk.ledger().needs_looks() {
            self.next_look = None;
            return;
        }
        if self.next_look.is_some_and(|t| now < t) {
            return;
        }
        self.next_look = Some(now + Duration::from_nanos(LOOK_NS));
        let totals: Vec<(u64, u64)> = self
            .sessions
            .iter_mut()
            .map(|(&id, s)| (id, s.moved()))
            .chain(self.house.iter_mut().flat_map(House::moved))
            .map(|(id, m)| (id, m.received_bytes.saturating_add(m.sent_bytes)))
            .collect();
        for (id, reason) in self.desk.ledger().look(clock::monotonic_ns(), totals.into_iter()) {
            if let Some(session) = self.sessions.get_mut(&id) {
                session.exceed(reason);
            } else if let Some(house) = &mut self.house {
                house.exceed(id, reason);
            }
            self.tell_desk(id);
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
        self.terminate_house();
        self.desk.terminate(Instant::now(), &signal_text);
        self.advance_sessions();
        self.say_farewell();
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
    fn say_farewell(&mut self) {
        let end = Instant::now() + FAREWELL;
        while !self.linger.is_empty() && Instant::now() < end {
            self.linger.look(Instant::now());
            match poll::wait_fd(self.interrupts.fd(), READ, Some(FAREWELL_LOOK)) {
                Ok(true) if self.interrupts.take().is_none() => {}
                Ok(false) => {}
                _ => return,
            }
        }
    }

    fn idle_deadline(&self) -> Option<Instant> {
        let timeout = self.context.spec.idle_timeout?;
        (self.sessions.is_empty() && self.gate.is_empty()).then(|| self.idle_since + timeout)
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
