//! `linerate report --grid`: results of many runs by time, of the pairs of a fleet or by label.

use std::collections::HashMap;

use linerate_model::outcome::Error;
use linerate_model::record::{RunId, RunKind, RunRow, RunState};
use linerate_store::{Filter, Place, Sort, Store};

use super::watch::SKIPPED;
use crate::conclude::grid::{CELL_MEASURE, Grid, GridEntry, RowKey, lacking, racks};

/// Which runs are in a grid.
#[derive(Debug, Clone, Default)]
pub struct GridSpec {
    /// The store, as given with `--store`.
    pub store: Option<String>,
    /// Runs since this time in ms since 1970.
    pub since_ms: Option<u64>,
    /// Runs of this watch.
    pub watch: Option<String>,
    /// Rows are values of this label. Without it they are the pairs of the newest fleet, or titles
    /// and paths where there is none.
    pub by: Option<String>,
}

/// A grid and what a reader needs to know of its runs.
#[derive(Debug, Clone)]
pub struct NamedGrid {
    /// The results.
    pub grid: Grid,
    /// The watch or the fleet; absent of others.
    pub name: Option<String>,
    /// Number of the first run since the watch or the fleet began; absent of labels, whose runs are
    /// of different hosts.
    pub first_round: Option<usize>,
}

/// The results of the runs.
///
/// # Errors
/// No such run, and a store that cannot be read.
pub fn grid(spec: &GridSpec) -> Result<NamedGrid, Error> {
    let place = Place::find(spec.store.as_deref())?;
    let place = place.ok_or_else(|| Error::usage("--store off: there is no history"))?;
    let store = Store::open_existing(&place)?;
    let filter = Filter {
        since_ms: spec.since_ms,
        watch: spec.watch.clone(),
        sort: Sort::Oldest,
        ..Filter::default()
    };

    let mut rows = store.list_both_ways(&filter)?;
    rows.retain(|row| row.state != RunState::Running && row.reason.as_deref() != Some(SKIPPED));
    let fleets = || rows.iter().rev().filter(|row| row.kind == RunKind::Fleet);
    let grid = match (fleets().next(), &spec.by) {
        (Some(newest), None) => of_fleet(&store, filter, newest)?,
        _ => of_labels(&rows, spec.by.as_deref()),
    };

    if grid.grid.rows.is_empty() {
        Err(Error::failed("no run of this time has a result to show"))
    } else {
        Ok(grid)
    }
}

/// The cells of a fleet, of which this is a run.
fn of_fleet(store: &Store, filter: Filter, newest: &RunRow) -> Result<NamedGrid, Error> {
    let filter = Filter {
        kind: Some(RunKind::Fleet),
        server: newest.server.clone(),
        watch: filter.watch.or_else(|| newest.watch.clone()),
        ..filter
    };
    let is_run =
        |row: &RunRow| row.state != RunState::Running && row.reason.as_deref() != Some(SKIPPED);
    let mut rows = store.list(&filter)?;
    rows.retain(is_run);
    let earlier = filter.since_ms.map(|since_ms| Filter {
        since_ms: None,
        before_ms: Some(since_ms),
        ..filter.clone()
    });
    let earlier = earlier.map(|earlier| store.list(&earlier)).transpose()?;
    let earlier = earlier.into_iter().flatten().filter(is_run).count();

    let places: HashMap<RunId, usize> =
        (0..).zip(&rows).map(|(at, row)| (row.run_id, at)).collect();
    let values = store.trial_values(&filter, CELL_MEASURE)?;
    let entry = |(run, factors, value)| -> Option<GridEntry> {
        Some((
            *places.get(&run)?,
            RowKey::of_factors(&factors)?,
            Some(value),
        ))
    };
    let mut entries: Vec<GridEntry> = values.into_iter().filter_map(entry).collect();
    // Only the record of a run has the cells without a result.
    for (at, row) in rows.iter().enumerate() {
        if row.state == RunState::Partial {
            entries.extend(lacking(at, &store.load(row.run_id)?));
        }
    }

    Ok(NamedGrid {
        grid: Grid {
            racks: racks(&store.load(newest.run_id)?).collect(),
            ..Grid::new(CELL_MEASURE, starts(&rows), entries)
        },
        name: filter.watch.or(filter.server),
        first_round: Some(earlier + 1),
    })
}

/// The results of runs by a label, or by their titles and paths.
fn of_labels(rows: &[RunRow], by: Option<&str>) -> NamedGrid {
    // Runs of the measure of the newest one are comparable.
    let newest = rows.iter().rev().find_map(|row| row.primary);
    let measure = newest.map_or(CELL_MEASURE, |(measure, _)| measure);
    let mut entries: Vec<GridEntry> = Vec::new();

    for (at, row) in rows.iter().enumerate() {
        let name = match by {
            Some(key) => row.labels.get(key).cloned(),
            None => row.title.clone().or_else(|| path(row)),
        };
        let value = row.primary.filter(|(of, _)| *of == measure);
        let (Some(name), Some((_, value))) = (name, value) else {
            continue;
        };
        let mut add = |name: String, value| {
            let key = RowKey {
                source: name,
                ..RowKey::default()
            };
            entries.push((at, key, Some(value)));
        };
        match row.both_ways {
            Some((up, down)) => {
                add(format!("{name} down"), down);
                add(format!("{name} up"), up);
            }
            None => add(name, value),
        }
    }

    NamedGrid {
        grid: Grid::new(measure, starts(rows), entries),
        name: by.map(str::to_owned),
        first_round: None,
    }
}

fn starts(rows: &[RunRow]) -> Vec<u64> {
    rows.iter().map(|row| row.started_unix_ms).collect()
}

fn path(row: &RunRow) -> Option<String> {
    match (&row.client, &row.server) {
        (Some(client), Some(server)) => Some(format!("{client} > {server}")),
        (one, other) => one.clone().or_else(|| other.clone()),
    }
}
