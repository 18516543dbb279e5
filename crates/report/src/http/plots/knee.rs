//! Plot 7: latency over throughput; where a curve turns up is where more connections stop to pay.

use linerate_model::http::{Cell, Study};

use super::throughput::note;
use crate::document::chart::{Axis, Chart, LineStyle, Point, SERIES_MAX, Series};
use crate::document::plot::Plot;
use crate::http::grid::Grid;
use crate::http::numbers::{mega, payload, time};

pub(super) fn knee(study: &Study) -> Option<Plot> {
    let grid = Grid::new(study);
    let point = |cell: &Cell| {
        Some(Point {
            label: Some(format!("c{}", cell.key.connections)),
            is_marked: grid.is_best_stable(cell),
            ..Point::new(cell.median.payload_bytes_per_s?, cell.median.p99_ns? as f64)
        })
    };
    let series = |(hue, bytes): (usize, u64)| Series {
        name: payload(bytes),
        line_style: LineStyle::Main,
        hue,
        points: grid.cells_of(bytes).filter_map(point).collect(),
    };
    let chart = Chart {
        name: "",
        x: Axis::linear("payload MB/s (10^6 B/s)", |rate| format!("{} MB/s", mega(rate))),
        y: Axis::log("99th percentile", time),
        series: grid
            .payloads()
            .into_iter()
            .take(SERIES_MAX)
            .enumerate()
            .map(series)
            .collect(),
        height: 380.0,
        has_bars: false,
    };
    Plot::of(
        7,
        "99th percentile of the latency over throughput, by connections",
        "ringed: best stable; ",
        note(&grid),
        chart,
    )
}
