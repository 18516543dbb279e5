//! Comparison of stored runs: is one side worse than the other?

use linerate_model::measure::MeasureName;
use linerate_model::outcome::Error;
use linerate_model::record::{RunRecord, Trial};
use linerate_store::{Filter, Place, Store, StoreError};

use super::named::load_named;
use crate::conclude::compare::{self, Comparison, ExperimentNotes, Settings, counted};
use crate::conclude::expect::{Expectations, Missed};

/// Earlier runs of a path whose noise is read, at most.
const EARLIER_RUNS_MAX: u32 = 20;

/// Specification of a comparison.
#[derive(Debug, Clone)]
pub struct CompareSpec {
    /// Name or file of the side that is compared with.
    pub a: String,
    /// Name or file of the side that is judged.
    pub b: String,
    /// The history, as of `--store`.
    pub store: Option<String>,
    /// Smallest change that matters, as a share.
    pub margin: f64,
    /// The measure that decides; `None` for the primary one.
    pub measure: Option<MeasureName>,
    /// Compares also what is not comparable.
    pub is_forced: bool,
    /// Limits that B must hold.
    pub expectations: Option<Expectations>,
}

impl CompareSpec {
    /// Smallest change that matters unless named otherwise, as a share.
    pub const MARGIN: f64 = 0.05;

    /// `b` with `a`, both of the history of the user, by their primary measure.
    pub fn new(a: impl Into<String>, b: impl Into<String>) -> Self {
        Self {
            a: a.into(),
            b: b.into(),
            store: None,
            margin: Self::MARGIN,
            measure: None,
            is_forced: false,
            expectations: None,
        }
    }
}

/// A comparison, and the limits that B missed.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// The comparison.
    pub comparison: Comparison,
    /// Limits that B missed.
    pub missed: Vec<Missed>,
}

/// Reads both sides and compares them; `experiment_notes` compares the conditions of two
/// experiments of the HTTP lab.
///
/// # Errors
/// Names that mean no run, or the same run twice, and records that cannot be read.
pub fn compare(spec: &CompareSpec, experiment_notes: ExperimentNotes) -> Result<Compared, Error> {
    let place = Place::find(spec.store.as_deref())?;
    let runs = |name: &str| -> Result<Vec<RunRecord>, Error> {
        let mut runs = load_named(place.as_ref(), name)?;
        // A label names its runs with the newest first.
        runs.sort_by_key(|run| run.started_unix_ms);

        if runs.is_empty() {
            Err(Error::usage(format!("no run {name:?}")))
        } else {
            Ok(runs)
        }
    };
    let a = runs(&spec.a)?;
    let b = runs(&spec.b)?;
    if let Some(both) = a
        .iter()
        .find(|run| b.iter().any(|other| other.run_id == run.run_id))
    {
        return Err(Error::usage(format!(
            "run {} is on both sides",
            both.run_id.short()
        )));
    }

    let earlier = place
        .as_ref()
        .map_or_else(Vec::new, |place| earlier(place, &a));
    let settings = Settings {
        margin: spec.margin,
        measure: spec.measure,
        is_forced: spec.is_forced,
        earlier: &earlier,
        experiment_notes,
    };
    let comparison = compare::compare(&a, &b, &settings);
    let missed = spec
        .expectations
        .as_ref()
        .map_or_else(Vec::new, |expected| expected.missed(&trials(&b)));

    Ok(Compared { comparison, missed })
}

/// The trials that limits are about: those that count, or if none does those that were made.
fn trials(runs: &[RunRecord]) -> Vec<&Trial> {
    let (counted, _) = counted(runs);
    if counted.is_empty() {
        runs.iter().flat_map(|run| &run.trials).collect()
    } else {
        counted
    }
}

/// Runs of the path and the specification of A before it. A history that cannot be read has none.
fn earlier(place: &Place, a: &[RunRecord]) -> Vec<RunRecord> {
    let Some(first) = a.first().filter(|run| !run.path.key.is_empty()) else {
        return Vec::new();
    };
    let filter = Filter {
        kind: Some(first.kind),
        keys: Some((first.path.key.clone(), first.path.spec_key.clone())),
        // Runs of the sides themselves would count their difference as noise.
        before_ms: Some(first.started_unix_ms),
        measured_here: true,
        limit: Some(EARLIER_RUNS_MAX),
        ..Filter::default()
    };

    let load = || -> Result<Vec<RunRecord>, StoreError> {
        let store = Store::open_existing(place)?;
        store
            .list(&filter)?
            .into_iter()
            .rev()
            .map(|row| store.load(row.run_id))
            .collect()
    };
    // Earlier runs refine the noise floor; a comparison of two files needs no history.
    load().unwrap_or_default()
}
