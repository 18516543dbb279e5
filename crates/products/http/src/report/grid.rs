//! The cells of a study by payload and connections, and representative ones.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::http::{Cell, CellRun, Latency, Phase, Quantile, Row, RunState, Study};

use super::labels::{MISSING, quantile};

/// The matrix of a study.
pub(super) struct Grid<'a> {
    cells: BTreeMap<(u64, u32), &'a Cell>,
    rows: BTreeMap<u64, &'a Row>,
}

impl<'a> Grid<'a> {
    /// The cells of the second phase.
    pub(super) fn new(study: &'a Study) -> Self {
        let matrix = study
            .cells
            .iter()
            .filter(|cell| cell.key.phase == Phase::Matrix);
        Self {
            cells: matrix
                .map(|cell| ((cell.key.payload_bytes, cell.key.connections), cell))
                .collect(),
            rows: study
                .rows
                .iter()
                .map(|row| (row.payload_bytes, row))
                .collect(),
        }
    }

    /// True if the grid has no cells.
    pub(super) fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// From small to large.
    pub(super) fn payloads(&self) -> Vec<u64> {
        let payloads: BTreeSet<u64> = self.cells.keys().map(|(payload, _)| *payload).collect();
        payloads.into_iter().collect()
    }

    /// Numbers of connections, from few to many.
    pub(super) fn connections(&self) -> Vec<u32> {
        let connections: BTreeSet<u32> = self
            .cells
            .keys()
            .map(|(_, connections)| *connections)
            .collect();
        connections.into_iter().collect()
    }

    /// One cell.
    pub(super) fn cell(&self, payload_bytes: u64, connections: u32) -> Option<&'a Cell> {
        self.cells.get(&(payload_bytes, connections)).copied()
    }

    /// Cells of a payload, from few connections to many.
    pub(super) fn cells_of(&self, payload_bytes: u64) -> impl Iterator<Item = &'a Cell> {
        self.cells
            .range((payload_bytes, 0)..=(payload_bytes, u32::MAX))
            .map(|(_, cell)| *cell)
    }

    /// By payload, then by connections.
    pub(super) fn all(&self) -> impl Iterator<Item = &'a Cell> {
        self.cells.values().copied()
    }

    /// Knee, cliff and best stable case of a payload.
    pub(super) fn row(&self, payload_bytes: u64) -> Option<&'a Row> {
        self.rows.get(&payload_bytes).copied()
    }

    /// True if this is the number of connections to use with this payload.
    pub(super) fn is_best_stable(&self, cell: &Cell) -> bool {
        self.row(cell.key.payload_bytes)
            .is_some_and(|row| row.best_stable_connections == Some(cell.key.connections))
    }

    /// Payload per second as a share of the best of its payload.
    pub(super) fn share_of_best(&self, cell: &Cell) -> Option<f64> {
        let rate = |cell: &Cell| cell.median.payload_bytes_per_s;
        // Above 0, because the share divides by it.
        let rates = self.cells_of(cell.key.payload_bytes).filter_map(rate);
        Some(rate(cell)? / rates.fold(f64::MIN_POSITIVE, f64::max))
    }

    /// The cell to use for each payload.
    pub(super) fn best_stable(&self) -> Vec<&'a Cell> {
        let best = |payload| {
            self.cells_of(payload)
                .find(|cell| self.is_best_stable(cell))
        };
        self.payloads().into_iter().filter_map(best).collect()
    }
}

/// One cell for each payload: those of the first phase, or, where its connections were part of the
/// matrix, the best stable ones there.
pub(super) fn by_payload(study: &Study) -> Vec<&Cell> {
    let mut cells: Vec<&Cell> = of_phase(study, Phase::Payload).collect();
    if cells.is_empty() {
        cells = Grid::new(study).best_stable();
    }

    cells.sort_by_key(|cell| (cell.key.payload_bytes, cell.key.connections));
    cells
}

/// Cells of one phase, in the order of the study.
pub(super) fn of_phase(study: &Study, phase: Phase) -> impl Iterator<Item = &Cell> {
    study
        .cells
        .iter()
        .filter(move |cell| cell.key.phase == phase)
}

/// Cells whose single runs are of interest: the best stable ones and those with many connections.
pub(super) fn notable(study: &Study) -> Vec<&Cell> {
    let many = study
        .cells
        .iter()
        .filter(|cell| matches!(cell.key.phase, Phase::LowRate | Phase::Active));
    let mut cells = Grid::new(study).best_stable();
    if cells.is_empty() {
        cells = by_payload(study);
    }

    cells.extend(many);
    cells
}

/// Runs whose numbers count.
pub(super) fn finished(cell: &Cell) -> impl Iterator<Item = &CellRun> {
    cell.runs.iter().filter(|run| run.state == RunState::Done)
}

/// The finished run in the middle by throughput: one that was, for what cannot be averaged.
pub(super) fn median_run(cell: &Cell) -> Option<&CellRun> {
    let mut runs: Vec<&CellRun> = finished(cell).filter(|run| run.load.is_some()).collect();
    let rate = |run: &CellRun| {
        run.load
            .as_ref()
            .and_then(|load| load.ok_per_s())
            .unwrap_or(0.0)
    };
    runs.sort_by(|a, b| rate(a).total_cmp(&rate(b)));

    // Of an even number the slower of the two in the middle.
    runs.get(runs.len().saturating_sub(1) / 2).copied()
}

/// A quantile of a cell: the median of its runs, known from below only where that is so in one of
/// them.
pub(super) fn quantile_of(
    cell: &Cell,
    median_ns: Option<u64>,
    of: fn(&Latency) -> Option<Quantile>,
) -> String {
    let latencies = || finished(cell).filter_map(|run| Some(&run.load.as_ref()?.latency));
    let is_lower_bound = latencies()
        .filter_map(of)
        .any(|quantile| quantile.is_lower_bound);
    let median = median_ns.map(|ns| {
        let mut median = Quantile::new(ns);
        median.is_lower_bound = is_lower_bound;
        median
    });
    match (median, latencies().map(|latency| latency.n).max()) {
        (None, None) => MISSING.to_owned(),
        (median, n) => quantile(median, n.unwrap_or(0)),
    }
}

/// `medians of 3 runs`
pub(super) fn runs_of<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> String {
    let counts: BTreeSet<u32> = cells.into_iter().map(|cell| cell.median.runs).collect();
    match (counts.first(), counts.last()) {
        (None, _) | (_, None | Some(0)) => "no finished run".to_owned(),
        (Some(1), Some(1)) => "one run each".to_owned(),
        (Some(few), Some(many)) if few == many => format!("medians of {many} runs"),
        (Some(few), Some(many)) => format!("medians of {few} to {many} runs"),
    }
}
