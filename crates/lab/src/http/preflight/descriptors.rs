//! Descriptors: one for each connection, on both ends.

use linerate_model::http::{CellKey, Check, CheckStatus, Environment, Side};

use super::{Preflight, not_passed, passed, unknown};
use crate::http::fixes;
use crate::http::units::grouped;

/// Listeners, files, the control channel.
const OTHERS: u64 = 64;
/// Readiness, timers and wake-ups of a thread.
const OF_THREAD: u64 = 8;
/// Descriptors per worker process: the ends of its pipes, and files of its resource usage.
const OF_WORKER: u64 = 8;
/// More worker processes are a mistake.
const WORKERS_MAX: u64 = 1024;

/// Worker processes for so many connections, where each process may have this number of descriptors: 1 for none beside
/// the generator itself, `None` where no number of them suffices.
#[must_use]
pub fn worker_processes(connections: u32, threads: u32, descriptors: u64) -> Option<u32> {
    let beside = OTHERS + OF_THREAD * u64::from(threads);
    let room = descriptors.checked_sub(beside).filter(|room| *room > 0)?;
    let needed = u64::from(connections).div_ceil(room).max(1);
    let is_enough = needed == 1 || needed <= (room / OF_WORKER).min(WORKERS_MAX);
    u32::try_from(needed).ok().filter(|_| is_enough)
}

/// Descriptors of a process with so many connections.
#[must_use]
pub fn descriptors_for(connections: u32, threads: u32) -> u64 {
    u64::from(connections) + OTHERS + OF_THREAD * u64::from(threads)
}

pub(super) fn checks(preflight: &Preflight<'_>, side: Side, host: &Environment) -> Vec<Check> {
    let threads = threads(preflight, side, host);
    let of_cell = |key: &CellKey| descriptors_for(key.connections, threads);
    let most = preflight.cells.iter().map(of_cell).max();
    let need = most.unwrap_or_else(|| descriptors_for(0, threads));
    let of_process = OfProcess {
        preflight,
        side,
        threads,
        need,
    };
    vec![
        soft(side, host, need),
        of_process.check(
            "nofile.hard",
            host.nofile_hard,
            host.can_raise_nofile,
            fixes::descriptors,
        ),
        of_process.check("fs.nr_open", host.nr_open, false, fixes::kernel_descriptors),
        all_processes(side, host.file_max, need.saturating_mul(2), |limit| {
            preflight.cells_where(|key| of_cell(key).saturating_mul(2) > limit)
        }),
    ]
}

fn threads(preflight: &Preflight<'_>, side: Side, host: &Environment) -> u32 {
    let planned = preflight.generator_threads.filter(|_| side == Side::Client);
    planned.or(host.cpus).unwrap_or(1)
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

/// A bound of one process, which the generator gets around by several.
struct OfProcess<'a> {
    preflight: &'a Preflight<'a>,
    side: Side,
    threads: u32,
    need: u64,
}

impl OfProcess<'_> {
    fn check(&self, id: &str, limit: Option<u64>, may_raise: bool, fixes: fn(u64) -> Vec<String>) -> Check {
        let need = at_least(self.need);
        let Some(limit) = limit else {
            return unknown(id, self.side, need);
        };
        let check = passed(id, self.side, grouped(limit), need);
        if limit >= self.need {
            return check;
        }
        if may_raise {
            let fix = "raised by linerate itself, which may do so";
            return not_passed(check, CheckStatus::Info, vec![fix.to_owned()]);
        }
        let beyond = |key: &CellKey| descriptors_for(key.connections, self.threads) > limit;
        if self.side == Side::Server {
            let cells = self.preflight.cells_where(beyond);
            return Check {
                cells,
                ..not_passed(check, CheckStatus::Fail, fixes(self.need))
            };
        }
        let workers = |key: &CellKey| worker_processes(key.connections, self.threads, limit);
        let hopeless = self.preflight.cells_where(|key| workers(key).is_none());
        if !hopeless.is_empty() {
            return Check {
                cells: hopeless,
                ..not_passed(check, CheckStatus::Fail, fixes(self.need))
            };
        }
        let most = self.preflight.cells.iter().filter_map(workers).max().unwrap_or(1);
        let fix = format!("{most} worker processes will be used, each with a limit of its own");
        Check {
            cells: self.preflight.cells_where(beyond),
            ..not_passed(check, CheckStatus::Info, vec![fix])
        }
    }
}

/// A bound of the kernel on all processes together.
fn all_processes(side: Side, limit: Option<u64>, need: u64, cells: impl Fn(u64) -> Vec<String>) -> Check {
    const ID: &str = "fs.file_max";
    let Some(limit) = limit else {
        return unknown(ID, side, at_least(need));
    };
    let check = passed(ID, side, grouped(limit), at_least(need));
    if limit >= need {
        return check;
    }
    Check {
        cells: cells(limit),
        ..not_passed(check, CheckStatus::Fail, fixes::kernel_descriptors(need))
    }
}
