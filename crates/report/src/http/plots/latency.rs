//! Plot 2: latency over connections.

use linerate_model::http::{Cell, Study};

use super::throughput::{connections, note, x};
use crate::document::chart::{Axis, Chart, LineStyle, Point, SERIES_MAX, Series};
use crate::document::plot::Plot;
use crate::http::grid::Grid;
use crate::http::numbers::{payload, time};

pub(super) fn latency(study: &Study) -> Option<Plot> {
    let grid = Grid::new(study);
    let mut series = Vec::new();
    for (hue, bytes) in grid.payloads().into_iter().take(SERIES_MAX).enumerate() {
        series.push(Series {
            name: format!("{} p99", payload(bytes)),
            line_style: LineStyle::Main,
            hue,
            points: grid.cells_of(bytes).filter_map(|cell| high(&grid, cell)).collect(),
        });
        series.push(Series {
            name: format!("{} p50", payload(bytes)),
            line_style: LineStyle::Thin,
            hue,
            points: grid.cells_of(bytes).filter_map(middle).collect(),
        });
    }
    let chart = Chart {
        name: "",
        x: connections(&grid),
        y: Axis::log("latency", time),
        series,
        height: 330.0,
        has_bars: false,
    };
    Plot::of(
        2,
        "latency over connections: 99th percentile and median",
        "thin: median; ringed: where it jumps; ",
        note(&grid),
        chart,
    )
}

fn high(grid: &Grid<'_>, cell: &Cell) -> Option<Point> {
    let row = grid.row(cell.key.payload_bytes);
    let is_cliff = row.is_some_and(|row| row.cliff_connections == Some(cell.key.connections));
    Some(Point {
        label: is_cliff.then(|| "jumps".to_owned()),
        is_marked: is_cliff,
        ..Point::new(x(cell), cell.median.p99_ns? as f64)
    })
}

fn middle(cell: &Cell) -> Option<Point> {
    Some(Point::new(x(cell), cell.median.p50_ns? as f64))
}
