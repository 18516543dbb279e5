//! Keepalive of control connections.

use std::os::fd::AsFd;

use linerate_model::Event;
use linerate_model::spec::Keepalive;
use linerate_sys::sockopt;

use crate::error::{EngineError, Operation};
use crate::reporter::Reporter;

/// Switches keepalive on. The whole retry period has to fit into the idle time, also when the
/// kernel's defaults fill in for what the user left open.
pub(crate) fn apply(fd: impl AsFd, wanted: &Keepalive) -> Result<(), EngineError> {
    sockopt::SO_KEEPALIVE
        .set(&fd, true)
        .map_err(Operation::Keepalive.failed())?;
    if wanted.interval_s > 0 {
        sockopt::TCP_KEEPINTVL
            .set(&fd, wanted.interval_s)
            .map_err(Operation::KeepaliveInterval.failed())?;
    }

    if wanted.count > 0 {
        sockopt::TCP_KEEPCNT
            .set(&fd, wanted.count)
            .map_err(Operation::KeepaliveCount.failed())?;
    }

    if wanted.idle_s > 0 {
        let interval_s = sockopt::TCP_KEEPINTVL
            .get(&fd)
            .map_err(Operation::KeepaliveInterval.failed())?;
        let count = sockopt::TCP_KEEPCNT
            .get(&fd)
            .map_err(Operation::KeepaliveCount.failed())?;
        if u64::from(wanted.idle_s) <= u64::from(interval_s) * u64::from(count) {
            return Err(EngineError::KeepalivePeriod);
        }

        sockopt::TCP_KEEPIDLE
            .set(&fd, wanted.idle_s)
            .map_err(Operation::KeepaliveIdle.failed())?;
    }

    Ok(())
}

/// Reports the values in force to verbose reports, the kernel's defaults included; unknown values
/// are omitted.
pub(crate) fn report(fd: impl AsFd, reporter: &mut Reporter<'_>) {
    let idle = sockopt::TCP_KEEPIDLE.get(&fd);
    let (Ok(idle_s), Ok(interval_s), Ok(count)) = (
        idle,
        sockopt::TCP_KEEPINTVL.get(&fd),
        sockopt::TCP_KEEPCNT.get(&fd),
    ) else {
        return;
    };
    reporter.emit(&Event::Detail(format!(
        "Control connection TCP Keepalive TCP_KEEPIDLE/TCP_KEEPINTVL/TCP_KEEPCNT are set to \
         {idle_s}/{interval_s}/{count}"
    )));
}
