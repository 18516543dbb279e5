//! Records of runs as one report: the answer, why, charts, values, hosts, how to repeat it, and the
//! record itself.

mod anonymous;
mod charts;
mod hosts;
mod intervals;
mod measures;
mod page;
#[cfg(test)]
mod tests;

use linerate_model::record::RunRecord;

pub use anonymous::anonymized;
pub use page::{RUNS_MAX, quoted};

use crate::blocks::Block;
use crate::style::Style;

/// The report of what a product measured, as parts of the report of its record. Each is `None` of a
/// record of another kind.
#[derive(Debug, Clone, Copy)]
pub struct ProductReport {
    /// The kind of the run for its title.
    pub name: fn(&RunRecord) -> Option<String>,
    /// The answers.
    pub answers: fn(&RunRecord) -> Option<Vec<String>>,
    /// The report but its title; the second argument is true for a page with charts.
    pub blocks: fn(&RunRecord, bool) -> Option<Vec<Block>>,
}

impl ProductReport {
    /// Report of a record that belongs to no product.
    pub const NONE: Self = Self {
        name: |_| None,
        answers: |_| None,
        blocks: |_, _| None,
    };
}

/// A part of the time of each trial, in ns since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// From here.
    pub from_ns: u64,
    /// To here.
    pub to_ns: u64,
}

impl Default for Stretch {
    fn default() -> Self {
        Self {
            from_ns: 0,
            to_ns: u64::MAX,
        }
    }
}

/// The report as one HTML file of less than 1 MB.
#[must_use]
pub fn html(records: &[RunRecord], stretch: Stretch, product: ProductReport) -> String {
    page::page(records, stretch, product)
}

/// The report as text.
#[must_use]
pub fn text(
    records: &[RunRecord],
    stretch: Stretch,
    product: ProductReport,
    style: Style,
) -> String {
    page::summary(records, stretch, product)
        .text(style)
        .trim_start()
        .to_owned()
}
