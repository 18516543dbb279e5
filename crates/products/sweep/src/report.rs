//! Reports of a sweep: text with a plot, one line per run, and one HTML file. All of them write the
//! same [`Sweep`] and compute nothing.

mod brief;
mod document;
mod sentences;
mod values;

#[cfg(test)]
mod tests;

use linerate_document::record::ProductReport;
pub use linerate_model::numbers::clock;
use linerate_model::record::{Body, RunRecord};
use linerate_model::sweep::Sweep;

use crate::recorded_runs;
pub use document::{csv, html, text};
pub use values::value;

/// Records of sweeps that have a result.
pub const RECORDS: ProductReport = ProductReport {
    answers: |record| Some(vec![sentences::verdict(found(record)?)]),
    blocks: |record| Some(document::blocks(found(record)?)),
    page: |record| {
        let found = found(record)?;
        let runs = recorded_runs(found, &record.trials);
        Some(document::page(found, &runs))
    },
    ..ProductReport::NONE
};

fn found(record: &RunRecord) -> Option<&Sweep> {
    match &record.body {
        Body::Sweep(found) => found.as_deref(),
        _ => None,
    }
}
