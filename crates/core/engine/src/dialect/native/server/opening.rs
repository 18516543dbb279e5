//! From the hello of a client to its session: admission, the queue, the welcome.

use std::time::Instant;

use linerate_model::network::Network;
use linerate_model::path::PhaseKind;
use linerate_model::service::RefusalReason;
use linerate_native::wire::hex;
use linerate_native::wire::message::{
    Hello, Limits, MINOR, REQUESTS, Refusal, SPLIT_ADDRESS, TRANSACTION_STREAMS_MAX, Turn, Welcome,
};
use linerate_native::wire::server::{Input, TURN_SPACING};
use linerate_sys::clock;

use super::context::Context;
use super::phases::FLOWS_MAX;
use super::responder::{Meter, Responder};
use super::session::{Session, Waiting, announced};
use crate::dialect::native::boot_id;
use crate::hops;
use crate::server::limits::allotment::Allotment;
use crate::server::limits::requirements::SessionNeeds;
use crate::server::{Decision, QuotaRequest, Requirements, ServerContext};

/// Probes over new connections that may be open at once. Clients of ours open ten per second and
/// keep as many at most.
const PROBE_CONNECTIONS_MAX: u32 = 32;

impl Session {
    pub(super) fn admit(
        &mut self,
        hello: Box<Hello>,
        context: &Context,
        server: &mut ServerContext<'_>,
    ) {
        let now = Instant::now();
        server.pending_limit.leave(self.id);

        if let Some((clause, text)) = self.missing_proof(context) {
            self.log_failed_login(clause, text.to_owned(), server);
            return self.input(refused(clause, text));
        }

        match server
            .admission
            .decide(self.id, Network::of_client(self.peer.ip()), now)
        {
            Decision::Admitted => self.begin(hello, context, server),
            Decision::Queued(wait_max) => {
                self.waiting = Some(Waiting {
                    hello,
                    until: now + wait_max,
                    announce_at: now,
                });
                self.await_turn(now, server);
            }
            Decision::Refused(reason) => self.refuse(reason, &reason.to_string(), server),
        }
    }

    fn refuse(&mut self, reason: RefusalReason, text: &str, server: &mut ServerContext<'_>) {
        server.log_refusal(self.peer, reason);
        self.is_logged = true;

        let clause = match reason {
            RefusalReason::Busy | RefusalReason::QueueTooLong => "busy",
            RefusalReason::Duration => "duration",
            RefusalReason::Streams => "streams",
            RefusalReason::Bytes => "bytes",
            RefusalReason::Rate => "rate",
            _ => "limit",
        };
        self.input(refused(clause, text));
    }

    /// Announces its place to a client in the queue; one that has waited too long is refused.
    pub(super) fn await_turn(&mut self, now: Instant, server: &mut ServerContext<'_>) {
        let id = self.id;
        let Some(waiting) = &mut self.waiting else {
            return;
        };
        if now >= waiting.until {
            self.waiting = None;
            let reason = RefusalReason::QueueTooLong;
            return self.refuse(reason, &reason.to_string(), server);
        }

        if now < waiting.announce_at {
            return;
        }

        // Announced again although it may not have changed: the client takes a silent server for a
        // broken path.
        waiting.announce_at = now + TURN_SPACING;
        if let Some(turn) = server.admission.turn(id, now) {
            let position = u32::try_from(turn.ahead).unwrap_or(u32::MAX);
            let wait_ms = u64::try_from(turn.wait.as_millis()).unwrap_or(u64::MAX);
            let turn = Turn { position, wait_ms };
            self.input(Input::Queued(turn));
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
        let user = self.user.clone();
        let spec = announced(&hello);
        let streams = hello.streams_max.saturating_mul(2);
        let address = Network::of_client(self.peer.ip());
        let connections_max = connections_max(&hello, server.admission.quotas().connections_max());
        let requirements = Requirements::of_session(&spec, needs(&hello, connections_max));

        let request = QuotaRequest {
            address,
            user: user.clone(),
            streams,
            duration: spec.end.duration(),
            bytes: hello.bytes_max.unwrap_or(0),
            last_blocks_bytes: 0,
            // A client that announces no rate is slowed down to the limit.
            rate_bps: hello.rate_bps.unwrap_or(0),
            requirements,
        };
        if let Err(reason) = server.admission.take(self.id, request.clone()) {
            let text = server.admission.quotas().explained(&request, reason);
            return self.refuse(reason, &text, server);
        }

        self.allotment = Allotment::new(requirements.allotted);
        self.connections_max = connections_max;
        self.quota = server.admission.quotas().quota(self.id);
        self.meter = Meter::new(self.quota.clone());

        // A session without phases has requests alone: it is no test, and has no probes.
        if !hello.wants.is_empty() {
            if let Err(error) = self.start_responder(context) {
                // The place was taken above; a client that never begins must not keep it.
                server.admission.release(self.id, now);
                return self.input(refused("resources", &error.to_string()));
            }

            server.start_test(self.id, self.peer, user, &spec, hello.streams_max);
        }

        let welcome = self.welcome(context, server);
        self.hello = Some(hello);
        self.input(Input::Admitted(Box::new(welcome)));
    }

    fn start_responder(&mut self, context: &Context) -> std::io::Result<()> {
        self.responder = Some(Responder::start(context.tls.clone(), self.meter.clone())?);
        Ok(())
    }

    fn welcome(&self, context: &Context, server: &ServerContext<'_>) -> Welcome {
        let clock_error_ns = clock::realtime_error_max_ns().ok().flatten();
        Welcome {
            minor: MINOR,
            features: features(context),
            program: concat!("linerate ", env!("CARGO_PKG_VERSION")).to_owned(),
            session: self.name.clone(),
            resume_secret: hex::encode(&self.resume_secret),
            flow_secret: hex::encode(&self.flow_secret),
            server_ns: clock::monotonic_ns(),
            boot_id: boot_id(),
            clock_error_ns,
            realtime_offset_ns: clock_error_ns.map(|_| clock::realtime_offset_ns()),
            concurrent: server.stats.concurrent_max(self.id),
            facts: server.gives_facts(self.user.is_some()),
            limits: Limits {
                connections_max: Some(self.connections_max),
                ..Limits::default()
            },
        }
    }
}

/// Connections of requests and responses that a session may have open: those that it announces, as
/// far as this host has them.
fn connections_max(hello: &Hello, host_max: u32) -> u32 {
    let has_transactions = hello.wants.iter().any(|kind| kind.has_transactions());
    let announced = hello
        .connections_max
        .clamp(1, TRANSACTION_STREAMS_MAX)
        .min(host_max);
    if has_transactions { announced } else { 0 }
}

fn needs(hello: &Hello, transactions: u32) -> SessionNeeds {
    use PhaseKind as K;

    let has_probes = hello.wants.iter().any(|kind| {
        matches!(
            kind,
            K::Size | K::Hops | K::Idle | K::Down | K::Up | K::Both
        )
    });
    SessionNeeds {
        streams: hello.streams_max.saturating_mul(2),
        probe_connections: if has_probes { PROBE_CONNECTIONS_MAX } else { 0 },
        transactions,
        flows: if hello.wants.is_empty() { 0 } else { FLOWS_MAX },
        tracer: if has_probes { hops::DESCRIPTORS } else { 0 },
    }
}

fn features(context: &Context) -> Vec<String> {
    let requests = context.handled.as_ref().map(|_| REQUESTS);
    let split_address = context
        .spec
        .policy
        .allow_split_address
        .then_some(SPLIT_ADDRESS);
    requests
        .into_iter()
        .chain(split_address)
        .map(str::to_owned)
        .collect()
}

pub(super) fn refused(clause: &str, text: &str) -> Input {
    Input::Refused(Refusal::new(clause, text))
}
