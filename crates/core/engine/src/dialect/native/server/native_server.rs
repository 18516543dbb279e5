//! Sessions, and the streams and flows that find them.

use std::time::{Duration, Instant};

use linerate_model::policy::ServerPolicy;
use linerate_model::service::{HandshakeCause, RefusalReason};
use linerate_model::{Failure, ServerEvent};
use linerate_native::wire::datagram::{
    DatagramHead, DatagramType, FlowId, FlowOpen, HEAD_LEN, is_native,
};
use linerate_native::wire::message::Resume;
use linerate_native::wire::opening::{self, Opening};
use linerate_native::wire::stream_head::{LEN as STREAM_HEAD_LEN, StreamHead};
use linerate_sys::{OsError, sockopt, udp};
use linerate_trust::{Fingerprint, FlowOpener, Tokens as KnownTokens, flow_tag};

use super::address_proofs::AddressProofs;
use super::context::{Context, Shared};
use super::event_tokens::{CONTROL, NAME, POOL};
use super::session::Session;
use super::tokens::{StreamRefusal, Tokens};
use crate::server::limits::address_counts::AddressCounts;
use crate::server::{
    Accepted, FirstDatagram, Logins, Recognised, ServerContext, ServerDialect, SessionTable,
    Sessions, Stopped,
};

/// The dialect in a server.
pub(crate) struct NativeServer {
    context: Context,
    fingerprint: Fingerprint,
    key_is_kept: bool,
    sessions: Sessions<Session>,
    tokens: Tokens,
    logins: Logins,
    /// A handshake costs this host more than the client.
    handshakes: AddressCounts,
    address_proofs: AddressProofs,
}

/// TLS handshakes of one address per period.
const HANDSHAKES_MAX: u32 = 200;
const HANDSHAKE_PERIOD: Duration = Duration::from_secs(1);

impl NativeServer {
    pub(super) fn new(
        context: Context,
        fingerprint: Fingerprint,
        key_is_kept: bool,
    ) -> Result<Self, OsError> {
        let auth = context.spec.auth.as_ref();
        let users_file = auth.map(|auth| auth.users_file.clone());
        let logins = Logins::new(users_file.unwrap_or_default())?;
        let sessions = Sessions::new()?;
        sessions.watch(logins.fd(), 0, POOL)?;

        Ok(Self {
            context,
            fingerprint,
            key_is_kept,
            sessions,
            tokens: Tokens::new(),
            logins,
            handshakes: AddressCounts::new(HANDSHAKES_MAX, HANDSHAKE_PERIOD),
            address_proofs: AddressProofs::new(Instant::now()),
        })
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
            return server.log_failed_handshake(peer, HandshakeCause::Parameters, explanation);
        }

        self.handshakes.record(peer.ip(), now);
        let session = Session::new(id, fd, peer, &self.context);
        let watched = session
            .control_fd()
            .map(|fd| self.sessions.watch(fd, id, CONTROL));
        if watched.is_some_and(|watched| watched.is_ok()) {
            self.sessions.insert(id, session);
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
                    self.sessions.wake(owner);
                    return;
                }

                "a stream that does not fit its phase".to_owned()
            }
            Err(refusal) => refusal.to_string(),
        };

        // Without a byte, so that a scanner does not learn what the tokens of this server look
        // like.
        let _ = sockopt::set_reset_on_close(&fd);
        server.log_failed_handshake(peer, HandshakeCause::Streams, explanation);
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
        self.sessions.wake(owner);

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
        let Some(mut later) = self.sessions.remove(id) else {
            return Ok(());
        };
        // The token of the event loop names the session; the descriptor is watched again by its new
        // owner.
        if let Some(fd) = later.control_fd() {
            let _ = self.sessions.epoll().remove(fd);
        }

        let mut sessions = self.sessions.iter();
        let owner = sessions.find(|(_, session)| session.name == resume.session);
        let owner = owner.map(|(id, _)| *id);
        let handed_over = match owner.and_then(|owner| self.sessions.with_epoll(owner)) {
            Some((owner, epoll)) => owner.take_over(&mut later, resume, epoll),
            None => Err("there is no such session".to_owned()),
        };
        owner
            .into_iter()
            .for_each(|owner| self.sessions.wake(owner));

        later.on_handed_over(handed_over.clone());
        if handed_over.is_err() {
            later.flush();
        }

        handed_over
    }

    fn advance_sessions(&mut self, server: &mut ServerContext<'_>) {
        for id in self.sessions.take_ready() {
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
        let Some((session, epoll)) = self.sessions.with_epoll(id) else {
            return;
        };
        let mut shared = Shared {
            context: &self.context,
            epoll,
            tokens: &mut self.tokens,
            logins: &mut self.logins,
        };
        session.advance(&mut shared, server);

        let due = session.deadline();
        let resume = session.resume.take();
        let is_over = session.closed.is_some();
        self.sessions.set_due(id, due);
        if let Some(resume) = resume {
            if let Err(reason) = self.hand_over(id, &resume) {
                tracing::debug!(client = id, %reason, "session not resumed");
            }

            server.pending_limit.leave(id);
        } else if is_over && let Some(session) = self.remove(id) {
            server.pending_limit.leave(id);
            server.admission.release(id, Instant::now());
            session.end(server);
            self.close_unused_port(server);
        }
    }

    fn take_checked_logins(&mut self, server: &mut ServerContext<'_>) {
        for (id, verdict) in self.logins.take_checked() {
            if let Some(session) = self.sessions.get_mut(&id) {
                session.on_login_checked(verdict, server);
                self.sessions.wake(id);
            }
        }
    }

    /// Takes a session out, and all that would find it: a late stream must not join the next one.
    fn remove(&mut self, id: u64) -> Option<Session> {
        let session = self.sessions.remove(id)?;
        self.tokens.revoke(id);
        self.logins.leave(id, session.peer.ip());
        Some(session)
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

    /// The tokens of a file, in place of those of before.
    fn reload(&mut self, policy: &ServerPolicy) -> Result<(), String> {
        let native = policy.native.as_ref();
        let file = native.and_then(|native| native.tokens.as_ref());
        if let (Some(file), Some(tokens)) = (file, &mut self.context.tokens) {
            *tokens = KnownTokens::from_file(file)
                .map_err(|error| format!("the tokens stay as they were: {error}"))?;
        }

        Ok(())
    }

    fn recognise(&self, first_bytes: &[u8]) -> Recognised {
        match opening::recognise(first_bytes) {
            Opening::Control | Opening::StreamHead => Recognised::Mine,
            Opening::NeedMore(further) => Recognised::NeedMore(first_bytes.len() + further),
            Opening::Foreign => Recognised::NotMine,
        }
    }

    fn sessions(&self) -> &dyn SessionTable {
        &self.sessions
    }

    fn sessions_mut(&mut self) -> &mut dyn SessionTable {
        &mut self.sessions
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
        if let Some(session) = self.remove(id) {
            server.log_refusal(session.peer, reason);
            self.close_unused_port(server);
        }
    }

    fn advance(&mut self, server: &mut ServerContext<'_>) -> Result<(), Failure> {
        for (id, kind) in self.sessions.events() {
            match (kind, self.sessions.get_mut(&id)) {
                (CONTROL, Some(session)) => session.on_control(),
                (POOL, _) => self.take_checked_logins(server),
                _ => {}
            }
        }

        self.advance_sessions(server);
        Ok(())
    }

    fn stop(&mut self, signal_text: &str, server: &mut ServerContext<'_>) -> Stopped {
        self.sessions.close();
        for session in self.sessions.wake_all() {
            session.stop_server(signal_text);
        }

        self.advance_sessions(server);
        Stopped::Ended
    }
}
