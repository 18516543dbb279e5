//! Settings all sessions of a server share.

use std::time::Duration;

use linerate_iperf3::auth::Authenticator;
use linerate_iperf3::server::{AcceptedTest, Policy, ServerSetup};
use linerate_iperf3::{Cookie, ErrorCode};
use linerate_model::Failure;
use linerate_model::policy::FactsAccess;
use linerate_model::sink::PeerRequests;
use linerate_model::spec::ServerSpec;
use linerate_sys::clock;

use super::blocking_pool::LoginChecker;
use crate::server::access::{AccessList, read_text};

/// Settings and lists.
pub(super) struct Context {
    pub(super) spec: ServerSpec,
    access: AccessList,
    peer_requests: PeerRequests,
}

/// Longest wait for a client in each step before and after the data.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

impl Context {
    pub(super) fn new(spec: ServerSpec, peer_requests: PeerRequests) -> Result<Self, Failure> {
        let access = AccessList::load(&spec.policy.access, read_text);
        let access = access.map_err(|text| Failure::error(ErrorCode::InitTest.number(), text))?;
        Ok(Self {
            spec,
            access,
            peer_requests,
        })
    }

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

    pub(super) fn access(&self) -> &AccessList {
        &self.access
    }

    /// Reads the lists of addresses again; what was in force stays if that fails.
    pub(super) fn reload(&mut self) -> Result<(), String> {
        self.access = AccessList::load(&self.spec.policy.access, read_text)?;
        Ok(())
    }

    pub(super) fn setup(&self, cookie: Cookie) -> ServerSetup {
        ServerSetup {
            cookie,
            policy: self.policy(),
            unix_s: i64::try_from(clock::unix_ms() / 1000).unwrap_or(i64::MAX),
        }
    }

    pub(super) fn peer_requests(&self) -> &PeerRequests {
        &self.peer_requests
    }

    /// Whether this client gets facts about the host.
    pub(super) fn gives_facts(&self, test: &AcceptedTest) -> bool {
        let policy = &self.spec.policy;
        match policy.facts {
            FactsAccess::All => true,
            FactsAccess::None => false,
            FactsAccess::Trusted => test.user.is_some() || !policy.access.allow.is_empty(),
        }
    }

    /// The policy for one test.
    fn policy(&self) -> Policy {
        Policy {
            max_duration: self.spec.max_duration,
            bitrate_limit: self.spec.bitrate_limit,
            login_required: self.spec.auth.is_some(),
            udp_refused: self.spec.local.file.is_some(),
            handshake_timeout: HANDSHAKE_TIMEOUT,
            overtime: self.spec.policy.liveness,
            ..Policy::default()
        }
    }
}
