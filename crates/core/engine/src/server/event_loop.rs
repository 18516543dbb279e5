//! The control thread of a server: accepts connections, assigns them to the dialects, and lets time
//! pass for both.

mod reload;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use linerate_model::network::Network;
use linerate_model::service::RefusalReason;
use linerate_model::spec::ServerSpec;
use linerate_model::{Failure, FailureKind, ServerEvent, ServerReporter};
use linerate_sys::poll::{self, Interest, Ready};
use linerate_sys::{OsError, clock, scheduling};

use super::context::ServerContext;
use super::dialect::{ServerDialect, Stopped};
use super::intake::Intake;
use super::limits::quotas::CHECK_NS;
use super::listeners::accept_pause::AcceptPause;
use super::listeners::accepted::Accepted;
use super::listeners::acceptor::{Acceptor, Progress};
use super::sessions::Session;
use super::tokens::{CLOSING, DIALECT, INTERRUPT, LISTENER, PENDING, UDP_LISTENER, parts, token};
use crate::error::{EngineError, Operation, failure};
use crate::interrupts::Interrupts;

/// A server and its dialects.
pub(crate) struct Server<'a> {
    spec: ServerSpec,
    interrupts: &'a dyn Interrupts,
    context: ServerContext<'a>,
    dialects: Vec<Box<dyn ServerDialect>>,
    acceptor: Acceptor,
    pause: AcceptPause,
    next_progress: Option<Instant>,
    next_check: Option<Instant>,
    /// See [`Interrupts::alive`].
    next_heartbeat: Option<Instant>,
    idle_since: Option<Instant>,
    /// The signal after which tests run to their end.
    stopping: Option<String>,
}

/// Default period of progress events.
const PROGRESS_DEFAULT: Duration = Duration::from_secs(1);
/// Time clients have to read the last message of a server that ends.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(1);
/// Poll period of that wait.
const CLOSING_POLL: Duration = Duration::from_millis(5);
/// Longest wait for an event.
const WAIT_MAX: Duration = Duration::from_secs(3600);

impl<'a> Server<'a> {
    /// A server without a dialect and without a listener.
    pub(crate) fn new(
        spec: &ServerSpec,
        out: &'a mut dyn ServerReporter,
        interrupts: &'a dyn Interrupts,
    ) -> Result<Self, EngineError> {
        let context = ServerContext::new(spec, out)?;
        // In the same epoll as all sockets: a signal ends a wait at once, and no handler runs
        // beside the loop.
        let watched = context
            .epoll
            .add(interrupts.fd(), INTERRUPT, Interest::READ);
        watched.map_err(Operation::Init.failed())?;

        Ok(Self {
            spec: spec.clone(),
            interrupts,
            context,
            dialects: Vec::new(),
            acceptor: Acceptor::default(),
            pause: AcceptPause::default(),
            next_progress: None,
            next_check: None,
            next_heartbeat: None,
            idle_since: None,
            stopping: None,
        })
    }

    /// Opens the listener that all dialects share.
    pub(crate) fn listen(&mut self) -> Result<(), EngineError> {
        if let Some(warning) = self.context.listeners.open_shared(&self.spec.local)? {
            self.context.out.warning(&warning);
        }
        self.spec.local.port = self.context.listeners.address().port();
        Ok(())
    }

    /// The specification, with the port of the shared listener.
    pub(crate) fn spec(&self) -> &ServerSpec {
        &self.spec
    }

    /// Where the shared listener is bound.
    pub(crate) fn address(&self) -> SocketAddr {
        self.context.listeners.address()
    }

    pub(crate) fn add(&mut self, mut dialect: Box<dyn ServerDialect>) -> Result<(), EngineError> {
        let index = self.dialects.len();
        for listener in dialect.take_listeners() {
            self.context.listeners.add(listener, index);
        }

        let token = token(index as u64, DIALECT);
        let watched = self
            .context
            .epoll
            .add(dialect.sessions().fd(), token, Interest::READ);
        watched.map_err(Operation::Init.failed())?;
        self.dialects.push(dialect);

        Ok(())
    }

    /// Serves until all dialects have ended, or until a signal; calls `opened` before the first
    /// client is accepted.
    pub(crate) fn run(
        mut self,
        opened: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        // Clients wait for answers of this thread while hundreds of others move data; without
        // raised priority they wait tenths of a second. It needs a privilege that `opened` may
        // drop.
        let _ = scheduling::wake_soon();
        // After the listeners are bound and before the first accept: privileges that end here have
        // never met input of a client.
        opened()?;

        for dialect in &mut self.dialects {
            dialect.start(&mut self.context)?;
        }

        self.idle_since = Some(Instant::now());
        let mut events = Vec::new();

        loop {
            self.next_heartbeat = self.interrupts.alive();
            // Before each wait, since what a dialect admits depends on the events just handled. A
            // listener that is not watched leaves new connections in the kernel's backlog.
            self.watch_listeners();
            self.wait(&mut events)?;

            for event in std::mem::take(&mut events) {
                if self.dispatch(event)? {
                    return Ok(());
                }
            }

            // After the events: a byte that arrived just before a deadline counts.
            self.on_time()?;
            for dialect in &mut self.dialects {
                dialect.advance(&mut self.context)?;
            }

            if self.context.udp.has_waiting() {
                self.on_datagrams();
            }

            if self.is_over() {
                return self
                    .stopping
                    .map_or(Ok(()), |signal| Err(interruption(&signal)));
            }
            if self.idle_for_too_long()? {
                return Ok(());
            }
        }
    }

    fn watch_listeners(&mut self) {
        let ServerContext {
            listeners,
            epoll,
            admission,
            ..
        } = &mut self.context;
        let dialects = &self.dialects;
        let intake = |index: usize| {
            dialects
                .get(index)
                .map_or(Intake::Closed, |d| d.intake(admission))
        };
        listeners.watch(epoll, !self.pause.is_on(), intake);
    }

    fn wait(&self, events: &mut Vec<Ready>) -> Result<(), Failure> {
        let others = [
            self.acceptor.next_deadline(),
            self.pause.deadline(),
            self.context.closing.next_deadline(),
            self.idle_deadline(),
            self.next_progress,
            self.next_check,
            self.next_heartbeat,
        ];
        // A dialect that has advanced before another one released a place advances again.
        let turn = self.context.admission.turn_of().map(|_| Instant::now());

        let dialects = self
            .dialects
            .iter()
            .filter_map(|d| d.deadline())
            .chain(turn);
        let nearest = dialects.chain(others.into_iter().flatten()).min();
        // A bound for kernels before 5.11, where the timeout of epoll_wait(2) is an int of ms.
        let timeout = nearest.map(|t| t.saturating_duration_since(Instant::now()).min(WAIT_MAX));

        self.context.epoll.wait(events, timeout).map_err(|error| {
            self.failure(Operation::Poll.failed()(OsError::new(
                "epoll_wait",
                "",
                error,
            )))
        })
    }

    /// True when the server ends.
    fn dispatch(&mut self, event: Ready) -> Result<bool, Failure> {
        let (index, kind) = parts(event.token);
        match kind {
            LISTENER => self.accept(index)?,
            PENDING => self.on_pending(index)?,
            INTERRUPT => return self.on_interrupt(),
            CLOSING => self.context.closing.poll_soon(),
            UDP_LISTENER => self.on_datagrams(),
            // Dialects advance in every turn.
            _ => {}
        }

        Ok(false)
    }

    /// Assigns first datagrams to the dialects; the others are dropped.
    fn on_datagrams(&mut self) {
        loop {
            for datagram in self.context.udp.take() {
                let owner = self
                    .dialects
                    .iter_mut()
                    .find(|dialect| dialect.recognises_datagram(&datagram.bytes));
                if let Some(dialect) = owner {
                    dialect.first_datagram(&datagram, &mut self.context);
                }
            }

            // Accepting a flow may reveal queued datagrams while another flow is accepted; nothing
            // else would announce them.
            if !self.context.udp.has_waiting() {
                return;
            }
        }
    }

    fn accept(&mut self, listener: u64) -> Result<(), Failure> {
        let mut accepted = Vec::new();
        let Some((dialect, is_shared, outcome)) =
            self.context.listeners.accept(listener, &mut accepted)
        else {
            return Ok(());
        };

        for (fd, peer) in accepted {
            self.accept_from(fd, peer, dialect, is_shared)?;
        }

        // Afterwards: the connections just accepted are part of the largest source.
        if let Err(error) = outcome {
            self.out_of_descriptors(&error);
        }

        Ok(())
    }

    /// Existing sessions continue; the largest source of pending connections loses its oldest.
    fn out_of_descriptors(&mut self, error: &std::io::Error) {
        if self.pause.begin(Instant::now()) {
            self.context
                .out
                .warning(&format!("unable to accept a connection: {error}"));
        }

        // Their messages are sent; they keep descriptors only for the peer's FIN.
        self.context.closing.close_all();
        if let Some(victim) = self.context.pending_limit.oldest_of_largest_source() {
            self.evict(victim);
        }
    }

    /// A new connection is refused, or belongs to the dialect of its listener, or its first bytes
    /// decide.
    fn accept_from(
        &mut self,
        fd: OwnedFd,
        peer: SocketAddr,
        dialect: usize,
        is_shared: bool,
    ) -> Result<(), Failure> {
        let has_room = self.make_room(dialect);
        let Some(owner) = self.dialects.get_mut(dialect) else {
            return Ok(());
        };
        let refused = match owner.intake(&self.context.admission) {
            _ if !self.context.access.admits(peer.ip()) => Some(RefusalReason::Address),
            Intake::Refused(reason) if !has_room => Some(reason),
            _ => None,
        };
        if let Some(reason) = refused {
            // A place is not reserved for addresses that are never admitted.
            if reason != RefusalReason::Address {
                self.context
                    .admission
                    .refuse(Network::of_client(peer.ip()), Instant::now());
            }

            self.context
                .refuse(fd, peer, reason, &owner.refusal(reason));
            return Ok(());
        }

        let id = self.context.new_id();
        // The oldest of the largest source, so that a flood from one address evicts its own
        // connections.
        if let Some(victim) = self.context.pending_limit.enter(id, peer.ip(), dialect) {
            self.evict(victim);
        }

        let connection = Accepted {
            id,
            fd,
            peer,
            first_bytes: Vec::new(),
        };
        if is_shared {
            self.acceptor.add(connection, &self.context.epoll);
            return Ok(());
        }

        self.pass_on(connection, dialect)
    }

    /// A client that finds the server busy ends a test without a sign of life; that one ends before
    /// the client's first bytes are read. True if there was one.
    fn make_room(&mut self, dialect: usize) -> bool {
        let admission = &mut self.context.admission;
        let busy = Intake::Refused(RefusalReason::Busy);
        if self
            .dialects
            .get(dialect)
            .is_none_or(|owner| owner.intake(admission) != busy)
        {
            return false;
        }

        admission.want_place(Instant::now());
        self.dialects
            .iter_mut()
            .any(|dialect| dialect.sessions_mut().end_silent())
    }

    fn pass_on(&mut self, connection: Accepted, dialect: usize) -> Result<(), Failure> {
        let Some(dialect) = self.dialects.get_mut(dialect) else {
            return Ok(());
        };
        let id = connection.id;
        let peer = connection.peer;
        let name = dialect.name();
        tracing::debug!(client = id, %peer, dialect = name, "dialect recognised");
        dialect.accept(connection, &mut self.context)
    }

    fn evict(&mut self, id: u64) {
        self.context.pending_limit.leave(id);
        let reason = RefusalReason::Crowded;

        match self.acceptor.take(id, &self.context.epoll) {
            Some(Accepted { fd, peer, .. }) => {
                let message = self
                    .dialects
                    .first()
                    .map(|d| d.refusal(reason))
                    .unwrap_or_default();
                self.context.refuse(fd, peer, reason, &message);
            }
            None => {
                for dialect in &mut self.dialects {
                    dialect.evict(id, reason, &mut self.context);
                }
            }
        }
    }

    fn on_pending(&mut self, id: u64) -> Result<(), Failure> {
        let progress = self.acceptor.read(id, &self.dialects);
        if progress == Progress::Incomplete {
            return Ok(());
        }

        match (progress, self.acceptor.take(id, &self.context.epoll)) {
            (Progress::Recognised(dialect), Some(connection)) => self.pass_on(connection, dialect),
            _ => {
                self.context.pending_limit.leave(id);
                Ok(())
            }
        }
    }

    fn on_time(&mut self) -> Result<(), Failure> {
        let now = Instant::now();
        self.context.closing.expire(now);
        self.pause.ends(now);
        self.on_header_timeouts(now)?;
        self.check_limits(now);
        self.report_progress_when_due(now);
        Ok(())
    }

    /// Evicts connections that are not recognised in time.
    fn on_header_timeouts(&mut self, now: Instant) -> Result<(), Failure> {
        for id in self.acceptor.late(now) {
            self.context.pending_limit.leave(id);
            if let (Some(connection), Some(dialect)) = (
                self.acceptor.take(id, &self.context.epoll),
                self.dialects.first_mut(),
            ) {
                // The first dialect answers: a stock iperf3 client that was silent understands no
                // other message.
                let message = dialect.header_timeout(connection.peer, &mut self.context)?;
                self.context.close_with(connection.fd, &message);
            }
        }

        Ok(())
    }

    fn check_limits(&mut self, now: Instant) {
        if !self.context.admission.quotas().needs_checks() {
            self.next_check = None;
            return;
        }

        if self.next_check.is_some_and(|t| now < t) {
            return;
        }

        self.next_check = Some(now + Duration::from_nanos(CHECK_NS));
        let ids: Vec<u64> = self.context.admission.quotas().ids().collect();
        let mut totals = Vec::with_capacity(ids.len());

        for id in ids {
            let moved = self.session(id).map(Session::totals).unwrap_or_default();
            totals.push((id, moved.received_bytes.saturating_add(moved.sent_bytes)));
        }

        let quotas = self.context.admission.quotas();
        for (id, reason) in quotas.check(clock::monotonic_ns(), totals.into_iter()) {
            if let Some(session) = self.session(id) {
                session.stop(reason);
            }
        }
    }

    fn session(&mut self, id: u64) -> Option<&mut dyn Session> {
        self.dialects
            .iter_mut()
            .find_map(|dialect| dialect.sessions_mut().session(id))
    }

    fn report_progress_when_due(&mut self, now: Instant) {
        if self.context.stats.is_idle() {
            self.next_progress = None;
            return;
        }

        let interval = self.spec.local.interval.unwrap_or(PROGRESS_DEFAULT);
        match self.next_progress {
            Some(due) if now >= due => {
                self.report_progress();
                // A missed poll is not repeated.
                self.next_progress = Some((due + interval).max(now));
            }
            Some(_) => {}
            None => self.next_progress = Some(now + interval),
        }
    }

    fn report_progress(&mut self) {
        let ids: Vec<u64> = self.context.stats.ids().collect();
        for id in ids {
            if let Some(moved) = self.session(id).map(Session::totals) {
                self.context.stats.update(id, moved);
            }
        }

        self.context.report_progress();
    }

    /// True when the server ends and the reports of its tests contain the signal.
    fn on_interrupt(&mut self) -> Result<bool, Failure> {
        let signal = self.interrupts.take();
        if self.interrupts.take_reload() {
            self.on_reload();
        }

        let Some(signal_text) = signal else {
            return Ok(false);
        };
        self.context.out.server_event(&ServerEvent::Stopping {
            signal_text: signal_text.clone(),
        });
        let stop =
            |dialect: &mut Box<dyn ServerDialect>| dialect.stop(&signal_text, &mut self.context);
        let stopped: Vec<Stopped> = self.dialects.iter_mut().map(stop).collect();
        if stopped.contains(&Stopped::Draining) {
            self.stopping = Some(signal_text);
            return Ok(false);
        }

        self.flush_closing();
        if stopped.contains(&Stopped::Reported) {
            return Ok(true);
        }

        Err(interruption(&signal_text))
    }

    /// Lets the last messages reach the clients: a connection that is closed too early takes them
    /// back. Another signal ends the wait.
    fn flush_closing(&mut self) {
        let end = Instant::now() + CLOSING_TIMEOUT;
        while !self.context.closing.is_empty() && Instant::now() < end {
            self.context.closing.look(Instant::now());
            match poll::wait_fd(self.interrupts.fd(), Interest::READ, Some(CLOSING_POLL)) {
                Ok(true) if self.interrupts.take().is_none() => {}
                Ok(false) => {}
                _ => return,
            }
        }
    }

    fn is_over(&self) -> bool {
        let admission = &self.context.admission;
        let mut dialects = self.dialects.iter();
        dialects.all(|d| d.is_idle() && d.intake(admission) == Intake::Closed)
    }

    fn idle_deadline(&self) -> Option<Instant> {
        self.idle_since?.checked_add(self.spec.idle_timeout?)
    }

    /// Re-opens the shared listener after a long idle time, in case its interface came and went;
    /// true when a one-off server gives up instead.
    fn idle_for_too_long(&mut self) -> Result<bool, Failure> {
        if !self.acceptor.is_empty() || !self.dialects.iter().all(|dialect| dialect.is_idle()) {
            self.idle_since = None;
            return Ok(false);
        }

        self.idle_since.get_or_insert_with(Instant::now);
        if self.idle_deadline().is_none_or(|t| t > Instant::now()) {
            return Ok(false);
        }
        if self.spec.one_off {
            return Ok(true);
        }

        let reopened = self.context.listeners.open_shared(&self.spec.local);
        reopened.map_err(|error| self.failure(error))?;
        self.idle_since = Some(Instant::now());
        self.context.out.reopened().map_err(failure)?;

        Ok(false)
    }

    fn failure(&self, error: EngineError) -> Failure {
        match self.dialects.first() {
            Some(dialect) => dialect.failure(error),
            None => failure(error),
        }
    }
}

fn interruption(signal_text: &str) -> Failure {
    Failure::new(
        FailureKind::Interrupted,
        format!("the server has terminated by signal {signal_text}"),
    )
}
