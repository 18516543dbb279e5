//! Cells over time: the rates between the hosts of a fleet, or results by label, run after run.

use std::collections::BTreeMap;

use linerate_model::fleet::{FleetReport, HostId, Task};
use linerate_model::measure::{MeasureInfo, MeasureName};
use linerate_model::record::{Body, RunKind, RunRecord, RunState};
use linerate_model::stats::median;

use super::alarm::FAILURES_BEFORE_ALERT;
use super::change_point::{AFTER, BEFORE, change_points, onset};

/// The measure of a fleet's cells.
pub const CELL_MEASURE: MeasureName = MeasureName::ReceivedBps;

/// Results by row and run.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// The measure of the values.
    pub measure: MeasureName,
    /// Starts of the runs in ms since 1970, earliest first.
    pub starts_unix_ms: Vec<u64>,
    /// In the order of their keys.
    pub rows: Vec<GridRow>,
    /// Rack of each host whose rack is known.
    pub racks: BTreeMap<HostId, String>,
}

/// A cell of a fleet, or a label.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowKey {
    /// The host that sends, or the label.
    pub source: String,
    /// The host that receives; empty of a label.
    pub sink: String,
    /// Path and factor of the fleet; empty of a label.
    pub treatment: String,
}

/// The results of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct GridRow {
    /// Whose.
    pub key: RowKey,
    /// Median of each run; absent where it has none.
    pub values: Vec<Option<f64>>,
    /// Stretches of lasting bad results.
    pub degradations: Vec<Degradation>,
}

/// A stretch of runs whose results are worse than before, or absent. Places are those of runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Degradation {
    /// Its first run.
    pub began: usize,
    /// The run after which it was found.
    pub found: usize,
    /// The first good run, and the one after which that was found; absent while it lasts.
    pub ended: Option<(usize, usize)>,
    /// Level before it.
    pub before: f64,
    /// The runs have no result.
    pub is_absent: bool,
}

/// A result of a row in a run, or that it was planned and has none.
pub type GridEntry = (usize, RowKey, Option<f64>);

impl RowKey {
    /// A cell of a fleet by the factors of its trial; `None` of another trial.
    pub fn of_factors(factors: &BTreeMap<String, String>) -> Option<Self> {
        let of = |name: &str| factors.get(name).map(String::as_str);
        Some(Self::of_cell(
            of("source")?,
            of("sink")?,
            of("path").unwrap_or_default(),
            of("variant").unwrap_or_default(),
        ))
    }

    fn of_task(task: &Task) -> Self {
        Self::of_cell(
            task.source.as_str(),
            task.sink.as_str(),
            &task.path,
            &task.variant,
        )
    }

    fn of_cell(source: &str, sink: &str, path: &str, variant: &str) -> Self {
        Self {
            source: source.to_owned(),
            sink: sink.to_owned(),
            treatment: format!("{path} {variant}").trim().to_owned(),
        }
    }

    /// The row is a cell of a fleet.
    pub const fn is_cell(&self) -> bool {
        !self.sink.is_empty()
    }

    /// Its hosts in one order.
    pub fn pair(&self) -> (&str, &str) {
        let a = self.source.as_str();
        let b = self.sink.as_str();
        (a.min(b), a.max(b))
    }
}

impl Grid {
    /// The results of runs. Of several results of a row in a run the median counts.
    pub fn new(measure: MeasureName, starts_unix_ms: Vec<u64>, entries: Vec<GridEntry>) -> Self {
        let runs = starts_unix_ms.len();
        let mut all: BTreeMap<RowKey, Vec<(Vec<f64>, bool)>> = BTreeMap::new();
        for (run, key, value) in entries {
            let row = all
                .entry(key)
                .or_insert_with(|| vec![(Vec::new(), false); runs]);
            if let Some((values, is_lacking)) = row.get_mut(run) {
                values.extend(value);
                *is_lacking |= value.is_none();
            }
        }

        let row = |(key, runs): (RowKey, Vec<(Vec<f64>, bool)>)| {
            let values: Vec<Option<f64>> = runs.iter().map(|(values, _)| median(values)).collect();
            let lacking = (0..values.len()).filter(|at| runs[*at].1 && values[*at].is_none());
            let mut degradations = worse(&measure.info(), &values);
            degradations.extend(absent(&values, lacking));
            GridRow {
                key,
                values,
                degradations,
            }
        };
        Self {
            measure,
            starts_unix_ms,
            rows: all.into_iter().map(row).collect(),
            racks: BTreeMap::new(),
        }
    }

    /// The cells of the fleet runs among these records.
    pub fn of_fleet<'a>(records: impl IntoIterator<Item = &'a RunRecord>) -> Self {
        let mut starts = Vec::new();
        let mut entries = Vec::new();
        let mut hosts = BTreeMap::new();
        for (run, record) in records.into_iter().enumerate() {
            starts.push(record.started_unix_ms);
            entries.extend(values(run, record).chain(lacking(run, record)));
            hosts.extend(racks(record));
        }
        Self {
            racks: hosts,
            ..Self::new(CELL_MEASURE, starts, entries)
        }
    }

    /// Several paths or factors are in the rows.
    pub fn has_treatments(&self) -> bool {
        let mut treatments = self.rows.iter().map(|row| &row.key.treatment);
        let first = treatments.next();
        treatments.any(|other| Some(other) != first)
    }
}

fn values(run: usize, record: &RunRecord) -> impl Iterator<Item = GridEntry> {
    let trials = record.trials.iter();
    let complete = trials.filter(|trial| trial.state == RunState::Complete);
    complete.filter_map(move |trial| {
        let key = RowKey::of_factors(&trial.factors)?;
        let mut measures = trial.measures.iter();
        let measure = measures.find(|measure| measure.name == CELL_MEASURE)?;
        Some((run, key, Some(measure.value)))
    })
}

fn report(record: &RunRecord) -> Option<&FleetReport> {
    match &record.body {
        Body::Fleet(fleet) if record.kind == RunKind::Fleet => fleet.report.as_deref(),
        _ => None,
    }
}

/// The racks of the hosts of a run.
pub fn racks(record: &RunRecord) -> impl Iterator<Item = (HostId, String)> {
    let hosts = report(record)
        .into_iter()
        .flat_map(|report| &report.header.hosts);
    hosts.filter_map(|host| Some((host.id.clone(), host.rack.clone()?)))
}

/// The cells that were planned in a run and have no result.
pub fn lacking(run: usize, record: &RunRecord) -> impl Iterator<Item = GridEntry> {
    let cells = report(record).into_iter().flat_map(|report| &report.cells);
    cells
        .filter(|cell| cell.usable().is_none())
        .map(move |cell| (run, RowKey::of_task(&cell.task), None))
}

impl GridRow {
    /// It is in a degradation that was found by the end of run `at`.
    pub fn degradation(&self, at: usize) -> Option<&Degradation> {
        let is_found = |degradation: &&Degradation| {
            degradation.found <= at && degradation.ended.is_none_or(|(_, found)| at < found)
        };
        self.degradations.iter().find(is_found)
    }

    /// Median of the values of these runs.
    pub fn level(&self, runs: std::ops::RangeInclusive<usize>) -> Option<f64> {
        let values: Vec<f64> = self.values.get(runs)?.iter().copied().flatten().collect();
        median(&values)
    }
}

/// Degradations of lower rates, by the changes of the values.
fn worse(info: &MeasureInfo, values: &[Option<f64>]) -> Vec<Degradation> {
    let runs: Vec<usize> = (0..values.len())
        .filter(|at| values[*at].is_some())
        .collect();
    let values: Vec<f64> = values.iter().copied().flatten().collect();
    let mut degradations: Vec<Degradation> = Vec::new();
    let mut start = 0;
    for change in change_points(info, &values) {
        // The level before a change is that since the one before it, of five values at least.
        start = start.min(change.at.saturating_sub(AFTER));
        let level = &values[change.at.saturating_sub(BEFORE).max(start)..change.at];
        let before = median(level).unwrap_or(0.0);
        start = onset(&values, &change, start);
        let began = runs[start];
        let found = runs[change.found_at];
        let open = degradations
            .last_mut()
            .filter(|degradation| degradation.ended.is_none());
        match open {
            Some(open) if !change.is_worse => open.ended = Some((began, found)),
            None if change.is_worse => degradations.push(Degradation {
                began,
                found,
                ended: None,
                before,
                is_absent: false,
            }),
            // Worse still, or better than it ever was.
            _ => {}
        }
    }

    degradations
}

/// Degradations of three or more runs in a row in which the row lacks a result.
fn absent(values: &[Option<f64>], lacking: impl Iterator<Item = usize>) -> Vec<Degradation> {
    let lacking: Vec<usize> = lacking.collect();
    let has_value =
        |runs: std::ops::Range<usize>| runs.into_iter().find(|at| values[*at].is_some());
    let in_a_row = lacking.chunk_by(|a, b| has_value(*a..*b).is_none());
    let long = in_a_row.filter(|runs| runs.len() >= FAILURES_BEFORE_ALERT as usize);
    long.map(|runs| {
        let back = has_value(runs[runs.len() - 1]..values.len());
        Degradation {
            began: runs[0],
            found: runs[FAILURES_BEFORE_ALERT as usize - 1],
            ended: back.map(|at| (at, at)),
            before: 0.0,
            is_absent: true,
        }
    })
    .collect()
}
