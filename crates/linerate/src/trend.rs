//! `linerate history trend`: one measure over the runs of the path and the specification of a run.

use std::collections::HashMap;

use linerate_lab::trend::{Trend, TrendRun};
use linerate_model::measure::MeasureName;
use linerate_model::record::RunId;
use linerate_store::{Filter, Place, Sort, Store};

use crate::Error;
use crate::compare::{from_store, host_rules};

/// The trend of a measure, of the primary one without a name.
///
/// # Errors
/// A name of no or several runs, a run that belongs to no path, and a store that cannot be read.
pub fn trend(store: Option<&str>, name: &str, measure: Option<MeasureName>) -> Result<Trend, Error> {
    let place = Place::find(store).map_err(from_store)?;
    let place = place.ok_or_else(|| Error::usage("--store off: there is no history"))?;
    let store = Store::open_existing(&place).map_err(from_store)?;
    let last = match &*store.resolve(name).map_err(from_store)? {
        [run] => store.load(*run).map_err(from_store)?,
        several => return Err(Error::usage(format!("{name:?} names {} runs, and one is needed", several.len()))),
    };
    if last.path.key.is_empty() {
        return Err(Error::failed(format!("run {} has no path: its host is not known", last.run_id.short())));
    }
    let measure = measure.or_else(|| Some(last.primary()?.0));
    let measure = measure.ok_or_else(|| Error::failed(format!("run {} has no result", last.run_id.short())))?;
    let mut filter = Filter::default();
    filter.kind = Some(last.kind);
    filter.keys = Some((last.path.key.clone(), last.path.spec_key.clone()));
    filter.sort = Sort::Oldest;
    let medians: HashMap<RunId, f64> = store.medians(&filter, measure).map_err(from_store)?.into_iter().collect();
    let rows = store.list(&filter).map_err(from_store)?;
    let run = |row: &linerate_store::RunRow| TrendRun {
        run: row.run_id,
        started_unix_ms: row.started_unix_ms,
        value: medians.get(&row.run_id).copied(),
    };
    let load = |run: RunId| store.load(run).ok();
    Ok(Trend::new(measure, &last, rows.iter().map(run).collect(), load, host_rules))
}
