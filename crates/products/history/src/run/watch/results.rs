//! Results of a watch: a line for each run, and the outlets that take them.

use std::fs;
use std::path::PathBuf;

use linerate_model::record::RunRecord;
use linerate_sys::error::io_text;

use super::history::has_result;
use crate::report::export::prometheus;

/// Where the results of a watch go after each run, besides the history.
pub trait Outlet {
    /// Replaces or adds results; `runs` are the last ones of the watch, earliest first.
    ///
    /// # Errors
    /// Why they are not written, as a line for the user.
    fn write(&self, runs: &[RunRecord]) -> Result<(), String>;
}

/// A file for the collector of text files of Prometheus.
#[derive(Debug)]
pub struct MetricsFile(pub PathBuf);

impl Outlet for MetricsFile {
    /// The file is replaced as a whole, so that a reader never finds a part of it.
    fn write(&self, runs: &[RunRecord]) -> Result<(), String> {
        let path = &self.0;
        let mut part = path.clone().into_os_string();
        part.push(".part");
        // A collector reads the file at any time; rename(2) replaces it at once.
        let written =
            fs::write(&part, prometheus::exposition(runs)).and_then(|()| fs::rename(&part, path));

        written.map_err(|error| format!("cannot write {}: {}", path.display(), io_text(&error)))
    }
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
