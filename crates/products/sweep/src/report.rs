//! Reports of a sweep: text with a plot, one line per run, and one HTML file. All of them write the
//! same [`Sweep`](linerate_model::sweep::Sweep) and compute nothing.

mod document;
mod sentences;
mod values;

#[cfg(test)]
mod tests;

pub use linerate_document::Glyphs;
use linerate_document::record::ProductPart;
pub use linerate_model::numbers::clock;
use linerate_model::record::{Body, RunRecord};

use crate::recorded_runs;
pub use document::{csv, html, text};
pub use values::value;

/// The part of a sweep in the report of its record; `None` of a record of another kind, or of a
/// sweep without a result.
#[must_use]
pub fn record_part(record: &RunRecord) -> Option<ProductPart> {
    let Body::Sweep(Some(found)) = &record.body else {
        return None;
    };

    Some(ProductPart {
        answer: Some(sentences::verdict(found)),
        blocks: document::blocks(found, &recorded_runs(found, &record.trials)),
    })
}
