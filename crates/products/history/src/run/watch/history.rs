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

/// Most runs that decide over the state: with 50 a path that stays slow was reported as recovered
/// after 25 runs, because no run of before was left.
const RUNS_KEPT: usize = 500;
/// Runs that are kept however many trials they have: detection of a change takes 25.
const RUNS_KEPT_MIN: usize = 50;
/// Trials of more runs than these. A fleet has one for each cell.
const TRIALS_KEPT: usize = 50_000;
/// Reason of a run that was not made because the one before was not over.
pub(in crate::run) const SKIPPED: &str = "skipped(overrun)";

pub(super) struct History {
    watch: String,
    recorder: Option<Recorder>,
    directory: PathBuf,
    runs: Vec<RunRecord>,
    /// Runs before those.
    dropped: usize,
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

        let earlier = place.as_ref().and_then(|place| last_runs(place, watch));
        let (runs, dropped) = earlier.unwrap_or_default();
        let recorder = place.map(Recorder::new);
        Ok(Self {
            watch: watch.to_owned(),
            recorder,
            directory,
            runs,
            dropped,
        })
    }

    /// The last runs, earliest first, without their series.
    pub(super) fn runs(&self) -> &[RunRecord] {
        &self.runs
    }

    /// Number of the first of them since the watch began, from 1.
    pub(super) fn first_round(&self) -> usize {
        self.dropped + 1
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
        make_small(&mut run);
        self.runs.push(run);
        let trials = self.runs.iter().rev().map(|run| run.trials.len());
        let dropped = self.runs.len() - kept(trials);
        self.runs.drain(..dropped);
        self.dropped += dropped;

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

/// Later runs are compared by measures alone, so the large parts need not stay in memory.
fn make_small(run: &mut RunRecord) {
    let is_fleet = run.kind == RunKind::Fleet;
    for trial in &mut run.trials {
        trial.series.clear();
        trial.detail.take_if(|_| is_fleet);
    }
    run.hosts.clear();
}

/// Number of the newest runs that are kept, by their numbers of trials, newest first.
fn kept(trials: impl Iterator<Item = usize>) -> usize {
    let mut sum = 0;
    let is_kept = |(at, trials): &(usize, usize)| {
        sum += trials;
        *at < RUNS_KEPT_MIN || sum <= TRIALS_KEPT
    };
    trials
        .take(RUNS_KEPT)
        .enumerate()
        .take_while(is_kept)
        .count()
}

/// True if a run has values that can be compared. A fleet has them where some of its cells have.
pub(super) fn has_result(run: &RunRecord) -> bool {
    let has_cells = || {
        run.trials
            .iter()
            .any(|trial| trial.state == RunState::Complete)
    };
    match (run.kind, run.state) {
        (RunKind::Fleet, RunState::Partial) => has_cells(),
        (_, state) => state == RunState::Complete,
    }
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

/// The last runs, earliest first, and the number of those before them.
fn last_runs(place: &Place, watch: &str) -> Option<(Vec<RunRecord>, usize)> {
    let store = Store::open_existing(place).ok()?;
    let filter = Filter {
        watch: Some(watch.to_owned()),
        ..Filter::default()
    };

    // The list has the newest run first.
    let mut rows = store.list(&filter).ok()?;
    rows.retain(|row| row.reason.as_deref() != Some(SKIPPED));
    let kept = kept(rows.iter().map(|row| row.trials as usize));
    let load = |row: &linerate_store::RunRow| {
        let mut run = store.load(row.run_id).ok()?;
        make_small(&mut run);
        Some(run)
    };
    let runs: Option<Vec<RunRecord>> = rows[..kept].iter().rev().map(load).collect();
    Some((runs?, rows.len() - kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_may_last_for_hundreds_of_runs_and_large_runs_are_fewer() {
        let of = |runs, trials| kept(std::iter::repeat_n(trials, runs));
        assert_eq!([of(30, 1), of(600, 1), of(600, 90)], [30, 500, 500]);
        assert_eq!([of(600, 500), of(600, 9000)], [100, 50]);
    }
}
