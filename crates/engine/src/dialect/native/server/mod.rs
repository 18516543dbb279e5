//! The native dialect of a server.
//!
//! A `NativeServer` has one session per client. A session owns its control connection and the protocol machine, a phase with
//! its load, and a thread that answers probes. Streams and flows find their session by tokens.

mod active_phase;
mod address_counts;
mod native_server;
mod phases;
mod responder;
mod session;
mod tokens;

use std::time::Duration;

use linerate_model::Failure;
use linerate_model::policy::NativePolicy;
use linerate_model::sink::PeerRequests;
use linerate_model::spec::ServerSpec;
use linerate_trust::{HostKey, ServerConfig, Tokens as KnownTokens};

use crate::error::failure;
use native_server::NativeServer;

/// Longest TLS handshake of a client.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// What all sessions have in common.
pub(super) struct Context {
    pub(super) spec: ServerSpec,
    pub(super) tls: ServerConfig,
    pub(super) tokens: Option<KnownTokens>,
    pub(super) requests: PeerRequests,
}

/// The dialect beside others on the shared listener; `None` where the policy leaves it out.
pub(in crate::dialect) fn beside_others(
    spec: &ServerSpec,
    requests: PeerRequests,
) -> Result<Option<NativeServer>, Failure> {
    let Some(policy) = &spec.policy.native else { return Ok(None) };
    let key = host_key(policy)?;
    let tokens = policy.tokens.as_deref().map(KnownTokens::from_file).transpose().map_err(failure)?;
    let tls = ServerConfig::new(&key);
    let context = Context { spec: spec.clone(), tls, tokens, requests };
    NativeServer::new(context, key.fingerprint(), policy.host_key.is_some()).map(Some)
}

fn host_key(policy: &NativePolicy) -> Result<HostKey, Failure> {
    match &policy.host_key {
        Some(path) => HostKey::load_or_create(path).map_err(failure),
        None => HostKey::ephemeral().map_err(failure),
    }
}
