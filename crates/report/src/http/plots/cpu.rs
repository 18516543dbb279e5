//! Plot 8: what an answer costs the CPUs, over payloads.

use linerate_model::http::{Cell, Medians, Study};

use super::payload::{bytes, payloads};
use crate::document::chart::{Axis, Chart, LineStyle, Point, Series};
use crate::document::plot::Plot;
use crate::http::grid::{by_payload, runs_of};
use crate::http::numbers::time;

pub(super) fn cpu(study: &Study) -> Option<Plot> {
    let cells = by_payload(study);
    let point = |cell: &Cell, figure: fn(&Medians) -> Option<f64>| Some(Point::new(bytes(cell), figure(&cell.median)?));
    let series = |name: &str, line_style, hue, figure| Series {
        name: name.to_owned(),
        line_style,
        hue,
        points: cells.iter().filter_map(|cell| point(cell, figure)).collect(),
    };
    let chart = Chart {
        name: "",
        x: payloads(&cells),
        y: Axis::log("processor time per 2xx", time),
        series: vec![
            series("server", LineStyle::Main, 0, |median| median.server_cpu_ns_per_request),
            series("client", LineStyle::Main, 1, |median| median.client_cpu_ns_per_request),
        ],
        height: 280.0,
        has_bars: false,
    };
    Plot::of(
        8,
        "processor time per 2xx over payloads",
        "",
        runs_of(cells.iter().copied()),
        chart,
    )
}
