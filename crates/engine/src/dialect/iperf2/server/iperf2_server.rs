//! The iperf 2 server: its sockets, pending connections and sessions.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use linerate_iperf2::Header;
use linerate_iperf2::server::{AcceptedTest, FlowRefusal, Policy};
use linerate_model::event::{Endpoint, TestHeader};
use linerate_model::network::Network;
use linerate_model::service::{HandshakeCause, RefusalReason, TestFacts};
use linerate_model::spec::ServerSpec;
use linerate_model::workload::Iperf2Defaults;
use linerate_model::{Event, ServerEvent, TestSpec, Transport};
use linerate_sys::clock;
use linerate_sys::poll::{Epoll, Interest};
use linerate_sys::socket;

use super::client_session::ClientSession;
use super::half_open::HalfOpenFlows;
use super::pending::{AcceptedConnection, HeaderRead, PendingConnection};
use super::udp_listener::UdpListener;
use crate::dialect::iperf2::connection::{Connection, with_own};
use crate::dialect::iperf2::machine::{Action, Machine};
use crate::dialect::iperf2::session::Session;
use crate::dialect::iperf2::sockets;
use crate::reporter::Reporter;
use crate::server::accept_pause::AcceptPause;
use crate::server::listen::accept;
use crate::server::pending_limit::PendingLimit;
use crate::server::quotas::QuotaRequest;
use crate::server::resource_quota::Requirements;
use crate::server::server_stats::record;
use crate::server::shared_state::ServerContext;

mod listen;

/// Sockets, pending connections and sessions.
pub(crate) struct Iperf2Server {
    spec: ServerSpec,
    defaults: Iperf2Defaults,
    policy: Policy,
    epoll: Epoll,
    listeners: Vec<OwnedFd>,
    udp_listeners: Vec<UdpListener>,
    pending: BTreeMap<u64, PendingConnection>,
    pending_limit: PendingLimit,
    half_open: HalfOpenFlows,
    sessions: BTreeMap<u64, ClientSession>,
    next_id: u64,
    /// Number of the next connection in reports.
    next_number: u32,
    accepted: u32,
    ends: Option<Instant>,
    is_closed: bool,
    /// The listeners are out of the event loop.
    is_paused: bool,
    pause: AcceptPause,
}

// Tokens: the low bits are the kind.
const LISTENER: u64 = 0;
const UDP_LISTENER: u64 = 1;
const PENDING: u64 = 2;
const SESSION: u64 = 3;
const KINDS: u64 = 4;
/// Other sessions of the same server have smaller numbers.
const FIRST_ID: u64 = 1 << 40;

impl Iperf2Server {
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    pub(crate) fn has_tests(&self) -> bool {
        !self.sessions.is_empty()
    }

    /// It accepts no connection any more and has no session.
    pub(crate) fn is_over(&self) -> bool {
        self.is_closed && self.sessions.is_empty() && self.pending.is_empty()
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let pending = self.pending.values().filter_map(PendingConnection::deadline);
        let sessions = self.sessions.values().filter_map(|e| e.deadline());
        let others = [self.ends, self.pause.deadline()];
        pending.chain(sessions).chain(others.into_iter().flatten()).min()
    }

    /// Closes the listeners.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        for listener in &self.listeners {
            let _ = self.epoll.remove(listener.as_fd());
            let _ = socket::shutdown_both(listener.as_fd());
        }
        for udp_listener in &self.udp_listeners {
            let _ = self.epoll.remove(udp_listener.fd());
        }
        self.listeners.clear();
        self.udp_listeners.clear();
        self.pending.clear();
    }

    /// Ends all tests.
    pub(crate) fn terminate(&mut self, rules: &mut ServerContext<'_>) {
        for session in self.sessions.values_mut() {
            session.end_early("the server was told to end");
        }
        self.advance_sessions(rules);
    }

    /// Takes a connection accepted by another listener, with the bytes read so far.
    pub(crate) fn adopt(&mut self, fd: OwnedFd, peer: SocketAddr, read: &[u8], rules: &mut ServerContext<'_>) {
        self.add_pending(fd, peer, read, rules);
    }

    /// Does what is to be done now.
    pub(crate) fn advance(&mut self, rules: &mut ServerContext<'_>) {
        let mut events = Vec::new();
        // An interrupted wait is repeated by the owner.
        let _ = self.epoll.wait(&mut events, Some(Duration::ZERO));
        for event in &events {
            let index = event.token / KINDS;
            match event.token % KINDS {
                LISTENER => self.accept(usize::try_from(index).unwrap_or(usize::MAX), rules),
                UDP_LISTENER => self.on_datagrams(usize::try_from(index).unwrap_or(usize::MAX), rules),
                PENDING => self.on_pending(index, rules),
                _ => {}
            }
        }
        let now = Instant::now();
        let is_late = |w: &PendingConnection| w.deadline().is_some_and(|t| t <= now);
        let late: Vec<u64> = self
            .pending
            .iter()
            .filter(|(_, w)| is_late(w))
            .map(|(id, _)| *id)
            .collect();
        for id in late {
            self.on_pending(id, rules);
        }
        if self.ends.is_some_and(|t| t <= now) {
            self.ends = None;
            self.close();
            self.sessions
                .values_mut()
                .for_each(|e| e.end_early("the time of the server is over"));
        }
        self.advance_sessions(rules);
        self.pause.ends(now);
        self.pause_listeners();
    }

    fn accept(&mut self, index: usize, rules: &mut ServerContext<'_>) {
        let mut new_flows = Vec::new();
        let Some(listener) = self.listeners.get(index) else {
            return;
        };
        if let Err(error) = accept(listener.as_fd(), &mut new_flows) {
            self.out_of_descriptors(&error, rules);
        }
        for (fd, peer) in new_flows {
            self.add_pending(fd, peer, &[], rules);
        }
    }

    /// Existing sessions continue; the largest source of pending connections loses its oldest.
    fn out_of_descriptors(&mut self, error: &std::io::Error, rules: &mut ServerContext<'_>) {
        if self.pause.begin(Instant::now()) {
            rules.out.warning(&format!("unable to accept a connection: {error}"));
        }
        if let Some(victim) = self.pending_limit.oldest_of_largest_source() {
            self.evict(victim, rules);
        }
    }

    fn evict(&mut self, victim: u64, rules: &mut ServerContext<'_>) {
        self.pending_limit.leave(victim);
        if let Some(pending) = self.pending.remove(&victim) {
            refuse(pending.peer, RefusalReason::Crowded, rules);
        }
    }

    fn add_pending(&mut self, fd: OwnedFd, peer: SocketAddr, read: &[u8], rules: &mut ServerContext<'_>) {
        if !rules.access.admits(peer.ip()) {
            return refuse(peer, RefusalReason::Address, rules);
        }
        let id = self.next_id;
        self.next_id += 1;
        let pending = PendingConnection::new(fd, peer, self.policy.clone(), read);
        if self
            .epoll
            .add(pending.fd(), id * KINDS + PENDING, Interest::READ)
            .is_err()
        {
            return;
        }
        self.pending.insert(id, pending);
        if let Some(victim) = self.pending_limit.enter(id, peer.ip()) {
            self.evict(victim, rules);
        }
        // Bytes that were read already cause no event.
        if !read.is_empty() {
            self.on_pending(id, rules);
        }
    }

    fn on_pending(&mut self, id: u64, rules: &mut ServerContext<'_>) {
        let Some(pending) = self.pending.get_mut(&id) else {
            return;
        };
        let read = pending.advance();
        if matches!(read, HeaderRead::Incomplete) {
            return;
        }
        let Some(pending) = self.pending.remove(&id) else {
            return;
        };
        self.pending_limit.leave(id);
        let _ = self.epoll.remove(pending.fd());
        let peer = pending.peer;
        match read {
            HeaderRead::Test(test) => {
                self.admit(pending.into_opened(), *test, rules);
            }
            HeaderRead::Closed(failure) => {
                let explanation = failure.map_or_else(String::new, |f| f.message);
                rules.out.warning(&explanation);
                rules.out.server_event(&ServerEvent::HandshakeFailed {
                    peer,
                    cause: HandshakeCause::Parameters,
                    explanation,
                });
            }
            HeaderRead::Incomplete => {}
        }
    }

    fn on_datagrams(&mut self, index: usize, rules: &mut ServerContext<'_>) {
        let Some(udp_listener) = self.udp_listeners.get_mut(index) else {
            return;
        };
        let test = TestSpec {
            transport: Transport::Udp,
            ..self.defaults.test.clone()
        };
        let is_known = |peer| self.sessions.values().any(|e| e.has(peer));
        let admits = |peer: SocketAddr| rules.access.admits(peer.ip());
        let new_flows = udp_listener.new_flows(&self.policy, &test, &mut self.half_open, is_known, admits);
        for (peer, refusal) in new_flows.refused {
            let reason = match refusal {
                FlowRefusal::Amount => RefusalReason::Duration,
                FlowRefusal::UdpReverse | FlowRefusal::NoFlow => RefusalReason::UdpReverse,
            };
            refuse(peer, reason, rules);
        }
        for (peer, error) in new_flows.failed {
            fail(peer, &error.text(), rules);
        }
        for flow in new_flows.flows {
            let mut machine = Machine::FlowServer(flow.machine);
            if let Some(Action::Accepted(test)) = machine.next() {
                let accepted = AcceptedConnection {
                    fd: flow.fd,
                    peer: flow.peer,
                    machine,
                    accepted_ns: None,
                    early: flow.early,
                };
                self.admit(accepted, *test, rules);
            }
        }
    }

    /// A connection or flow joins the session of its client, or begins one.
    fn admit(&mut self, accepted: AcceptedConnection, test: AcceptedTest, rules: &mut ServerContext<'_>) {
        let AcceptedConnection { fd, peer, machine, .. } = accepted;
        let spec = with_own(test.spec.clone(), &self.defaults.test);
        let expecting = self
            .sessions
            .iter()
            .find(|(_, e)| e.expects(peer, &spec, test.header.as_ref()))
            .map(|(id, _)| *id);
        let id = match expecting {
            Some(id) => id,
            None => match self.open_session(peer, &spec, test.header.clone(), rules) {
                Some(id) => id,
                None => return,
            },
        };
        if test.clocks_disagree {
            rules.out.warning("WARN: ignore --trip-times because client didn't provide valid start timestamp within 600 seconds of now");
        }
        self.accepted = self.accepted.saturating_add(1);
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        sockets::prepare(fd.as_fd(), &spec, true, true);
        let Ok(mut connection) = Connection::new(fd, machine, self.next_number, self.defaults.test.clone()) else {
            // The client is gone already.
            return;
        };
        self.next_number = self.next_number.saturating_add(1);
        connection.accept(test);
        connection.take_early(accepted.early);
        connection.accepted_ns = accepted.accepted_ns;
        session.add(connection);
        if self.defaults.connections_max.is_some_and(|max| self.accepted >= max) {
            self.close();
        }
    }

    fn open_session(
        &mut self,
        peer: SocketAddr,
        spec: &TestSpec,
        header: Option<Header>,
        rules: &mut ServerContext<'_>,
    ) -> Option<u64> {
        let id = self.next_id;
        self.next_id += 1;
        let streams = header.as_ref().map_or(1, |h| h.streams.max(1));
        let sent_both_ways = u32::from(spec.direction == linerate_model::Direction::Bidirectional) + 1;
        let claim = QuotaRequest {
            address: Network::of_client(peer.ip()),
            user: None,
            streams: streams.saturating_mul(sent_both_ways),
            duration: spec.end.duration(),
            bytes: 0,
            last_blocks_bytes: 0,
            rate_bps: spec.pacing.rate_bps.unwrap_or(0).saturating_mul(u64::from(streams)),
            requirements: Requirements::without_control(spec, streams),
        };
        if let Err(reason) = rules.admission.take(id, claim) {
            refuse(peer, reason, rules);
            return None;
        }
        match self.make_session(id, peer, spec, header, rules) {
            Ok(session) => self.sessions.insert(id, session),
            Err(why) => {
                rules.admission.release(id);
                fail(peer, &why, rules);
                return None;
            }
        };
        let facts = TestFacts {
            number: 0,
            peer,
            user: None,
            transport: spec.transport,
            direction: spec.direction,
            streams,
            running_beside: 0,
        };
        let facts = rules.stats.start(id, Instant::now(), facts);
        rules.out.server_event(&ServerEvent::TestStarted(facts));
        Some(id)
    }

    fn make_session(
        &self,
        id: u64,
        peer: SocketAddr,
        spec: &TestSpec,
        header: Option<Header>,
        rules: &mut ServerContext<'_>,
    ) -> Result<ClientSession, String> {
        let sink = rules.out.open_test().map_err(|e| e.to_string())?;
        let mut reporter = Reporter::boxed(sink);
        reporter.emit(&Event::TestAccepted(Box::new(TestHeader {
            endpoint: Endpoint::Server,
            peer_host: peer.ip().to_string(),
            peer_port: peer.port(),
            cookie: String::new(),
            started_at_unix_ms: clock::unix_ms(),
            control_mss_bytes: None,
            spec: spec.clone(),
            interval: self.spec.local.interval,
            file_name: None,
            first_stream_position: 0,
            first_socket: None,
            listener: None,
        })));
        let liveness = self.spec.policy.liveness;
        let mut session =
            ClientSession::new(peer, reporter, header, spec, &self.spec.local, liveness).map_err(|e| e.text())?;
        session.limit(rules.admission.quotas().quota(id));
        let token = id * KINDS + SESSION;
        let watched = self.epoll.add(session.main().fd(), token, Interest::READ);
        watched.map_err(|e| e.text())?;
        Ok(session)
    }

    fn advance_sessions(&mut self, rules: &mut ServerContext<'_>) {
        let mut over = Vec::new();
        for (id, session) in &mut self.sessions {
            let has_new_session = session.advance(&mut self.next_number);
            if has_new_session && let Some(back) = session.back().map(Session::fd) {
                let _ = self.epoll.add(back, id * KINDS + SESSION, Interest::READ);
            }
            if let Some(error) = session.reporter.take_failure() {
                session.end_early(&error.to_string());
            }
            if session.is_over() {
                over.push(*id);
            }
        }
        for id in over {
            self.end_session(id, rules);
        }
    }

    fn end_session(&mut self, id: u64, rules: &mut ServerContext<'_>) {
        let Some(mut session) = self.sessions.remove(&id) else {
            return;
        };
        let outcome = session.finish();
        rules.admission.release(id);
        rules.stats.update(id, session.moved());
        let ran_beside_max = rules.stats.concurrent_max(id);
        if let Some(facts) = rules.stats.end(id) {
            let summary = session.summaries().next();
            let record = record(facts, String::new(), summary, &outcome, ran_beside_max);
            rules.out.server_event(&ServerEvent::TestEnded(record));
        }
    }

    /// A server that takes one client at a time, or has no descriptor left, lets the others wait in the kernel.
    fn pause_listeners(&mut self) {
        let serves_in_turn = self.defaults.one_at_a_time && !self.sessions.is_empty();
        let pauses = serves_in_turn || self.pause.is_on();
        if pauses == self.is_paused {
            return;
        }
        self.is_paused = pauses;
        for (index, listener) in self.listeners.iter().enumerate() {
            let token = index as u64 * KINDS + LISTENER;
            // Adding and removing what the set knows fails only when memory is short.
            let _ = if pauses {
                self.epoll.remove(listener.as_fd())
            } else {
                self.epoll.add(listener.as_fd(), token, Interest::READ)
            };
        }
    }

    /// What all tests have moved, for the statistics of the server.
    pub(crate) fn moved(&mut self) -> Vec<(u64, crate::server::server_stats::ByteTotals)> {
        self.sessions.iter_mut().map(|(id, e)| (*id, e.moved())).collect()
    }

    /// A limit was exceeded while the test ran.
    pub(crate) fn exceed(&mut self, id: u64, reason: RefusalReason) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.end_early(&reason.to_string());
        }
    }
}

fn refuse(peer: SocketAddr, reason: RefusalReason, rules: &mut ServerContext<'_>) {
    rules.out.server_event(&ServerEvent::Refused { peer, reason });
}

/// What this host could not give one client concerns no other.
fn fail(peer: SocketAddr, explanation: &str, rules: &mut ServerContext<'_>) {
    rules.out.server_event(&ServerEvent::HandshakeFailed {
        peer,
        cause: HandshakeCause::Streams,
        explanation: explanation.to_owned(),
    });
}
