//! The iperf 2 server: its sockets, pending connections and sessions.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Instant;

use linerate_iperf2::wire::Header;
use linerate_iperf2::wire::opening::{self, OPENING_LEN, Opening};
use linerate_iperf2::wire::server::{AcceptedTest, Policy};
use linerate_model::event::Endpoint;
use linerate_model::network::Network;
use linerate_model::service::{HandshakeCause, RefusalReason};
use linerate_model::spec::{Iperf2Defaults, ServerSpec};
use linerate_model::{Event, Failure, ServerEvent, TestSpec, Transport};
use linerate_sys::poll::Interest;
use linerate_sys::sockopt;

use super::client_session::ClientSession;
use super::half_open::HalfOpenFlows;
use super::pending::{AcceptedConnection, HeaderRead, PendingConnection};
use super::udp_listener::UdpListener;
use crate::dialect::iperf2::connection::{Connection, with_own};
use crate::dialect::iperf2::machine::Action;
use crate::dialect::iperf2::session::Session;
use crate::dialect::iperf2::sockets;
use crate::error::failure;
use crate::reporter::{Reporter, test_header};
use crate::server::{
    Accepted, Admission, Intake, QuotaRequest, Recognised, Requirements, ServerContext,
    ServerDialect, Session as _, SessionTable, Sessions, Stopped, token,
};

/// Sockets, pending connections and sessions.
pub(crate) struct Iperf2Server {
    pub(super) spec: ServerSpec,
    pub(super) defaults: Iperf2Defaults,
    pub(super) policy: Policy,
    /// Until the server takes them.
    pub(super) listeners: Vec<OwnedFd>,
    pub(super) udp_listeners: Vec<UdpListener>,
    pub(super) pending: BTreeMap<u64, PendingConnection>,
    pub(super) half_open: HalfOpenFlows,
    /// Pending connections have numbers among those of sessions.
    pub(super) sessions: Sessions<ClientSession>,
    /// Number of the next connection in reports.
    pub(super) next_number: u32,
    pub(super) accepted: u32,
    pub(super) ends: Option<Instant>,
    /// A port beside that of the server, which its log names.
    pub(super) own_port: Option<SocketAddr>,
    /// Connections of the shared listener may be of this dialect.
    pub(super) shares_listener: bool,
    /// The first signal lets the tests run to their end.
    pub(super) drains: bool,
    pub(super) is_stopping: bool,
}

// Kinds of descriptors; the number of a listener is its index.
pub(super) const UDP_LISTENER: u64 = 0;
const PENDING: u64 = 1;
const SESSION: u64 = 2;

impl Iperf2Server {
    /// Closes the listeners.
    fn close(&mut self) {
        self.sessions.close();
        for udp_listener in &self.udp_listeners {
            let _ = self.sessions.epoll().remove(udp_listener.fd());
        }

        self.udp_listeners.clear();
        self.pending.clear();
    }

    fn on_pending(&mut self, id: u64, server: &mut ServerContext<'_>) {
        let Some(pending) = self.pending.get_mut(&id) else {
            return;
        };
        let read = pending.advance();
        if matches!(read, HeaderRead::Incomplete) {
            return self.sessions.set_due(id, pending.deadline());
        }

        let Some(pending) = self.pending.remove(&id) else {
            return;
        };
        self.sessions.set_due(id, None);
        server.pending_limit.leave(id);
        let _ = self.sessions.epoll().remove(pending.fd());
        let peer = pending.peer;

        match read {
            HeaderRead::Test(test) => {
                self.admit(pending.into_opened(), *test, server);
            }
            HeaderRead::Closed(failure) => {
                let explanation = failure.map_or_else(String::new, |f| f.message);
                server.out.warning(&explanation);
                server.log_failed_handshake(peer, HandshakeCause::Parameters, explanation);
            }
            HeaderRead::Incomplete => {}
        }
    }

    fn on_datagrams(&mut self, index: u64, server: &mut ServerContext<'_>) {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let Some(udp_listener) = self.udp_listeners.get_mut(index) else {
            return;
        };
        let mut test = self.defaults.test.clone();
        test.transport = Transport::Udp;

        let is_known = |peer| self.sessions.values().any(|e| e.has(peer));
        let accepted =
            udp_listener.new_flows(&self.policy, &test, &mut self.half_open, is_known, server);
        for mut flow in accepted {
            if let Some(Action::Accepted(test)) = flow.machine.next() {
                self.admit(flow, *test, server);
            }
        }
    }

    /// A connection or flow joins the session of its client, or begins one.
    fn admit(
        &mut self,
        accepted: AcceptedConnection,
        test: AcceptedTest,
        server: &mut ServerContext<'_>,
    ) {
        let AcceptedConnection {
            fd, peer, machine, ..
        } = accepted;
        let spec = with_own(test.spec.clone(), &self.defaults.test);
        let expecting = self
            .sessions
            .iter()
            .find(|(_, e)| e.expects(peer, &spec, test.header.as_ref()))
            .map(|(id, _)| *id);
        let id = match expecting {
            Some(id) => id,
            None => match self.open_session(peer, &spec, test.header.clone(), server) {
                Some(id) => id,
                None => return,
            },
        };
        self.sessions.wake(id);

        if test.clocks_disagree {
            server.out.warning(
                "WARN: ignore --trip-times because client didn't provide valid start timestamp \
                 within 600 seconds of now",
            );
        }

        self.accepted = self.accepted.saturating_add(1);
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        sockets::prepare(&fd, &spec, true, true);

        if let Some(tos) = self.defaults.reply_tos {
            // A test is not lost with its TOS byte.
            let _ = sockopt::set_tos(&fd, tos);
        }

        let Ok(mut connection) =
            Connection::new(fd, machine, self.next_number, self.defaults.test.clone())
        else {
            // The client is gone already.
            return;
        };
        self.next_number = self.next_number.saturating_add(1);
        connection.accept(test);
        connection.take_early(accepted.early);
        connection.accepted_ns = accepted.accepted_ns;
        session.add(connection);

        if self
            .defaults
            .connections_max
            .is_some_and(|max| self.accepted >= max)
        {
            self.close();
        }
    }

    fn open_session(
        &mut self,
        peer: SocketAddr,
        spec: &TestSpec,
        header: Option<Header>,
        server: &mut ServerContext<'_>,
    ) -> Option<u64> {
        let id = server.new_id();
        let streams = header.as_ref().map_or(1, |h| h.streams.max(1));
        let sent_both_ways =
            u32::from(spec.direction == linerate_model::Direction::Bidirectional) + 1;
        let request = QuotaRequest {
            address: Network::of_client(peer.ip()),
            user: None,
            streams: streams.saturating_mul(sent_both_ways),
            duration: spec.end.duration(),
            bytes: 0,
            last_blocks_bytes: 0,
            rate_bps: spec
                .pacing
                .rate_bps
                .unwrap_or(0)
                .saturating_mul(u64::from(streams)),
            requirements: Requirements::without_control(spec, streams),
        };
        if let Err(reason) = server.admission.take(id, request) {
            server.log_refusal(peer, reason);
            return None;
        }

        match self.make_session(id, peer, spec, header, server) {
            Ok(session) => self.sessions.insert(id, session),
            Err(why) => {
                server.admission.release(id, Instant::now());
                server.log_failed_handshake(peer, HandshakeCause::Streams, why.message);
                return None;
            }
        };

        server.start_test(id, peer, None, spec, streams);
        Some(id)
    }

    fn make_session(
        &self,
        id: u64,
        peer: SocketAddr,
        spec: &TestSpec,
        header: Option<Header>,
        server: &mut ServerContext<'_>,
    ) -> Result<ClientSession, Failure> {
        let sink = server.out.open_test().map_err(failure)?;
        let mut reporter = Reporter::boxed(sink);

        let mut announced = test_header(
            Endpoint::Server,
            peer.ip().to_string(),
            peer.port(),
            spec,
            &self.spec.local,
        );
        // Names of files of this host are not for the reports of clients.
        announced.file_name = None;
        reporter.emit(&Event::TestAccepted(Box::new(announced)));

        let liveness = self.spec.policy.liveness;
        let mut session =
            ClientSession::new(peer, reporter, header, spec, &self.spec.local, liveness)
                .map_err(|e| failure(e.text()))?;
        session.limit(server.admission.quotas().quota(id));

        self.sessions
            .watch(session.main.fd(), id, SESSION)
            .map_err(|e| failure(e.text()))?;
        Ok(session)
    }

    fn advance_sessions(&mut self, server: &mut ServerContext<'_>) {
        // Clients of a server that takes one at a time wait in the kernel.
        // With `-1` the listener is not watched during a test; a poll shows whether a client waits.
        let waits = self.defaults.one_at_a_time && server.listeners.have_waiting();
        let is_place_wanted = waits || server.admission.is_place_wanted(Instant::now());

        for id in self.sessions.take_ready() {
            self.on_pending(id, server);
            self.advance_session(id, is_place_wanted, server);
        }
    }

    fn advance_session(&mut self, id: u64, is_place_wanted: bool, server: &mut ServerContext<'_>) {
        let Some((session, epoll)) = self.sessions.with_epoll(id) else {
            return;
        };
        let has_new_session = session.advance(&mut self.next_number, is_place_wanted);
        if has_new_session && let Some(back) = session.back.as_ref().map(Session::fd) {
            let _ = epoll.add(back, token(id, SESSION), Interest::READ);
        }

        if let Some(error) = session.reporter.take_failure() {
            session.end_early(&error.to_string());
        }

        let due = session.deadline();
        let is_over = session.is_over();
        self.sessions.set_due(id, due);
        if is_over && let Some(mut session) = self.sessions.remove(id) {
            let outcome = session.finish();
            server.admission.release(id, Instant::now());
            let totals = session.totals();
            let summary = session.summaries().next();
            server.end_test(id, String::new(), totals, summary, &outcome);
        }
    }

    fn end_sessions(&mut self, why: &str) {
        for session in self.sessions.wake_all() {
            session.end_early(why);
        }
    }
}

impl ServerDialect for Iperf2Server {
    fn name(&self) -> &'static str {
        "iperf2"
    }

    fn start(&mut self, server: &mut ServerContext<'_>) -> Result<(), Failure> {
        if let Some(address) = self.own_port {
            server.out.server_event(&ServerEvent::Iperf2 { address });
        }
        Ok(())
    }

    fn take_listeners(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.listeners)
    }

    fn recognise(&self, first_bytes: &[u8]) -> Recognised {
        match opening::recognise(first_bytes) {
            _ if !self.shares_listener => Recognised::NotMine,
            Opening::Header | Opening::BounceBack | Opening::Legacy | Opening::Data => {
                Recognised::Mine
            }
            Opening::NeedMore => Recognised::NeedMore(OPENING_LEN),
            Opening::Foreign => Recognised::NotMine,
        }
    }

    /// A server that takes one client at a time lets the others wait in the kernel.
    fn intake(&self, _admission: &Admission) -> Intake {
        if self.sessions.is_closed() {
            Intake::Closed
        } else if self.defaults.one_at_a_time && !self.sessions.is_empty() {
            Intake::Paused
        } else {
            Intake::Open
        }
    }

    fn accept(
        &mut self,
        connection: Accepted,
        server: &mut ServerContext<'_>,
    ) -> Result<(), Failure> {
        let id = connection.id;
        let pending = PendingConnection::new(connection, self.policy.clone());
        let watched = self.sessions.watch(pending.fd(), id, PENDING);
        if self.sessions.is_closed() || watched.is_err() {
            server.pending_limit.leave(id);
            return Ok(());
        }

        self.pending.insert(id, pending);
        // Bytes that were read already cause no event.
        self.sessions.wake(id);
        Ok(())
    }

    fn evict(&mut self, id: u64, reason: RefusalReason, server: &mut ServerContext<'_>) {
        if let Some(pending) = self.pending.remove(&id) {
            self.sessions.set_due(id, None);
            server.log_refusal(pending.peer, reason);
        }
    }

    fn sessions(&self) -> &dyn SessionTable {
        &self.sessions
    }

    fn sessions_mut(&mut self) -> &mut dyn SessionTable {
        &mut self.sessions
    }

    fn deadline(&self) -> Option<Instant> {
        self.sessions.deadline().into_iter().chain(self.ends).min()
    }

    fn advance(&mut self, server: &mut ServerContext<'_>) -> Result<(), Failure> {
        for (id, kind) in self.sessions.events() {
            if kind == UDP_LISTENER {
                self.on_datagrams(id, server);
            }
        }

        if self.ends.take_if(|t| *t <= Instant::now()).is_some() {
            self.close();
            self.end_sessions("the server's time limit (-t) was reached");
        }

        self.advance_sessions(server);
        Ok(())
    }

    fn is_idle(&self) -> bool {
        self.sessions.is_empty() && self.pending.is_empty()
    }

    fn stop(&mut self, _signal_text: &str, server: &mut ServerContext<'_>) -> Stopped {
        if self.is_stopping || !self.drains {
            self.end_sessions("the server is shutting down");
            self.advance_sessions(server);
        } else if !self.sessions.is_empty() {
            let text = "Waiting for server threads to complete. Interrupt again to force quit.";
            server.out.warning(text);
        }

        self.is_stopping = true;
        self.close();

        if self.drains {
            Stopped::Draining
        } else {
            Stopped::Ended
        }
    }
}
