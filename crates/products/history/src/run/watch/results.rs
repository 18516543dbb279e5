//! Results of a watch: a line for each run, and the outlets that take them.

use std::fs;
use std::path::Path;

use linerate_model::record::{RunRecord, RunState, Way};
use linerate_model::stats::median;
use linerate_sys::error::io_text;

use super::history::has_result;
use crate::report::export::prometheus;
use crate::report::list::both_ways;
use crate::run::history::local_time;

/// Takes the results of a watch after each run, besides the history: the last runs, earliest first.
/// Its error is a line for the user.
pub type Outlet = Box<dyn Fn(&[RunRecord]) -> Result<(), String>>;

/// Writes a file for the collector of text files of Prometheus. The file is replaced as a whole, so
/// that a reader never finds a part of it.
///
/// # Errors
/// Why it is not written, as a line for the user.
pub fn write_metrics(path: &Path, runs: &[RunRecord]) -> Result<(), String> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    // A collector reads the file at any time; rename(2) replaces it at once.
    let written =
        fs::write(&part, prometheus::exposition(runs)).and_then(|()| fs::rename(&part, path));

    written.map_err(|error| format!("cannot write {}: {}", path.display(), io_text(&error)))
}

/// `2026-05-28 20:26:40  1f2e3d4c  941 down, 38.2 up Mbit/s`, or why there is no result.
pub(super) fn line(run: &RunRecord, reason: Option<&str>) -> String {
    let mut text = format!(
        "{}  {}",
        local_time(run.started_unix_ms),
        run.run_id.short()
    );
    if let Some(result) = result(run).filter(|_| has_result(run)) {
        text += &format!("  {result}");
    }

    if let Some(reason) = reason {
        text += &format!("  {reason}");
    }

    text
}

/// Both directions of a test that has both.
fn result(run: &RunRecord) -> Option<String> {
    let (name, value) = run.primary()?;
    let of = |way: Way| {
        let trials = run.trials.iter();
        let counted = trials.filter(|trial| trial.state == RunState::Complete && !trial.is_warm_up);
        let measures = counted.flat_map(|trial| &trial.measures);
        let values = measures.filter(|measure| (measure.name, measure.way) == (name, way));
        median(&values.map(|measure| measure.value).collect::<Vec<_>>())
    };
    let text = |value| name.info().unit.text(value);

    Some(match (of(Way::Reverse), of(Way::Forward)) {
        (Some(down), Some(up)) => both_ways(&text(down), &text(up)),
        _ => text(value),
    })
}
