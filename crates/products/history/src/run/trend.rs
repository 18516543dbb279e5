//! `linerate history trend`: one measure over the runs of the path and the specification of a run.

use std::collections::HashMap;

use linerate_model::measure::MeasureName;
use linerate_model::outcome::Error;
use linerate_model::record::{RunId, RunKind, RunRecord, Way};
use linerate_store::{Filter, Place, Sort, Store};

use super::named::one;
use crate::conclude::trend::{Trend, TrendRun};

/// The trend of a measure, of the primary one without a name; of tests that measured both
/// directions that of each.
///
/// # Errors
/// A name of no or several runs, a run that belongs to no path, and a store that cannot be read.
pub fn trend(
    store: Option<&str>,
    name: &str,
    measure: Option<MeasureName>,
) -> Result<Trend, Error> {
    let place = Place::find(store)?;
    let place = place.ok_or_else(|| Error::usage("--store off: there is no history"))?;
    let store = Store::open_existing(&place)?;
    let last = store.load(one(&store, name)?)?;
    if last.path.key.is_empty() {
        return Err(Error::failed(format!(
            "run {} has no path: its host is not known",
            last.run_id.short()
        )));
    }

    let measure = measure.or_else(|| Some(last.primary()?.0));
    let measure = measure
        .ok_or_else(|| Error::failed(format!("run {} has no result", last.run_id.short())))?;
    let filter = Filter {
        kind: Some(last.kind),
        keys: Some((last.path.key.clone(), last.path.spec_key.clone())),
        // Changes are found in the order of time.
        sort: Sort::Oldest,
        ..Filter::default()
    };

    let rows = store.list(&filter)?;
    let of_ways = |ways: &[Way]| -> Result<Trend, Error> {
        let medians = store.medians(&filter, measure, ways)?;
        let medians: HashMap<RunId, f64> = medians.into_iter().collect();
        let run = |row: &linerate_store::RunRow| TrendRun {
            run: row.run_id,
            started_unix_ms: row.started_unix_ms,
            value: medians.get(&row.run_id).copied(),
        };
        let load = |run: RunId| store.load(run).ok();

        Ok(Trend::new(
            measure,
            &last,
            rows.iter().map(run).collect(),
            load,
        ))
    };
    if !has_both_ways(&last, measure) {
        // The value of a run is that of the first of these ways which it has.
        return of_ways(&[Way::Sum, Way::Forward, Way::Reverse]);
    }

    let mut forward = of_ways(&[Way::Forward])?;
    let mut reverse = of_ways(&[Way::Reverse])?;
    forward.way = Some(Way::Forward);
    reverse.way = Some(Way::Reverse);
    forward.other_way = Some(Box::new(reverse));
    Ok(forward)
}

/// True if a test measured each direction by itself.
fn has_both_ways(run: &RunRecord, measure: MeasureName) -> bool {
    let is_test = matches!(run.kind, RunKind::Test | RunKind::Session);
    let has = |way: Way| {
        let mut measures = run.trials.iter().flat_map(|trial| &trial.measures);
        measures.any(|one| (one.name, one.way) == (measure, way))
    };
    is_test && has(Way::Forward) && has(Way::Reverse)
}
