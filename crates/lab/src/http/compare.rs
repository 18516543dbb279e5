//! Two experiments side by side.

use linerate_model::http::{Cell, CellKey, Row, Study, VerdictClass};
use serde::Serialize;

use super::environment::changes;
use super::medians::counted;
use super::plan::Plan;
use crate::stats::relative_spread;

/// Tolerance where a row has none.
const TOLERANCE: f64 = 0.03;

/// One cell of two experiments.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedCell {
    /// The cell.
    pub key: CellKey,
    /// Responses per second before; absent where the cell was not run or is invalid.
    pub before_per_s: Option<f64>,
    /// Answers per second after.
    pub after_per_s: Option<f64>,
    /// Responses per second; equal within the larger tolerance of the two rows.
    pub throughput: Change,
    /// 99th percentile of the latency; equal within the same tolerance, or the spread of the runs of either experiment
    /// where that is more.
    pub p99: Change,
    /// CPU time of the server per answer, after as a multiple of before.
    pub server_cpu_ratio: Option<f64>,
}

/// Change of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Change {
    /// After as a multiple of before.
    pub ratio: Option<f64>,
    /// What counts as equal; absent where a cell has one run and the tolerance is that of its runs.
    pub tolerance: Option<f64>,
    /// The ratio exceeds the tolerance.
    pub is_different: bool,
}

impl Change {
    fn new(ratio: Option<f64>, tolerance: Option<f64>) -> Self {
        let exceeds = |(ratio, tolerance): (f64, f64)| (ratio - 1.0).abs() > tolerance;
        Self { ratio, tolerance, is_different: ratio.zip(tolerance).is_some_and(exceeds) }
    }
}

/// Two experiments side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// All cells of either, by phase, payload and connections.
    pub cells: Vec<ComparedCell>,
    /// What makes them hard to compare.
    pub notes: Vec<String>,
}

/// Compares two experiments cell by cell.
#[must_use]
pub fn compare(before: &Study, after: &Study) -> Comparison {
    let mut keys: Vec<CellKey> = before.cells.iter().chain(&after.cells).map(|cell| cell.key).collect();
    keys.sort_unstable();
    keys.dedup();
    Comparison {
        cells: keys.into_iter().map(|key| compared(key, before, after)).collect(),
        notes: notes(before, after),
    }
}

fn compared(key: CellKey, before: &Study, after: &Study) -> ComparedCell {
    let (one, two) = (valid(before, key), valid(after, key));
    let ratio = |figure: fn(&Cell) -> Option<f64>| {
        let before = figure(one?).filter(|before| *before > 0.0)?;
        Some(figure(two?)? / before)
    };
    let tolerance = tolerance(&before.rows, key).max(tolerance(&after.rows, key));
    let spreads = one.and_then(p99_spread).zip(two.and_then(p99_spread));
    let p99_tolerance = spreads.map(|(one, two)| one.max(two).max(tolerance));
    ComparedCell {
        key,
        before_per_s: one.and_then(|cell| cell.median.ok_per_s),
        after_per_s: two.and_then(|cell| cell.median.ok_per_s),
        throughput: Change::new(ratio(|cell| cell.median.ok_per_s), Some(tolerance)),
        p99: Change::new(ratio(|cell| cell.median.p99_ns.map(|ns| ns as f64)), p99_tolerance),
        server_cpu_ratio: ratio(|cell| cell.median.server_cpu_ns_per_request),
    }
}

/// How far apart the runs of a cell lie: `(max − min) / median` of their 99th percentiles.
fn p99_spread(cell: &Cell) -> Option<f64> {
    let runs = counted(&cell.runs).into_iter();
    let values = runs.filter_map(|run| Some(run.load.as_ref()?.latency.p99?.ns as f64));
    relative_spread(&values.collect::<Vec<_>>())
}

fn valid(study: &Study, key: CellKey) -> Option<&Cell> {
    let cell = study.cells.iter().find(|cell| cell.key == key)?;
    (cell.verdict.primary.class != VerdictClass::Invalid).then_some(cell)
}

fn tolerance(rows: &[Row], key: CellKey) -> f64 {
    let row = rows.iter().find(|row| row.payload_bytes == key.payload_bytes);
    row.map_or(TOLERANCE, |row| row.tolerance)
}

fn notes(before: &Study, after: &Study) -> Vec<String> {
    let mut notes = Vec::new();
    for (which, study) in [("first", before), ("second", after)] {
        if !study.is_complete {
            notes.push(format!("the {which} experiment did not come to its end"));
        }
    }
    if are_different_plans(&before.plan, &after.plan) {
        notes.push("the plans differ".to_owned());
    }
    notes.extend(change_of_protocol(before, after));
    for (whose, one, two) in [
        ("client", Some(&before.client), Some(&after.client)),
        ("server", before.server.as_ref(), after.server.as_ref()),
    ] {
        let changes = one.zip(two).map_or_else(Vec::new, |(one, two)| changes(one, two));
        notes.extend(changes.into_iter().map(|change| format!("{whose}: {change}")));
    }
    notes
}

/// By their values, not by their comments.
fn are_different_plans(before: &str, after: &str) -> bool {
    let name = |text: &str| Plan::parse(text).map(|plan| plan.hash());
    match (name(before), name(after)) {
        (Ok(before), Ok(after)) => before != after,
        _ => before != after,
    }
}

/// Change of the protocol, where both experiments have it.
fn change_of_protocol(before: &Study, after: &Study) -> Option<String> {
    let words = |study: &Study| {
        let protocol = study.protocol.iter().map(ToString::to_string);
        protocol.collect::<Vec<_>>().join(" and ")
    };
    let is_change = !before.protocol.is_empty() && !after.protocol.is_empty() && before.protocol != after.protocol;
    is_change.then(|| format!("protocol: {}, now {}", words(before), words(after)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::study::fixtures::{seed_input, study_of};
    use linerate_model::http::HttpVersion;

    #[test]
    fn the_same_experiment_twice_differs_nowhere() {
        let study = study_of(&seed_input());
        let comparison = compare(&study, &study);
        assert_eq!(comparison.cells.len(), study.cells.len());
        let is_equal = |cell: &ComparedCell| cell.throughput.ratio == Some(1.0) && !cell.throughput.is_different;
        assert!(comparison.cells.iter().all(is_equal));
        assert!(comparison.notes.is_empty(), "{:?}", comparison.notes);
    }

    #[test]
    fn only_what_exceeds_both_tolerances_is_different() {
        let before = study_of(&seed_input());
        let mut after = before.clone();
        after.rows[0].tolerance = 0.05;
        let is_matrix = |cell: &Cell| cell.key.phase == linerate_model::http::Phase::Matrix;
        let index = after.cells.iter().position(is_matrix).expect("cells");
        for (factor, expected) in [(0.96, false), (0.94, true), (1.06, true)] {
            after.cells[index].median.ok_per_s = before.cells[index].median.ok_per_s.map(|ok| ok * factor);
            let cell = &compare(&before, &after).cells[index];
            assert_eq!((cell.throughput.is_different, cell.throughput.tolerance), (expected, Some(0.05)), "{factor}");
        }
    }

    #[test]
    fn a_quantile_differs_only_by_more_than_its_own_runs_do() {
        let before = study_of(&seed_input());
        let has_repeats = |cell: &Cell| cell.runs.len() > 1;
        let index = before.cells.iter().position(has_repeats).expect("repeats");
        let mut after = before.clone();
        after.cells[index].median.p99_ns = before.cells[index].median.p99_ns.map(|ns| ns * 2);
        let cell = &compare(&before, &after).cells[index];
        assert!(cell.p99.is_different && !cell.throughput.is_different, "{cell:?}");
        let load = after.cells[index].runs[0].load.as_mut().expect("a load");
        load.latency.p99.as_mut().expect("a quantile").ns *= 9;
        let cell = &compare(&before, &after).cells[index];
        assert!(cell.p99.tolerance > Some(1.0) && !cell.p99.is_different, "{cell:?}");
        after.cells[index].runs.truncate(1);
        let cell = &compare(&before, &after).cells[index];
        assert_eq!((cell.p99.tolerance, cell.p99.is_different), (None, false));
    }

    #[test]
    fn cells_of_one_alone_have_no_ratio_and_other_hosts_are_noted() {
        let mut before = study_of(&seed_input());
        before.client.cpus = Some(4);
        let mut after = before.clone();
        after.cells.truncate(1);
        after.is_complete = false;
        after.client.cpus = Some(2);
        after.plan = after.plan.replace("seed = 1", "seed = 2");
        let comparison = compare(&before, &after);
        assert_eq!(comparison.cells.len(), before.cells.len());
        assert!(comparison.cells[1].throughput.ratio.is_none() && !comparison.cells[1].throughput.is_different);
        assert_eq!(comparison.notes.len(), 3, "{:?}", comparison.notes);
    }

    #[test]
    fn another_protocol_is_noted_and_another_explanation_of_the_plan_is_not() {
        let before = study_of(&seed_input());
        let mut after = before.clone();
        after.plan.push_str("# said otherwise\n");
        assert!(compare(&before, &after).notes.is_empty());
        after.protocol[0].http = HttpVersion::Http2;
        let notes = compare(&before, &after).notes;
        assert_eq!(notes, ["protocol: HTTP/1.1 in plain text, now HTTP/2 in plain text"]);
        // Written before this was kept.
        after.protocol.clear();
        assert!(compare(&before, &after).notes.is_empty());
    }
}
