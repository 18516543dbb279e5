//! The rounds of a run, from the connections to the report.

use std::collections::BTreeSet;
use std::time::Instant;

use crate::conclude::explore;
use crate::plan::PlannedRun;
use crate::report::{RunFacts, report};
use linerate_model::fleet::{Cell, FleetReport, HostId};
use linerate_sys::signal::Signals;

use super::announce::announced;
use super::history_record::KeptRun;
use super::history_record::RunResult;
use super::rounds::Rounds;
use crate::run::connect::{Connected, connect};
use crate::run::host_rules::forwarders;
use crate::spec::FleetHosts;
use linerate_document::progress::Progress;
use linerate_model::outcome::Error;

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
    let mut outcome = explore(&planned, finished, &mut rounds);
    let Connected {
        prepared, found, ..
    } = &rounds.connected;
    outcome.add_hosts(found, &forwarders(prepared));
    let facts = RunFacts {
        run_id: Some(run_id.to_string()),
        elapsed: started.elapsed(),
        is_control_shared: hosts.inventory.is_control_shared(),
        links_bps,
    };

    let unconfirmed = end(rounds, &absent);
    Ok((report(&planned, outcome, facts), unconfirmed))
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
