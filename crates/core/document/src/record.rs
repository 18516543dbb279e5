//! Records of runs as one report: the answer, why, charts, values, hosts, how to repeat it, and the
//! record itself.

mod anonymous;
mod charts;
mod hosts;
mod intervals;
mod measures;
mod page;
mod product;
#[cfg(test)]
mod tests;

use linerate_model::record::RunRecord;

pub use anonymous::anonymized;
pub use intervals::TimeRange;
pub use page::{RUNS_MAX, quoted};
pub use product::{ProductReport, RunPage};

use crate::style::Style;

/// The report as one HTML file of less than 1 MB.
pub fn html(records: &[RunRecord], stretch: TimeRange, product: ProductReport) -> String {
    page::page(records, stretch, product)
}

/// The report as text.
pub fn text(records: &[RunRecord], product: ProductReport, style: Style) -> String {
    page::summary(records, product)
        .text(style)
        .trim_start()
        .to_owned()
}
