//! The plots of a study: drawings of its numbers.

mod matrix;
mod memory;
mod payload;
mod quantiles;
mod time;

use linerate_model::http::Study;

use crate::document::plot::Plot;

/// The plots for which there are numbers.
pub(super) fn plots(study: &Study) -> Vec<Plot> {
    let mut plots = vec![
        matrix::throughput(study),
        matrix::latency(study),
        payload::payload(study),
        memory::memory(study),
        quantiles::quantiles(study),
    ];
    plots.extend(time::time(study).into_iter().map(Some));
    plots.extend([matrix::knee(study), payload::cpu(study)]);
    plots.into_iter().flatten().collect()
}
