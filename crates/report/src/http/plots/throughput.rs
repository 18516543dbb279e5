//! Plot 1: throughput over connections, with what the network allows.

use linerate_model::http::{Cell, Study};

use crate::document::chart::{Axis, Chart, LineStyle, Point, SERIES_MAX, Series};
use crate::document::plot::Plot;
use crate::http::grid::{Grid, runs_of};
use crate::http::numbers::{mega, payload};

pub(super) fn throughput(study: &Study) -> Option<Plot> {
    let grid = Grid::new(study);
    let payloads = grid.payloads();
    let mut series = Vec::new();
    for (hue, bytes) in payloads.iter().copied().take(SERIES_MAX).enumerate() {
        series.push(Series {
            name: payload(bytes),
            line_style: LineStyle::Main,
            hue,
            points: grid.cells_of(bytes).filter_map(|cell| measured(&grid, cell)).collect(),
        });
        series.push(Series {
            name: format!("{} X_net", payload(bytes)),
            line_style: LineStyle::Limit,
            hue,
            points: grid.cells_of(bytes).filter_map(allowed).collect(),
        });
    }
    let chart = Chart {
        name: "",
        x: connections(&grid),
        y: Axis::linear("payload MB/s (10^6 B/s)", |rate| format!("{} MB/s", mega(rate))),
        series,
        height: 330.0,
        has_bars: false,
    };
    Plot::of(
        1,
        "payload throughput over connections",
        "ringed: best stable; dashed: what the network allows, X_net; ",
        note(&grid),
        chart,
    )
}

fn measured(grid: &Grid<'_>, cell: &Cell) -> Option<Point> {
    Some(Point {
        is_marked: grid.is_best_stable(cell),
        ..Point::new(x(cell), cell.median.payload_bytes_per_s?)
    })
}

fn allowed(cell: &Cell) -> Option<Point> {
    Some(Point::new(x(cell), cell.ceiling_per_s? * cell.key.payload_bytes as f64))
}

/// The number of connections as a place on an axis.
pub(super) fn x(cell: &Cell) -> f64 {
    f64::from(cell.key.connections)
}

/// An axis of the connections that were run, by ratio.
pub(super) fn connections(grid: &Grid<'_>) -> Axis {
    Axis::log("connections", |c| format!("c{c:.0}")).at(grid.connections().into_iter().map(f64::from))
}

/// Over how many runs, and whether something is left out.
pub(super) fn note(grid: &Grid<'_>) -> String {
    let payloads = grid.payloads().len();
    let left_out = if payloads > SERIES_MAX {
        format!("; the first {SERIES_MAX} of {payloads} payloads")
    } else {
        String::new()
    };
    format!("{}{left_out}", runs_of(grid.all()))
}
