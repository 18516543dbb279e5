//! Options of the control connections of a server.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use linerate_model::spec::ServerSpec;
use linerate_sys::sockopt;

use crate::dialect::iperf3::keepalive;
use crate::error::{EngineError, Operation};

/// Probes that may stay unanswered.
const PROBES: u32 = 3;
/// Longest idle time before a probe: what the shortest-lived address translators on the way remember.
const IDLE_MAX_S: u64 = 15;

/// Disables Nagle's algorithm and detects a client that vanished: by unacknowledged data,
/// and by keepalive probes on an idle connection. Explicit options must succeed; defaults are best effort.
pub(super) fn prepare(fd: BorrowedFd<'_>, spec: &ServerSpec) -> Result<(), EngineError> {
    sockopt::TCP_NODELAY.set(fd, true).map_err(Operation::NoDelay.failed())?;
    let liveness = spec.policy.liveness;
    match spec.local.snd_timeout {
        Some(timeout) => {
            let timeout_ms = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
            sockopt::TCP_USER_TIMEOUT.set(fd, timeout_ms).map_err(Operation::UserTimeout.failed())?;
        }
        None => limit_idle_time(fd, liveness),
    }
    match &spec.local.control_keepalive {
        Some(wanted) => keepalive::apply(fd, wanted),
        None => {
            // A kind of socket that cannot do it is watched by the liveness of its test alone.
            let _ = probe(fd, liveness);
            Ok(())
        }
    }
}

/// Breaks a connection whose peer acknowledges nothing for this long (`TCP_USER_TIMEOUT`, tcp(7)). Multipath TCP knows
/// no such limit.
pub(super) fn limit_idle_time(fd: BorrowedFd<'_>, timeout: Duration) {
    let timeout_ms = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
    let _ = sockopt::TCP_USER_TIMEOUT.set(fd, timeout_ms);
}

/// The first probe leaves after half of the timeout, so that the last one is unanswered when it ends.
fn probe(fd: BorrowedFd<'_>, liveness: Duration) -> linerate_sys::Result<()> {
    let seconds = |s: u64, max: u64| u32::try_from(s.clamp(1, max)).unwrap_or(1);
    sockopt::SO_KEEPALIVE.set(fd, true)?;
    sockopt::TCP_KEEPINTVL.set(fd, seconds(liveness.as_secs() / 8, 5))?;
    sockopt::TCP_KEEPCNT.set(fd, PROBES)?;
    sockopt::TCP_KEEPIDLE.set(fd, seconds(liveness.as_secs() / 2, IDLE_MAX_S))
}
