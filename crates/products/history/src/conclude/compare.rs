//! Two sides of a comparison, each one run or several: what differs in the configuration, and in
//! the results.

mod differences;
mod trials;

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::measure::{Better, MeasureName};
use linerate_model::record::{RunId, RunKind, RunRecord, RunState, Trial, Way};
use linerate_model::stored_name;
use linerate_model::two_sample::{EARLIER_MAX, Judged, Verdict, adjust};
use serde::Serialize;

pub(crate) use differences::values as differing;
pub use differences::{Change, ExperimentNotes, configuration};
use differences::{changes, notes, obstacles};
pub use trials::{LeftOut, counted};

/// Schema name of a [`Comparison`].
pub const COMPARE_SCHEMA: &str = "linerate.compare/1";

/// Settings of a comparison of runs.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    /// Smallest change that matters, as a share; [`MARGIN`](linerate_model::two_sample::MARGIN) by default.
    pub margin: f64,
    /// The measure that decides; `None` for the primary one of the kind of run.
    pub measure: Option<MeasureName>,
    /// Compares also what is not comparable.
    pub is_forced: bool,
    /// Runs of the same path and specification before A, in the order of their starts.
    pub earlier: &'a [RunRecord],
    /// Reasons that make two experiments of the HTTP lab hard to compare.
    pub experiment_notes: ExperimentNotes,
}

/// Two sides, and what follows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Always [`COMPARE_SCHEMA`].
    pub schema: &'static str,
    /// The side that is compared with.
    pub a: SideInfo,
    /// The side that is judged.
    pub b: SideInfo,
    /// The verdict; absent where the sides are not comparable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conclusion: Option<Verdict>,
    /// Why they are not comparable; the results are compared all the same if the user forced it.
    pub obstacles: Vec<String>,
    /// Differences of configuration, strongest effect first.
    pub changes: Vec<Change>,
    /// Results: of one cell all measures, of several the measure that decides.
    pub rows: Vec<Row>,
    /// Qualifications of the result, one sentence each.
    pub notes: Vec<String>,
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SideInfo {
    /// Its runs.
    pub runs: Vec<RunId>,
    /// Start of the first one.
    pub started_at: String,
    /// Command line of the last one; empty where it is not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// Trials that count.
    pub trials: usize,
    /// Trials that do not.
    pub left_out: Vec<LeftOut>,
}

/// One measure of one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The cell: what was varied, and its level.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub factors: Factors,
    /// The measure.
    pub measure: MeasureName,
    /// Its direction.
    pub way: Way,
    /// The conclusion follows from it.
    pub is_deciding: bool,
    /// A true value is higher than the one that was measured.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_lower_bound: bool,
    /// Both sides, and what follows.
    #[serde(flatten)]
    pub judged: Judged,
}

impl Row {
    /// The measure in words, with its direction where it has one.
    pub(crate) fn name(&self) -> String {
        let words = self.measure.info().words();
        match self.way.words() {
            None => words,
            Some(way) => format!("{words} {way}"),
        }
    }
}

type Factors = BTreeMap<String, String>;
type Cells<'a> = BTreeMap<&'a Factors, Vec<&'a Trial>>;

/// Compares the runs `b` with the runs `a`, both in the order of their starts.
pub fn compare(a: &[RunRecord], b: &[RunRecord], settings: &Settings<'_>) -> Comparison {
    let ((trials_a, left_out_a), (trials_b, left_out_b)) = (counted(a), counted(b));
    let cells_a = cells(&trials_a);
    let cells_b = cells(&trials_b);
    let mut changes = match (a.first(), b.first()) {
        (Some(a), Some(b)) => changes(a, b, firsts(&cells_a, &cells_b)),
        _ => Vec::new(),
    };
    changes.sort_by_key(|change| std::cmp::Reverse(change.difference.impact));

    let usual = || deciding_of(a.first()?.kind, &cells_a, &cells_b);
    let deciding = settings.measure.or_else(usual);
    let mut obstacles = obstacles(&changes);
    obstacles.extend(other_kind(a, b));

    let rows = match deciding {
        Some(deciding) if obstacles.is_empty() || settings.is_forced => {
            rows(&cells_a, &cells_b, deciding, settings)
        }
        _ => Vec::new(),
    };
    if rows.iter().all(|row| !row.is_deciding) && obstacles.is_empty() {
        obstacles.push(nothing_in_common(deciding, &cells_a, &cells_b));
    }

    let mut notes = a
        .first()
        .zip(b.first())
        .map_or_else(Vec::new, |(a, b)| notes(a, b, settings.experiment_notes));
    notes.extend(order(a, b));
    notes.extend(cells_of_one(&cells_a, &cells_b));

    Comparison {
        schema: COMPARE_SCHEMA,
        a: side(a, trials_a.len(), left_out_a),
        b: side(b, trials_b.len(), left_out_b),
        conclusion: conclusion(&rows),
        obstacles,
        changes,
        rows,
        notes,
    }
}

/// The measure by which these runs are compared: that of their kind, or the delay of tests without
/// a load.
fn deciding_of(kind: RunKind, a: &Cells<'_>, b: &Cells<'_>) -> Option<MeasureName> {
    let usual = primary(kind)?;
    let has = |cells: &Cells<'_>, name| {
        let measures = cells.values().flatten().flat_map(|trial| &trial.measures);
        measures.into_iter().any(|measure| measure.name == name)
    };
    let is_idle = !has(a, usual) && !has(b, usual) && has(a, DELAY) && has(b, DELAY);
    Some(if is_idle { DELAY } else { usual })
}

/// The delay of a test without a load.
const DELAY: MeasureName = MeasureName::IdleRttP50Ns;

/// The measure by which runs of a kind are compared.
fn primary(kind: RunKind) -> Option<MeasureName> {
    match kind {
        RunKind::Test | RunKind::Sweep | RunKind::Session | RunKind::Fleet => {
            Some(MeasureName::ReceivedBps)
        }
        RunKind::HttpLoad | RunKind::HttpLab => Some(MeasureName::OkPerS),
        _ => None,
    }
}

fn other_kind(a: &[RunRecord], b: &[RunRecord]) -> Option<String> {
    let a = a.first()?.kind;
    let b = b.first()?.kind;
    (primary(a) != primary(b))
        .then(|| format!("kind of run: {}, now {}", stored_name(a), stored_name(b)))
}

fn nothing_in_common(deciding: Option<MeasureName>, a: &Cells<'_>, b: &Cells<'_>) -> String {
    match deciding {
        None => "diagnoses have no measures; linerate doctor --diff compares them".to_owned(),
        Some(_) if a.is_empty() || b.is_empty() => {
            format!(
                "{} has no trial that counts",
                if a.is_empty() { "A" } else { "B" }
            )
        }
        Some(_) if a.keys().all(|factors| !b.contains_key(factors)) => {
            "no cell is in both".to_owned()
        }
        Some(measure) => format!("{measure} was not measured on both sides"),
    }
}

fn side(runs: &[RunRecord], trials: usize, left_out: Vec<LeftOut>) -> SideInfo {
    let started_at = runs
        .first()
        .map(|run| run.started_at.clone())
        .unwrap_or_default();
    let argv = runs
        .last()
        .map(|run| run.origin.argv.clone())
        .unwrap_or_default();
    SideInfo {
        runs: runs.iter().map(|run| run.run_id).collect(),
        started_at,
        argv,
        trials,
        left_out,
    }
}

fn cells<'a>(trials: &[&'a Trial]) -> Cells<'a> {
    let mut cells = Cells::new();
    for trial in trials {
        cells.entry(&trial.factors).or_default().push(*trial);
    }
    cells
}

/// Trials whose specifications can be compared: those of a cell that is on both sides.
fn firsts<'a>(a: &Cells<'a>, b: &Cells<'a>) -> [Option<&'a Trial>; 2] {
    let common = a.keys().find(|factors| b.contains_key(*factors));
    let first = |cells: &Cells<'a>| match common {
        Some(factors) => cells.get(factors)?.first().copied(),
        None => cells.values().next()?.first().copied(),
    };
    [first(a), first(b)]
}

/// Judges every measure of one cell, or the deciding one of several.
fn rows(a: &Cells<'_>, b: &Cells<'_>, deciding: MeasureName, settings: &Settings<'_>) -> Vec<Row> {
    let (earlier, _) = counted(settings.earlier);
    let earlier = cells(&earlier);

    let common: Vec<&Factors> = a
        .keys()
        .filter(|factors| b.contains_key(*factors))
        .copied()
        .collect();
    let mut rows = Vec::new();

    for factors in &common {
        for (measure, way) in keys(&a[factors]) {
            if common.len() > 1 && measure != deciding {
                continue;
            }

            let before = earlier
                .get(factors)
                .map_or_else(Vec::new, |trials| values(trials, measure, way));
            // The newest of the earlier values describe the noise of the path as it is now.
            let before = &before[before.len().saturating_sub(EARLIER_MAX)..];
            let in_a = values(&a[factors], measure, way);
            let in_b = values(&b[factors], measure, way);
            let judged = Judged::new(&measure.info(), settings.margin, &in_a, &in_b, before);
            rows.extend(judged.map(|judged| Row {
                factors: (*factors).clone(),
                measure,
                way,
                is_deciding: measure == deciding,
                is_lower_bound: has_lower_bound(&a[factors], measure)
                    || has_lower_bound(&b[factors], measure),
                judged,
            }));
        }
    }

    // Adjusted in two groups, so that further measures do not weaken the answer.
    for is_deciding in [true, false] {
        adjust(
            rows.iter_mut()
                .filter(|row| row.is_deciding == is_deciding)
                .map(|row| &mut row.judged),
        );
    }

    rows
}

/// Measures that can be better or worse, in the order of the catalogue. The sum of both directions
/// is left out where there are values of each.
fn keys(trials: &[&Trial]) -> Vec<(MeasureName, Way)> {
    let measures = trials.iter().flat_map(|trial| &trial.measures);
    let keys: BTreeSet<(MeasureName, Way)> = measures
        .map(|measure| (measure.name, measure.way))
        .collect();
    let has_ways = |name: MeasureName| {
        keys.iter()
            .any(|(other, way)| *other == name && *way != Way::Sum)
    };
    let is_judged = |(name, way): &&(MeasureName, Way)| {
        name.info().better != Better::Neither && !(*way == Way::Sum && has_ways(*name))
    };

    keys.iter().filter(is_judged).copied().collect()
}

fn values(trials: &[&Trial], name: MeasureName, way: Way) -> Vec<f64> {
    let value = |trial: &&Trial| {
        trial
            .measures
            .iter()
            .find(|one| one.name == name && one.way == way)
            .map(|one| one.value)
    };
    trials
        .iter()
        .filter_map(value)
        .filter(|value| value.is_finite())
        .collect()
}

fn has_lower_bound(trials: &[&Trial], name: MeasureName) -> bool {
    trials
        .iter()
        .flat_map(|trial| &trial.measures)
        .any(|one| one.name == name && one.is_lower_bound)
}

/// The strongest of the deciding verdicts. Cells of too few runs count only where all are.
fn conclusion(rows: &[Row]) -> Option<Verdict> {
    let rank = |verdict: &Verdict| match verdict {
        Verdict::TooFew => (0, 0),
        Verdict::Same => (1, 0),
        Verdict::Better => (2, 0),
        Verdict::Undecided { more_trials } => (3, *more_trials),
        Verdict::Worse => (4, 0),
    };
    rows.iter()
        .filter(|row| row.is_deciding)
        .map(|row| row.judged.verdict)
        .max_by_key(rank)
}

/// Sides made one after the other, and runs that did not end.
fn order(a: &[RunRecord], b: &[RunRecord]) -> Vec<String> {
    let span = |runs: &[RunRecord]| {
        let start = runs.iter().map(|run| run.started_unix_ms).min();
        let end = runs
            .iter()
            .map(|run| {
                run.started_unix_ms
                    .saturating_add(run.elapsed_ns / 1_000_000)
            })
            .max();
        start.zip(end)
    };
    let mut notes = Vec::new();

    if let Some((a, b)) = span(a).zip(span(b)) {
        // Sides whose times overlap were made in turns, and drift is in both.
        if a.1 <= b.0 {
            notes.push("B was made after A: drift is not excluded".to_owned());
        } else if b.1 <= a.0 {
            notes.push("A was made after B: drift is not excluded".to_owned());
        }
    }

    for (name, runs) in [("A", a), ("B", b)] {
        let unfinished = runs.iter().filter(|run| run.state != RunState::Complete);
        notes.extend(unfinished.map(|run| {
            format!(
                "run {} of {name} is {}",
                run.run_id.short(),
                run.state.words()
            )
        }));
    }

    notes
}

fn cells_of_one(a: &Cells<'_>, b: &Cells<'_>) -> Option<String> {
    let alone = a.keys().filter(|factors| !b.contains_key(*factors)).count()
        + b.keys().filter(|factors| !a.contains_key(*factors)).count();
    (alone > 0 && (a.len() > 1 || b.len() > 1))
        .then(|| format!("{alone} cells are on one side only"))
}
