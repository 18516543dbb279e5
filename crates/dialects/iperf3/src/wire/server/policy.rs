//! Limits of a server for its clients.

use std::time::Duration;

use linerate_model::Transport;
use linerate_model::spec::BitrateLimit;

use crate::wire::error_code::ErrorCode;
use crate::wire::params::{MAX_STREAMS_EXTENDED, Params};

/// Longest wait for the client in each step of the exchange, unless the policy sets another.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Allowed excess over the requested duration of a test with a time limit, unless the policy sets
/// another.
pub const OVERTIME: Duration = Duration::from_secs(40);

/// Limits for clients.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Longest test including its warm-up; tests without a time limit are refused then.
    pub max_duration: Option<Duration>,
    /// Highest rate; tests that ask for more are refused at once.
    pub bitrate_limit: Option<BitrateLimit>,
    /// Clients must prove who they are.
    pub login_required: bool,
    /// UDP tests are refused because this server stores what it receives in a file.
    pub udp_refused: bool,
    /// Longest wait for the parameters and for each data stream.
    pub handshake_timeout: Duration,
    /// Longest wait for the results and for the end of the dialogue.
    pub results_timeout: Duration,
    /// Allowed excess over the requested duration of a test with a time limit.
    pub overtime: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            max_duration: None,
            bitrate_limit: None,
            login_required: false,
            udp_refused: false,
            handshake_timeout: HANDSHAKE_TIMEOUT,
            results_timeout: HANDSHAKE_TIMEOUT,
            overtime: OVERTIME,
        }
    }
}

impl Policy {
    /// Decides on valid parameters of a client that may test.
    ///
    /// # Errors
    /// Error for the client.
    pub(super) fn check(&self, params: &Params) -> Result<(), ErrorCode> {
        if params.transport == Transport::Udp && self.udp_refused {
            return Err(ErrorCode::UdpFileTransfer);
        }
        if params.parallel > MAX_STREAMS_EXTENDED {
            return Err(ErrorCode::NumStreams);
        }

        let planned = Duration::from_secs(u64::from(params.time_s) + u64::from(params.omit_s));
        if self
            .max_duration
            .is_some_and(|max| params.time_s == 0 || planned > max)
        {
            return Err(ErrorCode::MaxServerTestDurationExceeded);
        }
        if self
            .bitrate_limit
            .is_some_and(|limit| params.requested_rate_bps() > limit.rate_bps)
        {
            return Err(ErrorCode::TotalRate);
        }

        Ok(())
    }
}
