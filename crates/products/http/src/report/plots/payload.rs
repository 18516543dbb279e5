//! Answers per second over payloads, under what the network and the server's CPUs allow.

use linerate_document::chart::{Axis, Chart, LineStyle, Point, Series};
use linerate_document::plot::Plot;
use linerate_model::http::{Cell, Study};

use crate::report::grid::{by_payload, runs_of};
use crate::report::numbers::{payload as payload_name, per_s};

/// Points of a curve that are drawn.
const POINTS_MAX: usize = 512;

pub(super) fn payload(study: &Study) -> Option<Plot> {
    let cells = by_payload(study);
    let cpus = study.server.as_ref().and_then(|server| server.cpus);

    let by_cpu = |cell: &Cell| {
        let each = cell
            .median
            .server_cpu_ns_per_request
            .filter(|ns| *ns > 0.0)?;
        Some(f64::from(cpus?) * 1e9 / each)
    };
    let curve = study.ceiling.iter().take(POINTS_MAX);
    let curve = curve.map(|point| Point::new(point.payload_bytes as f64, point.responses_per_s));
    let network = if study.ceiling.is_empty() {
        points(&cells, |cell| cell.ceiling_per_s)
    } else {
        curve.collect()
    };

    let series = vec![
        Series::new(
            "measured",
            LineStyle::Main,
            0,
            points(&cells, |cell| cell.median.ok_per_s),
        ),
        Series::new("network", LineStyle::Limit, 1, network),
        Series::new("server's CPUs", LineStyle::Limit, 2, points(&cells, by_cpu)),
    ];
    let y = Axis::log("responses/s", |rate| format!("{}/s", per_s(rate)));
    Plot::of(
        "responses/s over payloads",
        "dashed: what the network allows, and what the server's CPUs would at the measured \
         time per answer; ",
        runs_of(cells.iter().copied()),
        Chart::new(payloads(&cells), y, 330, series),
    )
}

fn points(cells: &[&Cell], value: impl Fn(&Cell) -> Option<f64>) -> Vec<Point> {
    let point = |cell: &&Cell| Some(Point::new(bytes(cell), value(cell)?));
    cells.iter().filter_map(point).collect()
}

/// The payload as a place on an axis.
fn bytes(cell: &Cell) -> f64 {
    cell.key.payload_bytes as f64
}

/// An axis of the payloads that were run, by ratio. One of no bytes has no place there.
fn payloads(cells: &[&Cell]) -> Axis {
    Axis::log("payload (1k = 1024 bytes)", |bytes| {
        payload_name(bytes as u64)
    })
    .at(cells.iter().map(|cell| bytes(cell)))
}
