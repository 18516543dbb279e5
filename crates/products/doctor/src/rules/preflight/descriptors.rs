//! Descriptors: one for each connection, on both ends.

use linerate_model::http::units::grouped;
use linerate_model::http::{CellKey, Check, Environment, Side};

use super::plan::Preflight;
use super::requirement::{Requirement, at_least};
use crate::rules::prelude::*;
use crate::rules::remedies::{self, advise};

/// Listeners, files, the control channel.
const OTHERS: u64 = 64;
/// Readiness, timers and wake-ups of a thread.
const OF_THREAD: u64 = 8;
/// Descriptors per worker process: the ends of its pipes, and files of its resource usage.
const OF_WORKER: u64 = 8;
/// The kernel's own `fs.nr_open`; half of what all processes together get.
const NR_OPEN_USUAL: u64 = 1_048_576;
/// More worker processes are a mistake.
const WORKERS_MAX: u64 = 1024;

/// Worker processes for a number of connections, where each process may have this number of
/// descriptors: 1 for none beside the generator itself, `None` where no number of them suffices.
pub fn worker_processes(connections: u32, threads: u32, descriptors: u64) -> Option<u32> {
    let beside = OTHERS + OF_THREAD * u64::from(threads);
    let room = descriptors.checked_sub(beside).filter(|room| *room > 0)?;
    let needed = u64::from(connections).div_ceil(room).max(1);
    // The generator itself holds the pipes of its workers.
    let is_enough = needed == 1 || needed <= (room / OF_WORKER).min(WORKERS_MAX);
    u32::try_from(needed).ok().filter(|_| is_enough)
}

/// Descriptors of a process with this number of connections.
pub fn descriptors_for(connections: u32, threads: u32) -> u64 {
    u64::from(connections) + OTHERS + OF_THREAD * u64::from(threads)
}

pub(super) fn checks(preflight: &Preflight, side: Side, host: &Environment) -> Vec<Check> {
    let planned = preflight.generator_threads.filter(|_| side == Side::Client);
    // Without a number in the plan each CPU has a thread.
    let threads = planned.or(host.cpus).unwrap_or(1);
    let process = Process {
        preflight,
        side,
        threads,
        // A plan without cells still has the threads.
        need: preflight
            .largest(|key| descriptors_for(key.connections, threads))
            .max(descriptors_for(0, threads)),
    };

    let at_least = |id, need| at_least(id, side, need);
    let all = process.need.saturating_mul(2);
    vec![
        at_least("nofile.soft", process.need).check(|soft| {
            let limit = soft.read(host.nofile_soft)?;
            let remedy = advise("raised by linerate itself as far as the hard limit allows");
            soft.ruling(
                limit >= process.need,
                Severity::Info,
                grouped(limit),
                remedy,
            )
        }),
        at_least("nofile.hard", process.need).check(|hard| {
            process.hard(
                hard,
                host.nofile_hard,
                host.can_raise_nofile,
                advise(remedies::descriptors(process.need)),
            )
        }),
        at_least("fs.nr_open", process.need).check(|kernel| {
            let least = process.need.max(NR_OPEN_USUAL);
            process.hard(kernel, host.nr_open, false, |found| {
                found.raise_variable("fs.nr_open", host.nr_open, least)
            })
        }),
        // A limit of the kernel on all processes together.
        at_least("fs.file_max", all).check(|kernel| {
            let limit = kernel.read(host.file_max)?;
            let cells = preflight.cells_where(|key| process.of_cell(key).saturating_mul(2) > limit);
            let remedy = |found: Match| {
                found.raise_variable("fs.file-max", host.file_max, all.max(2 * NR_OPEN_USUAL))
            };
            Ok(kernel
                .ruling(limit >= all, Severity::Blocker, grouped(limit), remedy)?
                .subjects(cells))
        }),
    ]
}

/// A process of the test and the descriptors it needs.
struct Process<'a> {
    preflight: &'a Preflight,
    side: Side,
    threads: u32,
    need: u64,
}

impl Process<'_> {
    fn of_cell(&self, key: &CellKey) -> u64 {
        descriptors_for(key.connections, self.threads)
    }

    /// A limit of one process; the generator starts several where that suffices.
    fn hard(
        &self,
        requirement: &Requirement<'_>,
        limit: Option<u64>,
        may_raise: bool,
        help: impl FnOnce(Match) -> Match,
    ) -> Ruling {
        let limit = requirement.read(limit)?;
        let is_met = limit >= self.need;
        let info =
            |text: &str| requirement.ruling(is_met, Severity::Info, grouped(limit), advise(text));
        if may_raise {
            return info("raised by linerate itself, which may do so");
        }

        let workers = |key: &CellKey| worker_processes(key.connections, self.threads, limit);
        let beyond = self.preflight.cells_where(|key| self.of_cell(key) > limit);
        let impossible = match self.side {
            Side::Server => beyond.clone(),
            Side::Client => self.preflight.cells_where(|key| workers(key).is_none()),
        };
        if self.side == Side::Server || !impossible.is_empty() {
            return Ok(requirement
                .ruling(is_met, Severity::Blocker, grouped(limit), help)?
                .subjects(impossible));
        }

        let most = self
            .preflight
            .cells
            .iter()
            .filter_map(workers)
            .max()
            .unwrap_or(1);
        Ok(info(&format!(
            "{most} worker processes will be used, each with a limit of its own"
        ))?
        .subjects(beyond))
    }
}
