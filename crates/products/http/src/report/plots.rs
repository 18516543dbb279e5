//! The plots of a study: drawings of its numbers.

mod matrix;
mod memory;
mod payload;
mod quantiles;

use linerate_document::plot::Plot;
use linerate_model::http::Study;

pub(super) use quantiles::latency_of;

/// The plots that have a curve.
pub(super) fn plots(study: &Study) -> Vec<Plot> {
    let plots = [
        matrix::throughput(study),
        matrix::latency(study),
        payload::payload(study),
        quantiles::quantiles(study),
        memory::memory(study),
    ];
    plots.into_iter().flatten().collect()
}
