//! Carries out what the machine of a session decides, and runs its phases.

use std::time::Instant;

use linerate_model::path::{PhaseKind, PhaseSpec};
use linerate_native::wire::hex;
use linerate_native::wire::message::{ClockReply, FlowGrant, Ready, Refusal};
use linerate_native::wire::server::{Action, Input};
use linerate_native::wire::stream_head::StreamKind;
use linerate_sys::clock;
use linerate_sys::poll::Interest;

use super::active_phase::ActivePhase;
use super::context::{Context, Shared};
use super::event_tokens::{NAME, NOTICE, REQUEST};
use super::request::RequestRefusal;
use super::responder::{Responder, Task};
use super::session::Session;
use super::tokens::Origin;
use crate::reporter::Reporter;
use crate::server::{ServerContext, token};

/// Tokens of probes over new connections per phase.
const PROBE_TOKENS: u32 = 200;
/// Probe flows per phase.
pub(super) const FLOWS_MAX: u32 = 8;

impl Session {
    /// Does what the machine decided.
    pub(super) fn execute(
        &mut self,
        action: Action,
        shared: &mut Shared<'_>,
        server: &mut ServerContext<'_>,
    ) {
        match action {
            Action::Send(bytes) => self.send(&bytes),
            Action::CheckProof { token_name, proof } => {
                self.check_proof(&token_name, &proof, shared, server);
            }
            Action::CheckLogin { user, password } => self.check_login(user, password, shared),
            Action::Admit(hello) => self.admit(hello, shared.context, server),
            Action::Resume(resume) => self.resume = Some(resume),
            Action::OpenPhase { spec, .. } => self.open_phase(&spec, shared, server),
            Action::Start { .. } => self.start_phase(shared),
            Action::Stop { .. } => self.end_phase(server),
            Action::Clock { sent_ns } => {
                let now_ns = clock::monotonic_ns();
                let reply = ClockReply {
                    sent_ns,
                    received_ns: now_ns,
                    replied_ns: now_ns,
                };
                self.input(Input::Clock(reply));
            }
            Action::SendFacts => {
                let facts = self.facts.take().unwrap_or_else(|| "null".to_owned());
                self.input(Input::Facts(facts));
            }
            Action::Request { name, body } => self.begin_request(name, body, shared),
            Action::ControlLost => self.connection = None,
            Action::Close(reason) => self.closed = Some(reason),
        }
    }

    fn open_phase(
        &mut self,
        spec: &PhaseSpec,
        shared: &mut Shared<'_>,
        server: &mut ServerContext<'_>,
    ) {
        if self.responder.is_none() {
            return self.refuse_phase("phase", "the session announces no phases".to_owned());
        }
        if let Err((clause, text)) = self.check_announced(spec) {
            return self.refuse_phase(clause, text);
        }

        if let Some(responder) = &self.responder {
            responder.push_task(Task::BeginPhase);
        }

        let quota = self.quota.clone();
        let probes = self
            .responder
            .as_ref()
            .map(Responder::counts)
            .unwrap_or_default();

        let reporter = self.reporter(shared.context, server);
        let opened = ActivePhase::open(
            spec.clone(),
            quota,
            probes,
            self.peer,
            reporter,
            shared.context.requests.drops.clone(),
        );

        let needs_udp = spec.probe_flows > 0 || spec.direction.is_some();
        let udp = if needs_udp {
            server
                .udp
                .open(NAME, &shared.context.spec.local, server.listeners.address())
        } else {
            Ok(())
        };
        match (opened, udp) {
            (Ok(phase), Ok(())) => {
                self.phase = Some(phase);
                let ready = self.grant(spec, shared);
                self.input(Input::Ready(ready));
            }
            (Err(error), _) | (_, Err(error)) => {
                self.refuse_phase("resources", error.to_string());
            }
        }
    }

    /// Admission has counted what the hello announced, and nothing else.
    fn check_announced(&self, spec: &PhaseSpec) -> Result<(), (&'static str, String)> {
        let Some(hello) = &self.hello else {
            return Ok(());
        };
        if !hello.wants.contains(&spec.kind) {
            return Err(("kind", format!("{} was not announced", spec.kind.name())));
        }

        let (what, announced) = if spec.kind.has_transactions() {
            ("connections", self.connections_max)
        } else {
            ("streams", hello.streams_max)
        };
        if spec.streams_max > announced {
            return Err((
                "streams",
                format!("{} {what}, the session has {announced}", spec.streams_max),
            ));
        }

        Ok(())
    }

    fn begin_request(&mut self, name: String, body: String, shared: &Shared<'_>) {
        let unhandled = || RequestRefusal::new("request", "this server handles no requests");
        let requests = shared.context.handled.as_ref().ok_or_else(unhandled);
        let begun = requests
            .and_then(|requests| requests.begin(self.peer.ip(), name, body))
            .and_then(|pending| {
                let token = token(self.id, REQUEST);
                let watched = shared.epoll.add(pending.notice_fd(), token, Interest::READ);
                watched
                    .map(|()| pending)
                    .map_err(|error| RequestRefusal::new("resources", error.text()))
            });
        match begun {
            Ok(pending) => self.request = Some(pending),
            Err(refusal) => self.input(refusal.into()),
        }
    }

    fn refuse_phase(&mut self, clause: &str, text: String) {
        let refusal = Refusal::new(clause, text);
        self.input(Input::PhaseRefused(refusal));
    }

    /// Follows the load of a phase, with a collector of facts if the client requests them and may
    /// have them.
    fn reporter(&self, context: &Context, server: &ServerContext<'_>) -> Reporter<'static> {
        let mut reporter = Reporter::new(());
        let wants = self.hello.as_ref().is_some_and(|hello| hello.wants_facts);
        let want_peer_facts = wants && server.gives_facts(self.user.is_some());
        let spec = linerate_model::TestSpec {
            want_peer_facts,
            ..linerate_model::TestSpec::default()
        };
        reporter.add_collectors(&spec, &context.requests);
        reporter
    }

    fn grant(&mut self, spec: &PhaseSpec, shared: &mut Shared<'_>) -> Ready {
        let allows_others = shared.context.spec.policy.allow_split_address;
        let origin = Origin {
            client: self.peer.ip(),
            allows_others,
        };
        let id = self.id;
        let now = Instant::now();
        let tokens = &mut *shared.tokens;
        tokens.revoke(id);

        let streams = match spec.kind {
            PhaseKind::Rr => {
                vec![tokens.grant_stream(id, StreamKind::Rr, origin, spec.streams_max)]
            }
            PhaseKind::Crr | PhaseKind::Cps => {
                vec![tokens.grant_stream(id, StreamKind::Crr, origin, u32::MAX)]
            }
            kind => {
                let count = spec.streams_max as usize * kind.load_directions().len();
                (0..count)
                    .map(|_| tokens.grant_stream(id, StreamKind::Load, origin, 1))
                    .collect()
            }
        };

        let probes = if spec.kind.has_probes() {
            PROBE_TOKENS
        } else {
            0
        };
        let probes = (0..probes).map(|_| tokens.grant_stream(id, StreamKind::Probe, origin, 1));
        let probes = probes.map(|token| hex::encode(&token)).collect();
        let flow_count = spec.probe_flows.min(FLOWS_MAX)
            + u32::from(spec.direction.is_some() && spec.probe_flows == 0);
        let mut flows = Vec::new();

        for _ in 0..flow_count {
            let flow = self.next_flow;
            self.next_flow += 1;
            flows.push(FlowGrant {
                flow,
                token: hex::encode(&tokens.grant_flow(id, flow, origin, now)),
            });
        }

        let streams = streams.iter().map(|token| hex::encode(token)).collect();
        Ready {
            streams,
            flows,
            probes,
            ..Ready::default()
        }
    }

    fn start_phase(&mut self, shared: &Shared<'_>) {
        let token = token(self.id, NOTICE);
        let Some(phase) = &mut self.phase else { return };
        let started = phase.start();

        if let Some(fd) = phase.notice_fd() {
            // Without it the deadlines of the phase wake the session.
            let _ = shared.epoll.add(fd, token, Interest::READ);
        }

        if phase.spec.hops {
            let device = shared.context.spec.local.bind.device.as_deref();
            let spec = phase.spec.clone();
            self.start_hops(&spec, device);
        }

        match started {
            Ok(at_ns) => self.input(Input::Started { at_ns }),
            Err(error) => self.input(Input::Stopping(error.to_string())),
        }
    }
}
