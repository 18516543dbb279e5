//! Queues of the server: connections that wait to be accepted, and those that are being opened.
//!
//! They warn and do not fail: a queue that overflows is something an experiment may want to see.

use linerate_model::http::{Check, CheckStatus, Environment, Side};

use super::{Preflight, not_passed, passed, unknown};
use crate::http::fixes;
use crate::http::plan::Ramp;
use crate::http::units::grouped;

/// A server may be busy with other things for this long while connections arrive.
const BUSY_S: f64 = 0.5;
/// From this ramp on the queue of half-open connections matters.
const FAST_RAMP_PER_S: u32 = 2000;
const SYN_BACKLOG_MIN: u64 = 4096;

pub(super) fn checks(preflight: &Preflight<'_>, server: &Environment) -> Vec<Check> {
    let mut checks = vec![backlog(preflight, server), syn_backlog(preflight, server)];
    checks.extend(preflight.path.ramp_overflows.map(overflows));
    checks
}

fn queued(ramp: Ramp, connections: u64) -> u64 {
    match ramp {
        Ramp::PerSecond(rate) => connections.min((f64::from(rate) * BUSY_S) as u64),
        Ramp::Max => connections,
    }
}

fn backlog(preflight: &Preflight<'_>, server: &Environment) -> Check {
    let ramp = preflight.plan.defaults.ramp;
    let need = queued(ramp, preflight.connections());
    let need_text = format!("at least {}", grouped(need));
    // The kernel takes the lesser of the program's backlog and `somaxconn`.
    let Some(backlog) = server.backlog.into_iter().chain(server.somaxconn).min() else {
        return unknown("backlog", Side::Server, need_text);
    };
    let check = passed("backlog", Side::Server, grouped(backlog), need_text);
    if backlog >= need {
        return check;
    }
    Check {
        cells: preflight.cells_where(|key| queued(ramp, u64::from(key.connections)) > backlog),
        ..not_passed(check, CheckStatus::Warn, fixes::accept_queue())
    }
}

fn syn_backlog(preflight: &Preflight<'_>, server: &Environment) -> Check {
    const ID: &str = "tcp_max_syn_backlog";
    let need = format!(
        "at least {} above {FAST_RAMP_PER_S} connections per second",
        grouped(SYN_BACKLOG_MIN)
    );
    let Some(backlog) = server.max_syn_backlog else {
        return unknown(ID, Side::Server, need);
    };
    let check = passed(ID, Side::Server, grouped(backlog), need);
    let is_fast = match preflight.plan.defaults.ramp {
        Ramp::PerSecond(rate) => rate > FAST_RAMP_PER_S,
        Ramp::Max => true,
    };
    if backlog >= SYN_BACKLOG_MIN || !is_fast {
        return check;
    }
    not_passed(check, CheckStatus::Warn, fixes::syn_queue())
}

fn overflows(count: u64) -> Check {
    let check = passed(
        "listen_overflows",
        Side::Server,
        grouped(count),
        "0 while connections are opened",
    );
    if count == 0 {
        return check;
    }
    let mut fix = vec!["a slower --ramp".to_owned()];
    fix.extend(fixes::accept_queue());
    not_passed(check, CheckStatus::Warn, fix)
}
