//! One measure over the runs of a path, with its changes.

use linerate_model::measure::{Comparison, MeasureName};
use linerate_model::record::{RunId, RunRecord, Way};
use linerate_model::stats::median;
use serde::Serialize;

use super::change_point::{BEFORE, ChangePoint, RUNS_MIN, change_points};
use super::compare::{Change, configuration};

/// Schema name of a [`Trend`].
pub const TREND_SCHEMA: &str = "linerate.trend/1";

/// A run and its value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendRun {
    /// The run.
    pub run: RunId,
    /// Its start in ms since 1970.
    pub started_unix_ms: u64,
    /// Median of its complete trials; absent where it has none.
    pub value: Option<f64>,
}

/// A change that lasted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendChange {
    /// Position of the first run after it in the trend.
    pub at: usize,
    /// Median of the runs before it: twenty, or those since the change before.
    pub before: f64,
    /// Median of the runs from it to the next change.
    pub after: f64,
    /// The ratio of the median after to that before, or their difference.
    pub effect: f64,
    /// True if the effect is a ratio.
    pub is_ratio: bool,
    /// True if the measure became worse.
    pub is_worse: bool,
    /// Differences in the configuration of the runs on both sides of it, strongest effect first.
    pub configuration: Vec<Change>,
}

/// One measure over the runs of a path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trend {
    /// Always [`TREND_SCHEMA`].
    pub schema: &'static str,
    /// The measure.
    pub measure: MeasureName,
    /// The client's host.
    pub client: Option<String>,
    /// The server.
    pub server: Option<String>,
    /// Earliest first.
    pub runs: Vec<TrendRun>,
    /// Earliest first.
    pub changes: Vec<TrendChange>,
    /// Direction of the values, of tests that measured both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way: Option<Way>,
    /// This measure in the other direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_way: Option<Box<Self>>,
}

/// State of a trend at its last run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrendState {
    /// Fewer values than a change needs.
    TooFew,
    /// The last change was not for the worse, or there was none.
    Steady,
    /// The last change was for the worse.
    Worse,
}

impl Trend {
    /// The trend of `measure` over `runs` of the path of `last`. `load` reads a run; one that
    /// cannot be read has no configuration.
    pub fn new(
        measure: MeasureName,
        last: &RunRecord,
        runs: Vec<TrendRun>,
        load: impl Fn(RunId) -> Option<RunRecord>,
    ) -> Self {
        let known: Vec<(usize, f64)> = runs
            .iter()
            .enumerate()
            .filter_map(|(at, run)| Some((at, run.value?)))
            .collect();
        let values: Vec<f64> = known.iter().map(|(_, value)| *value).collect();
        let found = change_points(&measure.info(), &values);
        let ends = found
            .iter()
            .skip(1)
            .map(|next| next.at)
            .chain([values.len()]);

        let starts = [0].into_iter().chain(found.iter().map(|point| point.at));
        let change = |((point, end), start): ((&ChangePoint, usize), usize)| {
            let run_of = |position: usize| Some(runs.get(known.get(position)?.0)?.run);
            let [a, b] =
                [point.at.checked_sub(1)?, point.at].map(|position| load(run_of(position)?));

            // The level before a change is that since the one before it.
            let before = median(values.get(point.at.saturating_sub(BEFORE).max(start)..point.at)?)?;
            // The values that showed a change are its level, even where the next one begins among
            // them.
            let after = median(values.get(point.at..end.max(point.found_at + 1))?)?;
            let is_ratio =
                matches!(measure.info().comparison, Comparison::Ratio { .. }) && before != 0.0;
            Some(TrendChange {
                at: known.get(point.at)?.0,
                before,
                after,
                // Of the two medians that are printed: the median of all pairs gave -39.2 % beside
                // 94.7 and 70.1.
                effect: if is_ratio {
                    after / before
                } else {
                    after - before
                },
                is_ratio,
                is_worse: point.is_worse,
                configuration: a
                    .zip(b)
                    .map_or_else(Vec::new, |(a, b)| configuration(&a, &b)),
            })
        };

        let changes = found
            .iter()
            .zip(ends)
            .zip(starts)
            .filter_map(change)
            .collect();
        let client = last.path.client.clone();
        let server = last.path.server.clone();
        Self {
            schema: TREND_SCHEMA,
            measure,
            client,
            server,
            runs,
            changes,
            way: None,
            other_way: None,
        }
    }

    /// The state after the last run; of two directions the worse one.
    pub fn state(&self) -> TrendState {
        let is_other_worse = self
            .other_way
            .as_ref()
            .is_some_and(|other| other.state() == TrendState::Worse);
        if is_other_worse {
            TrendState::Worse
        } else {
            self.own_state()
        }
    }

    /// The state without the other direction.
    pub fn own_state(&self) -> TrendState {
        match self.changes.last() {
            Some(change) if change.is_worse => TrendState::Worse,
            _ if self.values() < RUNS_MIN => TrendState::TooFew,
            _ => TrendState::Steady,
        }
    }

    /// Number of runs with a value.
    pub fn values(&self) -> usize {
        self.runs.iter().filter(|run| run.value.is_some()).count()
    }
}
