//! The rounds of a run, from the connections to the report.

use std::collections::BTreeSet;
use std::time::Instant;

use super::history_record::{KeptRun, RunResult};
use super::rounds::Rounds;
use crate::conclude::{add_hosts, explore};
use crate::plan::{Links, PlannedRun};
use crate::report::{Announced, announcement};
use crate::run::connect::{Connected, connect};
use crate::run::members::forwarders;
use crate::spec::FleetHosts;
use linerate_document::progress::{Progress, style};
use linerate_model::fleet::{Cell, FleetMode, FleetReport, HostId, Task};
use linerate_model::numbers::bytes;
use linerate_model::outcome::Error;
use linerate_sys::signal::Signals;

/// Runs the tasks of a plan but the finished ones.
pub(super) fn execute(
    planned: PlannedRun,
    hosts: &FleetHosts,
    finished: Vec<Cell>,
    mut kept: KeptRun,
    signals: &Signals,
    progress: &mut Progress,
) -> Result<RunResult, Error> {
    match all_rounds(planned, hosts, finished, &mut kept, signals, progress) {
        Ok((report, unconfirmed)) => Ok(kept.finish(report, unconfirmed)),
        Err(error) => {
            kept.fail(&error);
            Err(error)
        }
    }
}

/// The report, and the hosts that did not confirm their end.
fn all_rounds(
    mut planned: PlannedRun,
    hosts: &FleetHosts,
    mut finished: Vec<Cell>,
    kept: &mut KeptRun,
    signals: &Signals,
    progress: &mut Progress,
) -> Result<(FleetReport, Vec<HostId>), Error> {
    let started = Instant::now();
    let run_id = kept.id();
    let run = (run_id, Some(planned.hash));
    let paths = &planned.plan.paths;
    let connected = connect(run, hosts, paths, signals, &mut |note| progress.line(note))?;

    let absent = connected.reasons();
    for note in absent.iter().chain(&connected.notes()) {
        progress.line(note);
    }
    kept.between(connected.host_parts(), &paths.join(","));

    let links_bps = connected.prepared.links_bps();
    planned.limit_uplinks(&hosts.inventory.racks, &links_bps);
    let known = finished.iter().map(|cell| cell.task.clone()).collect();
    let announced = connected
        .check_count()
        .and_then(|()| announced(&planned, &known, &connected.alive(), &links_bps));
    let (line, cells_planned) = match announced {
        Ok(announced) => announced,
        Err(error) => {
            connected.control.finish();
            return Err(error);
        }
    };
    progress.line(&line);

    let mut rounds = Rounds {
        connected,
        plan: planned.hash,
        test: planned.plan.test,
        progress,
        cells_planned,
        cells_done: BTreeSet::new(),
        number: 0,
        unconfirmed: Vec::new(),
        kept,
    };
    // Results of an earlier coordinator, which the broker kept, are not measured twice.
    finished.extend(rounds.take_over(&planned));
    let mut report = explore(&planned, finished, &mut rounds);
    let Connected {
        prepared, found, ..
    } = &rounds.connected;
    add_hosts(&mut report, found, &forwarders(prepared));
    report.header.run_id = Some(run_id.to_string());
    report.header.is_control_shared = hosts.inventory.is_control_shared();
    // 584 years of nanoseconds fit into 64 bits.
    report.header.elapsed_ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);

    Ok((report, end(rounds, &absent)))
}

/// Ends the run at the hosts, and prints which of them were lost and which did not confirm it: the
/// latter.
fn end(rounds: Rounds<'_>, absent: &BTreeSet<String>) -> Vec<HostId> {
    let Rounds {
        connected,
        progress,
        unconfirmed: mut places,
        ..
    } = rounds;
    // Reasons are read first: the end of the run consumes the control loop.
    let lost = connected.reasons();
    places.extend(connected.control.finish());
    progress.clear();
    for reason in lost.difference(absent) {
        progress.line(reason);
    }

    let mut unconfirmed = Vec::new();
    for (index, host, _) in connected.prepared.hosts() {
        if places.contains(&index) {
            progress.line(&format!("{}: did not confirm its end", host.id));
            unconfirmed.push(host.id.clone());
        }
    }

    unconfirmed
}

/// Time and data of the tasks that are not finished, as a line, and the number of their cells.
///
/// # Errors
/// It may move more data than is allowed.
pub(super) fn announced(
    run: &PlannedRun,
    finished: &BTreeSet<Task>,
    alive: &BTreeSet<HostId>,
    links_bps: &Links,
) -> Result<(String, usize), Error> {
    let plan = &run.plan;
    let estimate = run.estimate(finished, alive);
    let bytes_max = run.bytes_max(finished, alive, links_bps);
    if let Some(most) = bytes_max.filter(|most| *most > plan.bytes_max) {
        let most = bytes(most as f64);
        let allowed = bytes(plan.bytes_max as f64);
        return Err(Error::usage(format!(
            "the run may move {most}, at most {allowed} are allowed; see --max-bytes and --max-rate"
        )));
    }

    let mut host_bps_max = links_bps.values().copied().reduce(f64::max);
    // Where a host has one test at a time, the limit of a test is that of a host.
    if matches!(
        plan.mode,
        FleetMode::Isolated | FleetMode::Rounds | FleetMode::RackSafe
    ) {
        let rate = plan.test.rate_bps.map(|bps| bps as f64);
        host_bps_max = host_bps_max.into_iter().chain(rate).reduce(f64::min);
    }
    let announced = Announced {
        plan,
        estimate,
        test_time: plan.test.length(),
        bytes_max,
        host_bps_max,
    };
    Ok((announcement(&announced, style()), estimate.cells))
}
