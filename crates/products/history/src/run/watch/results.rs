//! Results of a watch: a line for each run, and the outlets that take them.

use std::fs;
use std::path::Path;

use linerate_model::record::RunRecord;
use linerate_sys::error::io_text;

use super::history::has_result;
use crate::report::export::prometheus;

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

/// `2026-05-28T20:26:40.000Z  1f2e3d4c  941 Mbit/s`, or why there is no result.
pub(super) fn line(run: &RunRecord, reason: Option<&str>) -> String {
    let mut text = format!("{}  {}", run.started_at, run.run_id.short());
    if has_result(run)
        && let Some((name, value)) = run.primary()
    {
        text += &format!("  {}", name.info().unit.text(value));
    }

    if let Some(reason) = reason {
        text += &format!("  {reason}");
    }

    text
}
