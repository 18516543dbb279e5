//! Sessions, and the streams and flows that find them.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use linerate_iperf3::wire::auth::Refusal;
use linerate_model::network::Network;
use linerate_model::policy::ServerPolicy;
use linerate_model::service::{HandshakeCause, RefusalReason};
use linerate_model::{Failure, ServerEvent};
use linerate_native::wire::datagram::{
    DatagramHead, DatagramType, FlowId, FlowOpen, HEAD_LEN, is_native,
};
use linerate_native::wire::message::Resume;
use linerate_native::wire::opening::{self, Opening};
use linerate_native::wire::stream_head::{LEN as STREAM_HEAD_LEN, StreamHead};
use linerate_sys::poll::{Epoll, Interest};
use linerate_sys::{sockopt, udp};
use linerate_trust::{Fingerprint, FlowOpener, Tokens as KnownTokens, flow_tag};

use super::address_proofs::AddressProofs;
use super::context::{Context, Shared};
use super::event_tokens::{CONTROL, KINDS, NAME, POOL};
use super::session::Session;
use super::tokens::{StreamRefusal, Tokens};
use crate::error::failure;
use crate::server::admission::Admission;
use crate::server::blocking_pool::BlockingPool;
use crate::server::context::ServerContext;
use crate::server::dialect::{self, Recognised, ServerDialect, Stopped};
use crate::server::intake::Intake;
use crate::server::limits::address_counts::AddressCounts;
use crate::server::limits::address_queue::AddressQueue;
use crate::server::limits::login_guard::LoginGuard;
use crate::server::listeners::accepted::Accepted;
use crate::server::listeners::udp::FirstDatagram;
use crate::server::login_check::LoginCheck;
use crate::server::timers::Timers;

/// The dialect in a server.
pub(crate) struct NativeServer {
    pub(super) context: Context,
    fingerprint: Fingerprint,
    key_is_kept: bool,
    pub(super) epoll: Epoll,
    sessions: BTreeMap<u64, Session>,
    timers: Timers,
    /// Sessions with something to do.
    ready: BTreeSet<u64>,
    pub(super) tokens: Tokens,
    logins: LoginGuard,
    /// Compares passwords.
    pool: LoginPool,
    login_queue: AddressQueue<LoginCheck>,
    /// A handshake costs this host more than the client.
    handshakes: AddressCounts,
    is_stopping: bool,
    address_proofs: AddressProofs,
}

/// TLS handshakes of one address per period.
const HANDSHAKES_MAX: u32 = 200;
const HANDSHAKE_PERIOD: Duration = Duration::from_secs(1);

type LoginPool = BlockingPool<LoginCheck, Result<(), Refusal>>;

impl NativeServer {
    pub(super) fn new(
        context: Context,
        fingerprint: Fingerprint,
        key_is_kept: bool,
    ) -> Result<Self, Failure> {
        let epoll = Epoll::new().map_err(|error| failure(error.text()))?;
        let users_file = context
            .spec
            .auth
            .as_ref()
            .map(|auth| auth.users_file.clone())
            .unwrap_or_default();
        let pool = LoginPool::new(move |check| check.run(&users_file))
            .map_err(|error| failure(error.text()))?;
        epoll
            .add(pool.fd(), POOL, Interest::READ)
            .map_err(|error| failure(error.text()))?;

        Ok(Self {
            context,
            fingerprint,
            key_is_kept,
            epoll,
            sessions: BTreeMap::new(),
            timers: Timers::default(),
            ready: BTreeSet::new(),
            tokens: Tokens::new(),
            handshakes: AddressCounts::new(HANDSHAKES_MAX, HANDSHAKE_PERIOD),
            logins: LoginGuard::default(),
            pool,
            login_queue: AddressQueue::default(),
            is_stopping: false,
            address_proofs: AddressProofs::new(Instant::now()),
        })
    }

    /// The tokens of a file, in place of those of before.
    fn reload_tokens(&mut self, policy: &ServerPolicy) -> Result<(), String> {
        let file = policy
            .native
            .as_ref()
            .and_then(|native| native.tokens.as_ref());
        let (Some(file), Some(tokens)) = (file, &mut self.context.tokens) else {
            return Ok(());
        };
        *tokens = KnownTokens::from_file(file)
            .map_err(|error| format!("the tokens stay as they were: {error}"))?;
        Ok(())
    }

    /// A client's control connection.
    fn add_session(&mut self, connection: Accepted, server: &mut ServerContext<'_>) {
        let Accepted { id, fd, peer, .. } = connection;
        let now = Instant::now();
        if self.handshakes.is_exhausted(peer.ip(), now) {
            server.pending_limit.leave(id);
            // A reset instead of a FIN: no descriptor and no TIME_WAIT entry remains for a client
            // that floods.
            let _ = sockopt::set_reset_on_close(&fd);
            let explanation =
                format!("its address has begun {HANDSHAKES_MAX} TLS handshakes within a second");
            let cause = HandshakeCause::Parameters;
            return server.out.server_event(&ServerEvent::HandshakeFailed {
                peer,
                cause,
                explanation,
            });
        }

        self.handshakes.record(peer.ip(), now);
        let session = Session::new(id, fd, peer, &self.context);
        let watched = session
            .control_fd()
            .map(|fd| self.epoll.add(fd, id * KINDS + CONTROL, Interest::READ));
        if watched.is_some_and(|watched| watched.is_ok()) {
            self.sessions.insert(id, session);
            self.ready.insert(id);
        } else {
            server.pending_limit.leave(id);
        }
    }

    /// A stream with a token; any other one is reset without a byte.
    fn add_stream(&mut self, connection: Accepted, server: &mut ServerContext<'_>) {
        let Accepted {
            id,
            fd,
            peer,
            first_bytes,
        } = connection;
        server.pending_limit.leave(id);

        // Without a head that can be read there is no token either.
        let head = first_bytes
            .first_chunk::<STREAM_HEAD_LEN>()
            .and_then(StreamHead::decode)
            .ok_or(StreamRefusal::Token);
        let granted = head.and_then(|head| {
            let owner =
                self.tokens
                    .take_stream(&head.token, head.kind, peer.ip(), Instant::now())?;
            Ok((head, owner))
        });
        let explanation = match granted {
            Ok((head, owner)) => {
                let session = self.sessions.get_mut(&owner);
                if session.is_some_and(|session| session.add_stream(&fd, head, &self.context)) {
                    // The session has another descriptor of it.
                    self.ready.insert(owner);
                    return;
                }

                "a stream that does not fit its phase".to_owned()
            }
            Err(refusal) => refusal.to_string(),
        };

        // Without a byte, so that a scanner does not learn what the tokens of this server look
        // like.
        let _ = sockopt::set_reset_on_close(&fd);
        let cause = HandshakeCause::Streams;
        server.out.server_event(&ServerEvent::HandshakeFailed {
            peer,
            cause,
            explanation,
        });
    }

    /// A request with a token opens a flow. Nothing is answered to any other datagram.
    fn on_flow_open(
        &mut self,
        datagram: &FirstDatagram,
        server: &mut ServerContext<'_>,
    ) -> Option<()> {
        let head = DatagramHead::decode(&datagram.bytes)?;
        let request = FlowOpen::decode(&datagram.bytes)
            .filter(|_| head.datagram_type == DatagramType::FlowOpen)?;
        let now = Instant::now();

        if let Some(session) =
            self.tokens
                .owner_elsewhere(&request.token, head.flow, datagram.from.ip(), now)
        {
            let opener = FlowOpener {
                session,
                flow: head.flow,
                address: datagram.from,
            };
            // Stateless, like a SYN cookie: a forged sender costs an HMAC and no memory.
            if !self.address_proofs.is_valid(head.tag, &opener, now) {
                let proof = self.address_proofs.issue(&opener, now);
                return self.challenge(session, &head, proof, datagram, server);
            }
        }

        let owner = self
            .tokens
            .take_flow(&request.token, head.flow, datagram.from.ip(), now)?;
        let session = self.sessions.get_mut(&owner)?;
        // After the token was taken: a second datagram with it finds none and opens no other
        // socket.
        let fd = server.udp.accept(datagram).ok()?;
        let id = FlowId {
            flow: head.flow,
            tag: flow_tag(&session.flow_secret, head.flow),
        };
        let mut answer = [0; HEAD_LEN];

        DatagramHead {
            datagram_type: DatagramType::Open,
            tag: id.tag,
            ..head
        }
        .encode_into(&mut answer);
        // A client whose answer is lost asks again.
        let _ = udp::send(&fd, &answer);
        session.add_flow(fd, id);
        self.ready.insert(owner);

        Some(())
    }

    /// The sender of a request from another address than that of its session is to show that it
    /// receives the answer.
    fn challenge(
        &self,
        owner: u64,
        request: &DatagramHead,
        proof: u64,
        datagram: &FirstDatagram,
        server: &ServerContext<'_>,
    ) -> Option<()> {
        let tag = flow_tag(&self.sessions.get(&owner)?.flow_secret, request.flow);
        let mut answer = [0; HEAD_LEN];

        let head = DatagramHead {
            datagram_type: DatagramType::Challenge,
            tag,
            stamp: proof,
            ..*request
        };
        head.encode_into(&mut answer);
        server.udp.answer(datagram, &answer).ok()
    }

    /// A connection continues the session that it names, if it proves that it is the same client.
    fn hand_over(&mut self, id: u64, resume: &Resume) -> Result<(), String> {
        let Some(mut later) = self.sessions.remove(&id) else {
            return Ok(());
        };
        self.timers.set(id, None);
        // The token of the event loop names the session; the descriptor is watched again by its new
        // owner.
        if let Some(fd) = later.control_fd() {
            let _ = self.epoll.remove(fd);
        }

        let owner = self
            .sessions
            .iter_mut()
            .find(|(_, session)| session.name == resume.session);
        let handed_over = match owner {
            Some((owner_id, owner)) => {
                self.ready.insert(*owner_id);
                owner.take_over(&mut later, resume, &self.epoll)
            }
            None => Err("there is no such session".to_owned()),
        };
        later.on_handed_over(handed_over.clone());

        if handed_over.is_err() {
            later.flush();
        }

        handed_over
    }

    fn advance_sessions(&mut self, server: &mut ServerContext<'_>) {
        self.ready.extend(self.timers.take_due(Instant::now()));
        for id in std::mem::take(&mut self.ready) {
            self.advance_session(id, server);
        }

        while let Some(id) = server
            .admission
            .next_turn(|id| self.sessions.contains_key(&id))
        {
            if let Some(session) = self.sessions.get_mut(&id) {
                session.take_turn(&self.context, server);
            }
            self.advance_session(id, server);
        }
    }

    /// A session has ended. The port is open only while one may send to it.
    fn close_unused_port(&self, server: &mut ServerContext<'_>) {
        if !self.sessions.values().any(Session::is_admitted) {
            server.udp.close(NAME);
        }
    }

    fn advance_session(&mut self, id: u64, server: &mut ServerContext<'_>) {
        let Self {
            context,
            epoll,
            tokens,
            logins,
            login_queue,
            sessions,
            ..
        } = self;
        let Some(session) = sessions.get_mut(&id) else {
            return;
        };

        let mut shared = Shared {
            context,
            epoll,
            tokens,
            logins,
            login_queue,
        };
        session.advance(&mut shared, server);
        self.timers.set(id, session.deadline());

        if let Some(resume) = session.take_resume() {
            if let Err(reason) = self.hand_over(id, &resume) {
                tracing::debug!(client = id, %reason, "session not resumed");
            }
            server.pending_limit.leave(id);
        } else if session.is_over() {
            self.end_session(id, server);
        }
    }

    /// Has passwords compared while a thread is free for it. Whether an address may log in is
    /// decided now, so that many logins at once are no more guesses than many in succession.
    fn begin_login_checks(&mut self, server: &mut ServerContext<'_>) {
        while self.pool.has_room()
            && let Some((id, check)) = self.login_queue.next()
        {
            let Some(session) = self.sessions.get_mut(&id) else {
                continue;
            };
            if self.logins.is_locked_out(session.peer.ip(), Instant::now()) {
                session.on_login_checked(Err(Refusal::LockedOut), &mut self.logins, server);
                self.ready.insert(id);
            } else {
                self.pool.begin(id, check);
            }
        }
    }

    fn take_checked_logins(&mut self, server: &mut ServerContext<'_>) {
        for (id, checked) in self.pool.take_outcomes() {
            if let Some(session) = self.sessions.get_mut(&id) {
                session.on_login_checked(checked, &mut self.logins, server);
                self.ready.insert(id);
            }
        }
    }

    fn end_session(&mut self, id: u64, server: &mut ServerContext<'_>) {
        let Some(session) = self.sessions.remove(&id) else {
            return;
        };
        self.timers.set(id, None);
        // Before the place is released: a late stream must not join the next session.
        self.tokens.revoke(id);
        self.login_queue
            .leave(id, Network::of_client(session.peer.ip()));
        server.pending_limit.leave(id);
        server.admission.release(id, Instant::now());
        session.end(server);
        self.close_unused_port(server);
    }
}

impl ServerDialect for NativeServer {
    fn name(&self) -> &'static str {
        NAME
    }

    fn start(&mut self, server: &mut ServerContext<'_>) -> Result<(), Failure> {
        if self.context.is_first {
            let address = server.listeners.address();
            server.out.server_event(&ServerEvent::Listening { address });
        }

        let kept = if self.key_is_kept {
            ""
        } else {
            ", which lasts as long as this server"
        };
        server.out.server_event(&ServerEvent::HostKey {
            text: format!("{}{kept}", self.fingerprint),
        });
        Ok(())
    }

    fn reload(&mut self, policy: &ServerPolicy) -> Result<(), String> {
        self.context.spec.policy.access = policy.access.clone();
        self.reload_tokens(policy)
    }

    fn recognise(&self, first_bytes: &[u8]) -> Recognised {
        match opening::recognise(first_bytes) {
            Opening::Control | Opening::StreamHead => Recognised::Mine,
            Opening::NeedMore(further) => Recognised::NeedMore(first_bytes.len() + further),
            Opening::Foreign => Recognised::NotMine,
        }
    }

    fn intake(&self, _admission: &Admission) -> Intake {
        // The listener may be that of another dialect, which also decides when the server ends.
        if self.is_stopping {
            Intake::Closed
        } else {
            Intake::Open
        }
    }

    fn accept(
        &mut self,
        connection: Accepted,
        server: &mut ServerContext<'_>,
    ) -> Result<(), Failure> {
        match opening::recognise(&connection.first_bytes) {
            Opening::StreamHead => self.add_stream(connection, server),
            _ => self.add_session(connection, server),
        }
        Ok(())
    }

    fn recognises_datagram(&self, first_bytes: &[u8]) -> bool {
        is_native(first_bytes)
    }

    fn first_datagram(&mut self, datagram: &FirstDatagram, server: &mut ServerContext<'_>) {
        if self.on_flow_open(datagram, server).is_none() {
            tracing::debug!(from = %datagram.from, "datagram dropped");
        }
    }

    fn evict(&mut self, id: u64, reason: RefusalReason, server: &mut ServerContext<'_>) {
        self.timers.set(id, None);
        if let Some(session) = self.sessions.remove(&id) {
            self.login_queue
                .leave(id, Network::of_client(session.peer.ip()));
            server.log_refusal(session.peer, reason);
            self.close_unused_port(server);
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn deadline(&self) -> Option<Instant> {
        let ready = (!self.ready.is_empty()).then(Instant::now);
        ready.into_iter().chain(self.timers.next()).min()
    }

    fn advance(&mut self, server: &mut ServerContext<'_>) -> Result<(), Failure> {
        for event in self.epoll.ready() {
            let id = event.token / KINDS;
            if let Some(session) = self.sessions.get_mut(&id) {
                if event.token % KINDS == CONTROL {
                    session.on_control();
                }
                self.ready.insert(id);
            }
        }

        // Before the sessions advance, so that an accepted login begins its test in this turn.
        self.take_checked_logins(server);
        self.advance_sessions(server);
        self.begin_login_checks(server);
        Ok(())
    }

    fn session(&mut self, id: u64) -> Option<&mut dyn dialect::Session> {
        let session = self.sessions.get_mut(&id)?;
        self.ready.insert(id);
        Some(session)
    }

    fn is_idle(&self) -> bool {
        self.sessions.is_empty()
    }

    fn stop(&mut self, signal_text: &str, server: &mut ServerContext<'_>) -> Stopped {
        self.is_stopping = true;
        for (id, session) in &mut self.sessions {
            session.stop_server(signal_text);
            self.ready.insert(*id);
        }

        self.advance_sessions(server);
        Stopped::Ended
    }
}
