//! Plots of the matrix: throughput and latency over connections.

use linerate_document::chart::{Axis, Chart, LineStyle, Point, SERIES_MAX, Series};
use linerate_document::plot::Plot;
use linerate_model::http::{Cell, Study};

use crate::report::grid::{Grid, runs_of};
use crate::report::numbers::{mega, payload, time};

/// Throughput with what the network allows.
pub(super) fn throughput(study: &Study) -> Option<Plot> {
    let grid = Grid::new(study);
    let measured = |cell: &Cell| {
        Some(Point {
            is_marked: grid.is_best_stable(cell),
            ..Point::new(x(cell), cell.median.payload_bytes_per_s?)
        })
    };

    let allowed = |cell: &Cell| {
        Some(Point::new(
            x(cell),
            cell.ceiling_per_s? * cell.key.payload_bytes as f64,
        ))
    };
    let series = payloads(&grid).flat_map(|(hue, bytes)| {
        let cells = || grid.cells_of(bytes);
        let name = payload(bytes);
        let limit = format!("{name} network");
        [
            Series::new(name, LineStyle::Main, hue, cells().filter_map(measured)),
            Series::new(limit, LineStyle::Limit, hue, cells().filter_map(allowed)),
        ]
    });

    let rate = Axis::linear("payload MB/s (10^6 B/s)", |rate| {
        format!("{} MB/s", mega(rate))
    });
    let chart = Chart::new(connections(&grid), rate, 330, series.collect());
    let key = "circle: highest stable throughput; dashed: what the network allows; ";

    Plot::of(
        "payload throughput over connections",
        key,
        note(&grid),
        chart,
    )
}

/// 99th percentile and median.
pub(super) fn latency(study: &Study) -> Option<Plot> {
    let grid = Grid::new(study);
    let high = |cell: &Cell| {
        let row = grid.row(cell.key.payload_bytes);
        let is_cliff = row.is_some_and(|row| row.cliff_connections == Some(cell.key.connections));
        Some(Point {
            label: is_cliff.then(|| "knee".to_owned()),
            is_marked: is_cliff,
            ..Point::new(x(cell), cell.median.p99_ns? as f64)
        })
    };

    let middle = |cell: &Cell| Some(Point::new(x(cell), cell.median.p50_ns? as f64));
    let series = payloads(&grid).flat_map(|(hue, bytes)| {
        let cells = || grid.cells_of(bytes);
        let name = |quantile: &str| format!("{} {quantile}", payload(bytes));
        [
            Series::new(name("p99"), LineStyle::Main, hue, cells().filter_map(high)),
            Series::new(
                name("p50"),
                LineStyle::Thin,
                hue,
                cells().filter_map(middle),
            ),
        ]
    });

    let chart = Chart::new(
        connections(&grid),
        Axis::log("latency", time),
        330,
        series.collect(),
    );
    let title = "latency over connections: 99th percentile and median";
    Plot::of(
        title,
        "thin: median; circle: knee of the 99th percentile; ",
        note(&grid),
        chart,
    )
}

/// The payloads that are drawn, each with its hue.
fn payloads(grid: &Grid<'_>) -> impl Iterator<Item = (usize, u64)> + use<> {
    grid.payloads().into_iter().take(SERIES_MAX).enumerate()
}

/// The number of connections as a place on an axis.
fn x(cell: &Cell) -> f64 {
    f64::from(cell.key.connections)
}

/// An axis of the connections that were run, by ratio.
fn connections(grid: &Grid<'_>) -> Axis {
    Axis::log("connections", |c| format!("c{c:.0}"))
        .at(grid.connections().into_iter().map(f64::from))
}

/// Over how many runs, and whether something is left out.
fn note(grid: &Grid<'_>) -> String {
    let payloads = grid.payloads().len();
    let left_out = if payloads > SERIES_MAX {
        format!("; the first {SERIES_MAX} of {payloads} payloads")
    } else {
        String::new()
    };
    format!("{}{left_out}", runs_of(grid.all()))
}
