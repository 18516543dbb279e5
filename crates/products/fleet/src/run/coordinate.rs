//! `linerate fleet run`: connects to the hosts, runs the rounds of a plan, and makes its report.

mod cell;
mod execute;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod history_record;
mod kept;
mod reports;
mod resume;
mod rounds;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::plan::{Links, PlannedRun};
use crate::spec::RunSpec;
use linerate_sys::signal::Signals;

use execute::{announced, execute};
use history_record::KeptRun;
pub use history_record::RunResult;
use linerate_document::progress::Progress;
use linerate_history::run::record::RecordOptions;
use linerate_model::outcome::Error;
pub use resume::resume;

/// Time and data of a run, in a line, before any connection.
///
/// # Errors
/// A path or a host is not known, or the run may move more data than is allowed.
pub fn dry_run(spec: &RunSpec) -> Result<String, Error> {
    let run = PlannedRun::of(spec)?;
    announced(&run, &BTreeSet::new(), &run.plan.ids(), &Links::new()).map(|(line, _)| line)
}

/// Expected time of a run.
///
/// # Errors
/// A path or a host is not known.
pub fn run_length(spec: &RunSpec) -> Result<Duration, Error> {
    let run = PlannedRun::of(spec)?;
    let time = run.estimate(&BTreeSet::new(), &run.plan.ids()).time;
    Ok(time.min(run.plan.budget))
}

/// Runs a plan. Signals cancel it.
///
/// # Errors
/// Fewer than two hosts can be tested, or this host lacks what the coordinator needs.
pub fn run(
    spec: &RunSpec,
    record: RecordOptions,
    signals: &Signals,
    progress: &mut Progress,
) -> Result<RunResult, Error> {
    let planned = PlannedRun::of(spec)?;
    let kept = KeptRun::begin(record, spec, planned.hash)?;
    execute(planned, &spec.hosts, Vec::new(), kept, signals, progress)
}
