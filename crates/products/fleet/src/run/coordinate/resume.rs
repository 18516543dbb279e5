//! `linerate fleet resume`: the tasks of an earlier run that have no result.

use std::path::PathBuf;

use crate::conclude::trials;
use crate::plan::PlannedRun;
use crate::spec::inventory::checked;
use linerate_history::run::named::load_named;
use linerate_model::fleet::FleetRun;
use linerate_model::record::{Body, RunRecord, RunState};
use linerate_sys::signal::Signals;

use super::execute::execute;
use super::history_record::{KeptRun, RunResult};
use crate::spec::{BusOptions, RunSpec};
use linerate_document::progress::Progress;
use linerate_history::run::record::RecordOptions;
use linerate_model::outcome::Error;

/// Recomputes the plan of a run of the history, runs the tasks that have no result with the hosts
/// that answer, and makes the report of all tasks. Signals cancel it. The way to the hosts is that
/// of this call: no record determines it. The record is a new one, which has the cells of the
/// earlier run as well.
///
/// # Errors
/// No run of this name whose plan can be recomputed and that has ended before its last task, or as
/// [`super::run()`].
pub fn resume(
    name: &str,
    ssh_config: Option<PathBuf>,
    bus: Option<BusOptions>,
    record: RecordOptions,
    signals: &Signals,
    progress: &mut Progress,
) -> Result<RunResult, Error> {
    let runs = load_named(record.place.as_ref(), name)?;
    let Ok([earlier]) = <[RunRecord; 1]>::try_from(runs) else {
        return Err(Error::usage(format!(
            "{name:?} names several runs, and one is needed"
        )));
    };
    let mut spec = open_spec(&earlier)?;
    spec.hosts.ssh_config = ssh_config;
    spec.hosts.bus = bus;

    let planned = PlannedRun::of(&spec)?;
    // Results belong to the tasks of their plan; those of another one would not fit.
    if open_run(&earlier)?.plan != planned.hash {
        let version = earlier
            .origin
            .version
            .as_deref()
            .unwrap_or("of another version");
        let text = format!(
            "the plan of run {} is another one by now; it is of linerate {version}",
            earlier.run_id.short()
        );
        return Err(Error::failed(text));
    }

    let mut options = record;
    options.title = options.title.or_else(|| earlier.title.clone());

    let mut kept = KeptRun::begin(options, &spec, planned.hash)?;
    let finished = trials::cells(&earlier.trials);
    kept.resume(earlier.run_id, &finished);

    execute(planned, &spec.hosts, finished, kept, signals, progress)
}

/// The part of the record that only a fleet run has.
fn open_run(record: &RunRecord) -> Result<&FleetRun, Error> {
    match &record.body {
        Body::Fleet(run) => Ok(run),
        _ => Err(Error::usage(format!(
            "run {} is none of a fleet",
            record.run_id.short()
        ))),
    }
}

/// Specification of a run that did not reach its end.
fn open_spec(record: &RunRecord) -> Result<RunSpec, Error> {
    let run = open_run(record)?;
    let id = record.run_id.short();
    if record.state == RunState::Running {
        return Err(Error::usage(format!(
            "run {id} is still running; stop it with `linerate fleet cancel {id}`"
        )));
    }
    let report = run.report.as_ref();
    if report.is_some_and(|report| report.cells.is_empty()) {
        return Err(Error::usage(format!(
            "every task of run {id} has a result; `linerate report {id}` shows them"
        )));
    }

    let wrong = |error: &dyn std::fmt::Display| {
        Error::failed(format!("the inputs of run {id} are damaged: {error}"))
    };
    let inputs = run.inputs.clone();
    let mut spec: RunSpec = serde_json::from_value(inputs).map_err(|error| wrong(&error))?;
    spec.hosts.inventory = checked(spec.hosts.inventory).map_err(|error| wrong(&error))?;
    Ok(spec)
}
