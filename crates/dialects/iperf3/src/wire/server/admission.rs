//! Checks a test against the limits of a server.

use std::time::Duration;

use linerate_model::Transport;

use super::Policy;
use crate::wire::error_code::ErrorCode;
use crate::wire::params::Params;

/// Decides on valid parameters of a client that may test.
///
/// # Errors
/// Error for the client.
pub(super) fn check_limits(policy: &Policy, params: &Params) -> Result<(), ErrorCode> {
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
