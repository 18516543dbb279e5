//! Records of a watch: each run of this program writes into a file of its own, from which the
//! record of the slot goes to the history. So attempts that failed leave nothing there.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use jiff::Timestamp;
use linerate_model::record::{Body, RunId, RunKind, RunRecord, RunState};
use linerate_model::stats;
use linerate_store::{Filter, Place, Recorder, Store};
use linerate_sys::error::io_text;
use linerate_sys::random;

use crate::conclude::change_point::change_points;
use crate::run::record::{Labels, head, started_at, unix_ms};

/// Runs that decide over the state: detection of a change takes 25, and it lasts for as many.
const RUNS_KEPT: usize = 50;
/// Reason of a run that was not made because the one before was not over.
pub(super) const SKIPPED: &str = "skipped(overrun)";

pub(super) struct History {
    watch: String,
    recorder: Option<Recorder>,
    directory: PathBuf,
    runs: Vec<RunRecord>,
}

impl History {
    /// With the last runs of the watch.
    pub(super) fn open(watch: &str, store: Option<&str>) -> Result<Self, String> {
        let place = Place::find(store).map_err(|error| error.to_string())?;
        let directory = std::env::temp_dir().join(format!("linerate-watch-{}", std::process::id()));
        // Fails where the name exists, so that no directory of another user in /tmp is used.
        let created = DirBuilder::new().mode(0o700).create(&directory);
        created.map_err(|error| {
            format!("cannot create {}: {}", directory.display(), io_text(&error))
        })?;

        let runs = place.as_ref().map_or_else(Vec::new, |place| {
            last_runs(place, watch).unwrap_or_default()
        });
        let recorder = place.map(Recorder::new);
        Ok(Self {
            watch: watch.to_owned(),
            recorder,
            directory,
            runs,
        })
    }

    /// The last runs, earliest first, without their series.
    pub(super) fn runs(&self) -> &[RunRecord] {
        &self.runs
    }

    /// Where the next run is to write its record.
    pub(super) fn output(&self) -> PathBuf {
        let path = self.directory.join("run.db");
        // In WAL mode SQLite has two files beside the database.
        for suffix in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(self.directory.join(format!("run.db{suffix}")));
        }
        path
    }

    /// The record that the run wrote; one of a failed run, where it wrote none.
    pub(super) fn take(&self, started: Timestamp, reason: &str) -> RunRecord {
        let place = Place::file(self.directory.join("run.db"));
        let last = || {
            let store = Store::open_existing(&place).ok()?;
            store.load(*store.resolve("last").ok()?.first()?).ok()
        };
        let mut run = last().unwrap_or_else(|| self.failed(started, reason));
        run.links.watch = Some(self.watch.clone());

        if !has_result(&run) {
            // The run's own reason is closer to the cause than its exit status.
            run.reason.get_or_insert_with(|| reason.to_owned());
            // A later attempt may have a name to find: the path is that of the runs before.
            self.name_path(&mut run);
        }

        run
    }

    /// Adds a run to the history; the message where it is not stored.
    pub(super) fn keep(&mut self, mut run: RunRecord) -> Option<String> {
        let message = self.recorder.as_ref().and_then(|recorder| {
            recorder.finish(run.clone());
            recorder.recorded().message()
        });
        // Later runs are compared by measures alone, so the large parts need not stay in memory.
        run.trials.iter_mut().for_each(|trial| trial.series.clear());
        run.hosts.clear();
        self.runs.push(run);
        self.runs.drain(..self.runs.len().saturating_sub(RUNS_KEPT));

        message
    }

    /// Stores that the run of a slot was not made.
    pub(super) fn skip(&mut self, start: Timestamp) {
        let run = self.failed(start, SKIPPED);
        if let Some(recorder) = &self.recorder {
            recorder.finish(run);
        }
    }

    fn name_path(&self, run: &mut RunRecord) {
        if let Some(before) = self.runs.iter().rev().find(|run| has_result(run)) {
            run.path.clone_from(&before.path);
            run.kind = before.kind;
        }
    }

    /// The record of a run without a result.
    pub(super) fn failed(&self, started: Timestamp, reason: &str) -> RunRecord {
        let started_unix_ms = unix_ms(started);
        let elapsed = Timestamp::now().duration_since(started).unsigned_abs();
        let mut run = head(RunKind::Test, Body::Test, None, Labels::new());
        run.run_id = RunId::new(started_unix_ms, random::bytes());
        run.state = RunState::Failed;
        run.reason = Some(reason.to_owned());
        run.started_at = started_at(started_unix_ms);
        run.started_unix_ms = started_unix_ms;
        run.elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(0);
        run.links.watch = Some(self.watch.clone());
        self.name_path(&mut run);

        run
    }
}

impl Drop for History {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
        if let Some(recorder) = self.recorder.take() {
            let _ = recorder.close();
        }
    }
}

/// True if a run has values that can be compared.
pub(super) fn has_result(run: &RunRecord) -> bool {
    run.state == RunState::Complete
}

/// The change to the worse that the last run belongs to, in words.
pub(super) fn change(runs: &[RunRecord]) -> Option<String> {
    let (measure, _) = runs.last()?.primary()?;
    let of_measure = |run: &RunRecord| {
        run.primary()
            .filter(|(name, _)| has_result(run) && *name == measure)
    };
    let values: Vec<f64> = runs
        .iter()
        .filter_map(of_measure)
        .map(|(_, value)| value)
        .collect();

    let info = measure.info();
    let change = change_points(&info, &values)
        .pop()
        .filter(|change| change.is_worse)?;
    let unit = info.unit;
    let before = stats::median(values.get(change.at.saturating_sub(20)..change.at)?)?;
    let after = stats::median(values.get(change.at..)?)?;

    Some(format!(
        "{} changed from {} to {}",
        info.name,
        unit.text(before),
        unit.text(after)
    ))
}

fn last_runs(place: &Place, watch: &str) -> Option<Vec<RunRecord>> {
    let store = Store::open_existing(place).ok()?;
    let filter = Filter {
        watch: Some(watch.to_owned()),
        limit: Some(RUNS_KEPT as u32),
        ..Filter::default()
    };

    let rows = store.list(&filter).ok()?;
    let is_run = |row: &&linerate_store::RunRow| row.reason.as_deref() != Some(SKIPPED);
    rows.iter()
        // The list has the newest run first.
        .rev()
        .filter(is_run)
        .map(|row| store.load(row.run_id).ok())
        .collect()
}
