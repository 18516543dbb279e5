//! What all sessions of a server share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use linerate_iperf3::auth::Authenticator;
use linerate_iperf3::server::{AuthContext, Policy, ServerSetup};
use linerate_iperf3::{Cookie, ErrorCode};
use linerate_model::Failure;
use linerate_model::spec::ServerSpec;
use linerate_sys::clock;

use super::access::AccessList;

/// Settings, keys and lists.
pub(super) struct Context {
    pub(super) spec: ServerSpec,
    authenticator: Option<Arc<Authenticator>>,
    access: AccessList,
}

/// Longest wait for a client in each step before and after the data.
pub(super) const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(5);
/// Largest file of users or address ranges that is read.
const FILE_BYTES_MAX: u64 = 16 << 20;

impl Context {
    pub(super) fn new(spec: ServerSpec) -> Result<Self, Failure> {
        let make = |a: &linerate_model::spec::ServerAuth| {
            Authenticator::new(&a.private_key_pem, a.padding, a.max_skew).map(Arc::new)
        };
        let authenticator = spec.auth.as_ref().map(make).transpose();
        let authenticator = authenticator.map_err(|e| ErrorCode::SetServerAuth.failure(Some(&e.to_string())))?;
        let access = AccessList::load(&spec.sharing.access, read_text);
        let access = access.map_err(|text| Failure::error(ErrorCode::InitTest.number(), text))?;
        Ok(Self {
            spec,
            authenticator,
            access,
        })
    }

    pub(super) fn access(&self) -> &AccessList {
        &self.access
    }

    /// Reads the lists of addresses again; what was in force stays if that fails.
    pub(super) fn reload(&mut self) -> Result<(), String> {
        self.access = AccessList::load(&self.spec.sharing.access, read_text)?;
        Ok(())
    }

    pub(super) fn setup(&self, cookie: Cookie) -> ServerSetup {
        ServerSetup {
            cookie,
            policy: self.policy(),
            unix_s: i64::try_from(clock::unix_ms() / 1000).unwrap_or(i64::MAX),
        }
    }

    /// The rules for one test. The users' file is read afresh, so that a change needs no restart.
    fn policy(&self) -> Policy {
        let users_file = self.spec.auth.as_ref().map(|a| &a.users_file);
        let read = |path: &PathBuf| read_text(path).unwrap_or_default();
        let auth = self
            .authenticator
            .as_ref()
            .zip(users_file)
            .map(|(authenticator, path)| AuthContext {
                authenticator: Arc::clone(authenticator),
                users: read(path),
            });
        Policy {
            max_duration: self.spec.max_duration,
            bitrate_limit: self.spec.bitrate_limit,
            auth,
            udp_refused: self.spec.local.file.is_some(),
            handshake_timeout: HANDSHAKE_PATIENCE,
            overtime: self.spec.sharing.liveness,
            ..Policy::default()
        }
    }
}

pub(super) fn read_text(path: &Path) -> std::io::Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    std::fs::File::open(path)?
        .take(FILE_BYTES_MAX)
        .read_to_string(&mut text)?;
    Ok(text)
}
