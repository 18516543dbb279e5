//! Options of the control connections of a server.

use std::os::fd::AsFd;
use std::time::Duration;

use linerate_model::spec::ServerSpec;
use linerate_sys::sockopt;

use crate::data::socket::limit_idle_time;
use crate::dialect::iperf3::control_connection;
use crate::error::EngineError;

/// Probes that may stay unanswered.
const PROBES: u32 = 3;
/// Longest idle time before a probe: what the shortest-lived address translators on the way
/// remember.
const IDLE_MAX_S: u64 = 15;

/// Disables Nagle's algorithm and detects a client that vanished: by unacknowledged data, and by
/// keepalive probes on an idle connection. Explicit options must succeed; defaults are best effort.
pub(super) fn prepare(fd: impl AsFd, spec: &ServerSpec) -> Result<(), EngineError> {
    control_connection::prepare(&fd, &spec.local)?;
    let liveness = spec.policy.liveness.otherwise;

    // Multipath TCP knows no such limit.
    if spec.local.snd_timeout.is_none() {
        let _ = limit_idle_time(&fd, liveness);
    }

    // A kind of socket that cannot do it is watched by the liveness of its test alone.
    if spec.local.control_keepalive.is_none() {
        let _ = probe(&fd, liveness);
    }

    Ok(())
}

/// The first probe leaves after half of the timeout, so that the last one is unanswered when it
/// ends.
fn probe(fd: impl AsFd, liveness: Duration) -> linerate_sys::Result<()> {
    let seconds = |s: u64, max: u64| u32::try_from(s.clamp(1, max)).unwrap_or(1);
    sockopt::SO_KEEPALIVE.set(&fd, true)?;
    sockopt::TCP_KEEPINTVL.set(&fd, seconds(liveness.as_secs() / 8, 5))?;
    sockopt::TCP_KEEPCNT.set(&fd, PROBES)?;
    sockopt::TCP_KEEPIDLE.set(&fd, seconds(liveness.as_secs() / 2, IDLE_MAX_S))
}
