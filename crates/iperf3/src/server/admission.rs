//! Whether a test is run at all: valid parameters, a known user, and nothing beyond the server's limits.

use std::time::Duration;

use linerate_model::Transport;

use super::{AcceptedTest, Policy};
use crate::auth::Refusal;
use crate::error_code::ErrorCode;
use crate::params::Params;

/// A test that is not run.
pub(super) struct Denied {
    /// What the client is told.
    pub(super) code: ErrorCode,
    /// What the operator is told, when credentials were the reason.
    pub(super) refusal: Option<Refusal>,
}

impl From<ErrorCode> for Denied {
    fn from(code: ErrorCode) -> Self {
        Self { code, refusal: None }
    }
}

/// Decides on the parameters a client sent. Who is unknown learns nothing of the limits.
pub(super) fn admit(policy: &Policy, text: &[u8], unix_s: i64, locked_out: bool) -> Result<AcceptedTest, Denied> {
    let params = Params::parse(text)?;
    let user = authenticate(policy, &params, unix_s, locked_out)?;
    check_limits(policy, &params)?;
    let spec = params.to_spec();
    Ok(AcceptedTest { params, spec, user })
}

fn authenticate(policy: &Policy, params: &Params, unix_s: i64, locked_out: bool) -> Result<Option<String>, Denied> {
    let Some(auth) = &policy.auth else {
        return Ok(None);
    };
    let token = params.auth_token.as_deref();
    let verdict = if locked_out {
        Err(Refusal::LockedOut)
    } else {
        auth.authenticator.check(token, &auth.users, unix_s)
    };
    match verdict {
        Ok(user) => Ok(Some(user)),
        Err(refusal) => Err(Denied {
            code: ErrorCode::AuthTest,
            refusal: Some(refusal),
        }),
    }
}

fn check_limits(policy: &Policy, params: &Params) -> Result<(), ErrorCode> {
    match params.transport {
        Transport::Udp if policy.udp_refused => return Err(ErrorCode::UdpFileTransfer),
        Transport::Sctp if !policy.sctp_available => return Err(ErrorCode::Unimp),
        _ => {}
    }
    if params.parallel > policy.max_streams {
        return Err(ErrorCode::NumStreams);
    }
    let planned = Duration::from_secs(u64::from(params.time_s) + u64::from(params.omit_s));
    if policy
        .max_duration
        .is_some_and(|max| params.time_s == 0 || planned > max)
    {
        return Err(ErrorCode::MaxServerTestDurationExceeded);
    }
    if policy
        .bitrate_limit
        .is_some_and(|limit| params.requested_rate_bps() > limit.rate_bps)
    {
        return Err(ErrorCode::TotalRate);
    }
    Ok(())
}
