//! Carries out what the machine of a session decides: proofs, admission, phases.

use std::time::Instant;

use linerate_iperf3::auth::{Refusal, check_password};
use linerate_model::ServerEvent;
use linerate_model::network::Network;
use linerate_model::path::{PhaseKind, PhaseSpec};
use linerate_model::policy::FactsAccess;
use linerate_model::service::RefusalReason;
use linerate_native::hex;
use linerate_native::message::{FlowGrant, Hello, MINOR, REQUESTS, Ready, Welcome};
use linerate_native::server::{Action, Input, TURN_SPACING};
use linerate_native::stream_head::StreamKind;
use linerate_sys::clock;
use linerate_sys::poll::{Epoll, Interest};
use linerate_trust::{Role, proof, verify};

use super::Context;
use super::active_phase::ActivePhase;
use super::native_server::{KINDS, NAME, NOTICE, REQUEST, address_of};
use super::request::RequestRefusal;
use super::responder::Responder;
use super::session::{Session, Waiting, announced};
use super::tokens::Tokens;
use crate::dialect::native::boot_id;
use crate::reporter::Reporter;
use crate::server::access::read_text;
use crate::server::admission::Decision;
use crate::server::context::ServerContext;
use crate::server::limits::login_guard::{LOGIN_REFUSAL_DELAY, LoginGuard};
use crate::server::limits::quotas::QuotaRequest;
use crate::server::limits::resource_quota::Requirements;

/// What a session may use of the server's.
pub(super) struct Shared<'a> {
    pub(super) context: &'a Context,
    pub(super) epoll: &'a Epoll,
    pub(super) tokens: &'a mut Tokens,
    pub(super) logins: &'a mut LoginGuard,
}

/// Tokens of probes over new connections per phase.
const PROBE_TOKENS: u32 = 200;
/// Probe flows per phase.
const FLOWS_MAX: u32 = 8;

impl Session {
    /// Does what the machine decided.
    pub(super) fn act(&mut self, action: Action, shared: &mut Shared<'_>, server: &mut ServerContext<'_>) {
        let now = Instant::now();
        match action {
            Action::Send(bytes) => self.send(&bytes),
            Action::Challenge { token_name } => self.challenge(&token_name, shared.context),
            Action::CheckProof { proof } => self.check_proof(&proof),
            Action::CheckLogin { user, password } => self.check_login(user, &password, shared, server),
            Action::Admit(hello) => self.admit(hello, shared.context, server),
            Action::Resume(resume) => self.resume = Some(resume),
            Action::OpenPhase { spec, .. } => self.open_phase(&spec, shared, server),
            Action::Start { .. } => self.start_phase(now, shared.epoll),
            Action::Stop { .. } => self.end_phase(now),
            Action::Clock { sent_ns } => {
                let now_ns = clock::monotonic_ns();
                self.machine.handle_local(now, Input::Clock { sent_ns, received_ns: now_ns, replied_ns: now_ns });
            }
            Action::SendFacts => {
                let facts = self.facts.take().unwrap_or_else(|| "null".to_owned());
                self.machine.handle_local(now, Input::Facts(facts));
            }
            Action::Request { name, body } => self.begin_request(now, name, body, shared),
            Action::ControlLost => self.drop_connection(),
            Action::Close(reason) => self.closed = Some(reason),
        }
    }

    fn challenge(&mut self, token_name: &str, context: &Context) {
        let token = context.tokens.as_ref().and_then(|tokens| tokens.get(token_name));
        let input = match (token, self.exporter()) {
            (Some(token), Some(exporter)) => {
                self.token = Some(token.clone());
                Input::Challenge { proof: proof(token, &exporter, Role::Server) }
            }
            _ => refused("token", "the server has no token of this name"),
        };
        self.machine.handle_local(Instant::now(), input);
    }

    fn check_proof(&mut self, client_proof: &[u8; 32]) {
        self.is_proven = match (&self.token, self.exporter()) {
            (Some(token), Some(exporter)) => verify(token, &exporter, Role::Client, client_proof),
            _ => false,
        };
        self.machine.handle_local(Instant::now(), Input::ProofChecked(self.is_proven));
    }

    /// Compares a password with the file of users, where the server has one.
    fn check_login(&mut self, user: String, password: &str, shared: &mut Shared<'_>, server: &mut ServerContext<'_>) {
        let now = Instant::now();
        let Some(auth) = &shared.context.spec.auth else {
            return self.machine.handle_local(now, Input::LoginChecked(true));
        };
        let address = self.peer.ip();
        let checked = if shared.logins.is_locked_out(address, now) {
            Err(Refusal::LockedOut)
        } else {
            // A file that cannot be read has no users.
            check_password(&user, password, &read_text(&auth.users_file).unwrap_or_default())
        };
        match checked {
            Ok(()) => {
                self.user = Some(user);
                self.machine.handle_local(now, Input::LoginChecked(true));
            }
            Err(refusal) => {
                if refusal != Refusal::LockedOut {
                    shared.logins.note_failure(address, now);
                }
                self.login_refused_at = Some(now + LOGIN_REFUSAL_DELAY);
                self.log_failed_login(refusal.label(), refusal.to_string(), server);
            }
        }
    }

    fn log_failed_login(&mut self, cause: &'static str, explanation: String, server: &mut ServerContext<'_>) {
        self.is_logged = true;
        server.out.server_event(&ServerEvent::LoginFailed { peer: self.peer, cause, explanation });
    }

    /// What the server demands of its clients and this one has not given: clause and text.
    fn missing_proof(&self, context: &Context) -> Option<(&'static str, &'static str)> {
        match (context.tokens.is_some(), context.spec.auth.is_some()) {
            _ if self.is_proven || self.user.is_some() => None,
            (false, false) => None,
            (true, false) => Some(("token", "this server demands a token; give --token-file")),
            (false, true) => Some(("login", "this server demands a user and a password; give --username")),
            (true, true) => Some(("login", "this server demands a token or a user; give --token-file or --username")),
        }
    }

    fn admit(&mut self, hello: Box<Hello>, context: &Context, server: &mut ServerContext<'_>) {
        let now = Instant::now();
        server.pending_limit.leave(self.id());
        if let Some((clause, text)) = self.missing_proof(context) {
            self.log_failed_login(clause, text.to_owned(), server);
            return self.machine.handle_local(now, refused(clause, text));
        }
        match server.admission.decide(self.id(), Network::of_client(self.peer.ip()), now) {
            Decision::Admitted => self.begin(hello, context, server),
            Decision::Queued(wait_max) => {
                self.waiting = Some(Waiting { hello, until: now + wait_max, announce_at: now });
                self.await_turn(now, server);
            }
            Decision::Refused(reason) => self.refuse(now, reason, server),
        }
    }

    fn refuse(&mut self, now: Instant, reason: RefusalReason, server: &mut ServerContext<'_>) {
        server.log_refusal(self.peer, reason);
        self.is_logged = true;
        let clause = if matches!(reason, RefusalReason::Busy | RefusalReason::QueueTooLong) { "busy" } else { "limit" };
        self.machine.handle_local(now, refused(clause, &reason.to_string()));
    }

    /// Announces its place to a client in the queue; one that has waited too long is refused.
    pub(super) fn await_turn(&mut self, now: Instant, server: &mut ServerContext<'_>) {
        let id = self.id();
        let Some(waiting) = &mut self.waiting else { return };
        if now >= waiting.until {
            self.waiting = None;
            return self.refuse(now, RefusalReason::QueueTooLong, server);
        }
        if now < waiting.announce_at {
            return;
        }
        waiting.announce_at = now + TURN_SPACING;
        if let Some(turn) = server.admission.turn(id, now) {
            let position = u32::try_from(turn.ahead).unwrap_or(u32::MAX);
            let wait_ms = u64::try_from(turn.wait.as_millis()).unwrap_or(u64::MAX);
            self.machine.handle_local(now, Input::Queued { position, wait_ms });
        }
    }

    /// Its turn has come.
    pub(super) fn take_turn(&mut self, context: &Context, server: &mut ServerContext<'_>) {
        if let Some(waiting) = self.waiting.take() {
            self.begin(waiting.hello, context, server);
        }
    }

    /// Begins the session of a client that has a place.
    fn begin(&mut self, hello: Box<Hello>, context: &Context, server: &mut ServerContext<'_>) {
        let now = Instant::now();
        let token = self.token.as_ref().filter(|_| self.is_proven).map(|token| token.name().to_owned());
        let user = token.or_else(|| self.user.clone());
        let spec = announced(&hello);
        let streams = hello.streams_max.saturating_mul(2);
        let request = QuotaRequest {
            address: Network::of_client(self.peer.ip()),
            user: user.clone(),
            streams,
            duration: spec.end.duration(),
            bytes: hello.bytes_max.unwrap_or(0),
            last_blocks_bytes: 0,
            rate_bps: hello.rate_bps.unwrap_or(u64::MAX),
            requirements: Requirements::of(&spec, streams),
        };
        if let Err(reason) = server.admission.take(self.id(), request) {
            return self.refuse(now, reason, server);
        }
        // A session without phases has requests alone: it is no test, and has no probes.
        if !hello.wants.is_empty() {
            if let Err(error) = self.start_responder(context) {
                server.admission.release(self.id());
                return self.machine.handle_local(now, refused("resources", &error.to_string()));
            }
            server.start_test(self.id(), self.peer, user, &spec, hello.streams_max);
        }
        let welcome = self.welcome(context, server);
        self.hello = Some(hello);
        self.machine.handle_local(now, Input::Admitted(Box::new(welcome)));
    }

    fn start_responder(&mut self, context: &Context) -> std::io::Result<()> {
        self.responder = Some(Responder::start(context.tls.clone())?);
        Ok(())
    }

    fn welcome(&self, context: &Context, server: &ServerContext<'_>) -> Welcome {
        let clock_error_ns = clock::realtime_error_max_ns().ok().flatten();
        Welcome {
            minor: MINOR,
            features: context.handled.iter().map(|_| REQUESTS.to_owned()).collect(),
            program: concat!("linerate ", env!("CARGO_PKG_VERSION")).to_owned(),
            session: self.name().to_owned(),
            resume_secret: hex::encode(&self.resume_secret),
            flow_secret: hex::encode(&self.flow_secret),
            server_ns: clock::monotonic_ns(),
            boot_id: boot_id(),
            clock_error_ns,
            realtime_offset_ns: clock_error_ns.map(|_| clock::realtime_offset_ns()),
            concurrent: server.stats.concurrent_max(self.id()),
            facts: self.gives_facts(context),
            ..Welcome::default()
        }
    }

    /// Facts of this host go to clients that proved a token, have logged in, or are on a list of allowed addresses.
    fn gives_facts(&self, context: &Context) -> bool {
        match context.spec.policy.facts {
            FactsAccess::All => true,
            FactsAccess::None => false,
            FactsAccess::Trusted => {
                self.is_proven || self.user.is_some() || !context.spec.policy.access.allow.is_empty()
            }
        }
    }

    fn open_phase(&mut self, spec: &PhaseSpec, shared: &mut Shared<'_>, server: &mut ServerContext<'_>) {
        let now = Instant::now();
        if self.responder.is_none() {
            return self.refuse_phase(now, "phase", "the session announces no phases".to_owned());
        }
        let allowed = self.hello.as_ref().map_or(0, |hello| hello.streams_max);
        if spec.streams_max > allowed && !matches!(spec.kind, PhaseKind::Rr | PhaseKind::Crr | PhaseKind::Cps) {
            let text = format!("{} streams, {allowed} were announced", spec.streams_max);
            return self.refuse_phase(now, "streams", text);
        }
        let quota = server.admission.quotas().quota(self.id());
        let probes = self.responder.as_ref().map(Responder::counts).unwrap_or_default();
        let reporter = self.reporter(shared.context);
        let opened =
            ActivePhase::open(spec.clone(), quota, probes, self.peer, reporter, shared.context.requests.drops.clone());
        let needs_udp = spec.probe_flows > 0 || spec.direction.is_some();
        let udp = match needs_udp {
            true => server.udp.open(NAME, &shared.context.spec.local, server.listeners.address()),
            false => Ok(()),
        };
        match (opened, udp) {
            (Ok(phase), Ok(())) => {
                self.phase = Some(phase);
                let ready = self.grant(spec, shared);
                self.machine.handle_local(now, Input::Ready(ready));
            }
            (Err(error), _) | (_, Err(error)) => self.refuse_phase(now, "resources", error.to_string()),
        }
    }

    fn begin_request(&mut self, now: Instant, name: String, body: String, shared: &Shared<'_>) {
        let unhandled = || RequestRefusal::new("request", "this server handles no requests");
        let requests = shared.context.handled.as_ref().ok_or_else(unhandled);
        let begun = requests.and_then(|requests| requests.begin(self.peer.ip(), name, body)).and_then(|pending| {
            let token = self.id() * KINDS + REQUEST;
            let watched = shared.epoll.add(pending.notice_fd(), token, Interest::READ);
            watched.map(|()| pending).map_err(|error| RequestRefusal::new("resources", error.text()))
        });
        match begun {
            Ok(pending) => self.request = Some(pending),
            Err(refusal) => self.machine.handle_local(now, refusal.into()),
        }
    }

    fn refuse_phase(&mut self, now: Instant, clause: &str, text: String) {
        self.machine.handle_local(now, Input::PhaseRefused { clause: clause.to_owned(), text, limit: None });
    }

    /// Follows the load of a phase, with a collector of facts if the client requests them and may have them.
    fn reporter(&self, context: &Context) -> Reporter<'static> {
        let mut reporter = Reporter::new(());
        let wants = self.hello.as_ref().is_some_and(|hello| hello.wants_facts);
        let want_peer_facts = wants && self.gives_facts(context);
        let spec = linerate_model::TestSpec { want_peer_facts, ..linerate_model::TestSpec::default() };
        reporter.add_collectors(&spec, &context.requests);
        reporter
    }

    fn grant(&mut self, spec: &PhaseSpec, shared: &mut Shared<'_>) -> Ready {
        let address = address_of(self.peer, shared.context.spec.policy.allow_split_address);
        let (id, now) = (self.id(), Instant::now());
        let tokens = &mut *shared.tokens;
        tokens.revoke(id);
        let directions = if spec.kind == PhaseKind::Both { 2 } else { 1 };
        let streams = match spec.kind {
            PhaseKind::Rr => vec![tokens.grant_stream(id, StreamKind::Rr, address, spec.streams_max)],
            PhaseKind::Crr | PhaseKind::Cps => vec![tokens.grant_stream(id, StreamKind::Crr, address, u32::MAX)],
            PhaseKind::Down | PhaseKind::Up | PhaseKind::Both => {
                let count = spec.streams_max * directions;
                (0..count).map(|_| tokens.grant_stream(id, StreamKind::Load, address, 1)).collect()
            }
            _ => Vec::new(),
        };
        let has_probes = matches!(spec.kind, PhaseKind::Idle | PhaseKind::Down | PhaseKind::Up | PhaseKind::Both);
        let probes = if has_probes { PROBE_TOKENS } else { 0 };
        let probes = (0..probes).map(|_| tokens.grant_stream(id, StreamKind::Probe, address, 1));
        let probes = probes.map(|token| hex::encode(&token)).collect();
        let flow_count = spec.probe_flows.min(FLOWS_MAX) + u32::from(spec.direction.is_some() && spec.probe_flows == 0);
        let mut flows = Vec::new();
        for _ in 0..flow_count {
            let flow = self.next_flow;
            self.next_flow += 1;
            flows.push(FlowGrant { flow, token: hex::encode(&tokens.grant_flow(id, flow, address, now)) });
        }
        let streams = streams.iter().map(|token| hex::encode(token)).collect();
        Ready { streams, flows, probes, ..Ready::default() }
    }

    fn start_phase(&mut self, now: Instant, epoll: &Epoll) {
        let token = self.id() * KINDS + NOTICE;
        let Some(phase) = &mut self.phase else { return };
        let started = phase.start();
        if let Some(fd) = phase.notice_fd() {
            // Without it the deadlines of the phase wake the session.
            let _ = epoll.add(fd, token, Interest::READ);
        }
        match started {
            Ok(at_ns) => self.machine.handle_local(now, Input::Started { at_ns }),
            Err(error) => self.machine.handle_local(now, Input::Stopping(error.to_string())),
        }
    }
}

fn refused(clause: &str, text: &str) -> Input {
    Input::Refused { clause: clause.to_owned(), text: text.to_owned(), limit: None }
}
