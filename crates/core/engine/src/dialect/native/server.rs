//! The native dialect of a server.
//!
//! A `NativeServer` has one session per client. A session owns its control connection and the
//! protocol machine, a phase with its load, and a thread that answers probes. Streams and flows
//! find their session by tokens.

mod active_phase;
mod address_proofs;
mod client_hops;
mod context;
mod event_tokens;
mod native_server;
mod opening;
mod phases;
mod proofs;
mod request;
pub(crate) mod responder;
mod session;
mod tokens;

use std::sync::Arc;

use linerate_model::policy::NativePolicy;
use linerate_model::sink::PeerRequests;
use linerate_model::spec::ServerSpec;
use linerate_model::{Failure, ServerReporter};
use linerate_trust::{HostKey, ServerConfig, Tokens as KnownTokens};

use crate::error::failure;
use crate::interrupts::Interrupts;
use crate::server::Server;
use context::Context;
use native_server::NativeServer;
use request::Requests;
pub use request::{RequestHandler, RequestRefusal};

/// Serves this dialect alone until interrupted; `handler` handles the requests of clients. The
/// reporter receives [`linerate_model::ServerEvent::Listening`] and the key when all ports are
/// bound.
///
/// # Errors
/// When the policy has no native dialect, or the server cannot listen or was interrupted.
pub fn run(
    spec: &ServerSpec,
    handler: Arc<dyn RequestHandler>,
    reporter: &mut dyn ServerReporter,
    interrupts: &dyn Interrupts,
) -> Result<(), Failure> {
    let policy = spec
        .policy
        .native
        .as_ref()
        .ok_or_else(|| failure("the policy has no native dialect"))?;
    let mut server = Server::new(spec, reporter, interrupts).map_err(failure)?;
    server.listen().map_err(failure)?;

    let dialect = open(
        server.spec(),
        policy,
        PeerRequests::default(),
        Some(handler),
    )?;
    server.add(Box::new(dialect)).map_err(failure)?;
    server.run(|| Ok(()))
}

/// The dialect beside others on the shared listener; `None` where the policy leaves it out.
pub(crate) fn beside_others(
    spec: &ServerSpec,
    requests: PeerRequests,
) -> Result<Option<NativeServer>, Failure> {
    let Some(policy) = &spec.policy.native else {
        return Ok(None);
    };
    open(spec, policy, requests, None).map(Some)
}

fn open(
    spec: &ServerSpec,
    policy: &NativePolicy,
    requests: PeerRequests,
    handler: Option<Arc<dyn RequestHandler>>,
) -> Result<NativeServer, Failure> {
    let key = host_key(policy)?;
    let tokens = policy
        .tokens
        .as_deref()
        .map(KnownTokens::from_file)
        .transpose()
        .map_err(failure)?;

    let tls = ServerConfig::new(&key);
    // With a handler it is alone.
    let is_first = handler.is_some() || !spec.policy.iperf3;

    let context = Context {
        spec: spec.clone(),
        tls,
        tokens,
        requests,
        handled: handler.map(Requests::new),
        is_first,
    };
    NativeServer::new(context, key.fingerprint(), policy.host_key.is_some())
        .map_err(|error| failure(error.text()))
}

fn host_key(policy: &NativePolicy) -> Result<HostKey, Failure> {
    match &policy.host_key {
        Some(path) => HostKey::load_or_create(path).map_err(failure),
        None => HostKey::ephemeral().map_err(failure),
    }
}
