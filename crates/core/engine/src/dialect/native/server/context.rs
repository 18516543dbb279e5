//! State that the sessions of a server share.

use linerate_model::sink::PeerRequests;
use linerate_model::spec::ServerSpec;
use linerate_sys::poll::Epoll;
use linerate_trust::{ServerConfig, Tokens as KnownTokens};

use super::request::Requests;
use super::tokens::Tokens;
use crate::server::Logins;

/// Configuration that all sessions have in common.
pub(super) struct Context {
    pub spec: ServerSpec,
    pub tls: ServerConfig,
    pub tokens: Option<KnownTokens>,
    pub requests: PeerRequests,
    /// Requests beside tests; `None` where they are refused.
    pub handled: Option<Requests>,
    /// The first dialect of the shared listener, which reports where it is.
    pub is_first: bool,
}

/// State of the server that a session may use.
pub(super) struct Shared<'a> {
    pub context: &'a Context,
    pub epoll: &'a Epoll,
    pub tokens: &'a mut Tokens,
    pub logins: &'a mut Logins,
}
