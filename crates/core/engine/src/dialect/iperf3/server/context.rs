//! Settings all sessions of a server share.

use linerate_iperf3::wire::auth::Authenticator;
use linerate_iperf3::wire::server::{HANDSHAKE_TIMEOUT, OVERTIME, Policy, ServerSetup};
use linerate_iperf3::wire::{Cookie, ErrorCode};
use linerate_model::Failure;
use linerate_model::sink::PeerRequests;
use linerate_model::spec::ServerSpec;
use linerate_sys::clock;

use super::work::LoginChecker;
use crate::server::listeners::acceptor::HEADER_TIMEOUT;

/// Settings.
pub(super) struct Context {
    pub spec: ServerSpec,
    pub peer_requests: PeerRequests,
}

impl Context {
    /// The key of the server and where its users are; `None` when no login is required.
    pub(super) fn login_checker(&self) -> Result<Option<LoginChecker>, Failure> {
        let Some(auth) = &self.spec.auth else {
            return Ok(None);
        };
        let authenticator = Authenticator::new(&auth.private_key_pem, auth.padding, auth.max_skew)
            .map_err(|e| ErrorCode::SetServerAuth.failure(Some(&e.to_string())))?;
        let users_file = auth.users_file.clone();

        Ok(Some(LoginChecker {
            authenticator,
            users_file,
        }))
    }

    pub(super) fn setup(&self, cookie: Cookie) -> ServerSetup {
        ServerSetup {
            cookie,
            policy: self.policy(),
            unix_s: i64::try_from(clock::unix_ms() / 1000).unwrap_or(i64::MAX),
        }
    }

    /// The policy for one test.
    fn policy(&self) -> Policy {
        Policy {
            max_duration: self.spec.max_duration,
            bitrate_limit: self.spec.bitrate_limit,
            login_required: self.spec.auth.is_some(),
            udp_refused: self.spec.local.file.is_some(),
            handshake_timeout: HEADER_TIMEOUT,
            results_timeout: self
                .spec
                .policy
                .liveness
                .otherwise
                .clamp(HEADER_TIMEOUT, HANDSHAKE_TIMEOUT),
            overtime: self.spec.policy.liveness.otherwise.min(OVERTIME),
        }
    }
}
