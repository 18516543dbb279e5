//! Descriptors: one for each connection, on both ends.

use linerate_model::http::{Check, CheckStatus, Environment, Side};

use super::{Preflight, not_passed, passed, unknown};
use crate::http::fixes;
use crate::http::units::grouped;

/// Listeners, files, the control channel.
const OTHERS: u64 = 64;
/// Readiness, timers and wake-ups of a thread.
const OF_THREAD: u64 = 8;

pub(super) fn checks(preflight: &Preflight<'_>, side: Side, host: &Environment) -> Vec<Check> {
    let of_cell = |connections: u64| connections + OTHERS + OF_THREAD * threads(preflight, side, host);
    let need = of_cell(preflight.connections());
    let hard = hard(preflight, side, host, need, &of_cell);
    vec![
        soft(side, host, need),
        hard,
        kernel("fs.nr_open", side, host.nr_open, need, |limit| {
            preflight.cells_where(|key| of_cell(u64::from(key.connections)) > limit)
        }),
        kernel("fs.file_max", side, host.file_max, need.saturating_mul(2), |limit| {
            preflight.cells_where(|key| of_cell(u64::from(key.connections)).saturating_mul(2) > limit)
        }),
    ]
}

fn threads(preflight: &Preflight<'_>, side: Side, host: &Environment) -> u64 {
    let planned = preflight.plan.defaults.threads.filter(|_| side == Side::Client);
    u64::from(planned.or(host.cpus).unwrap_or(1))
}

fn at_least(need: u64) -> String {
    format!("at least {}", grouped(need))
}

fn soft(side: Side, host: &Environment, need: u64) -> Check {
    let Some(soft) = host.nofile_soft else {
        return unknown("nofile.soft", side, at_least(need));
    };
    let check = passed("nofile.soft", side, grouped(soft), at_least(need));
    if soft >= need {
        return check;
    }
    not_passed(
        check,
        CheckStatus::Info,
        vec!["raised by linerate itself as far as the hard limit allows".to_owned()],
    )
}

fn hard(preflight: &Preflight<'_>, side: Side, host: &Environment, need: u64, of_cell: &dyn Fn(u64) -> u64) -> Check {
    let Some(hard) = host.nofile_hard else {
        return unknown("nofile.hard", side, at_least(need));
    };
    let check = passed("nofile.hard", side, grouped(hard), at_least(need));
    if hard >= need {
        return check;
    }
    if host.can_raise_nofile {
        return not_passed(
            check,
            CheckStatus::Info,
            vec!["raised by linerate itself, which may do so".to_owned()],
        );
    }
    let mut fix = fixes::descriptors(need);
    if side == Side::Client {
        // The lab starts them by itself once it is told to go on; its cells would then not compare with the others.
        fix.push("--force, or --procs auto of http load  # several processes, each with a limit of its own".to_owned());
    }
    Check {
        cells: preflight.cells_where(|key| of_cell(u64::from(key.connections)) > hard),
        ..not_passed(check, CheckStatus::Fail, fix)
    }
}

/// A bound of the kernel, for one process or all of them.
fn kernel(id: &str, side: Side, limit: Option<u64>, need: u64, cells: impl Fn(u64) -> Vec<String>) -> Check {
    let Some(limit) = limit else {
        return unknown(id, side, at_least(need));
    };
    let check = passed(id, side, grouped(limit), at_least(need));
    if limit >= need {
        return check;
    }
    Check {
        cells: cells(limit),
        ..not_passed(check, CheckStatus::Fail, fixes::kernel_descriptors(need))
    }
}
