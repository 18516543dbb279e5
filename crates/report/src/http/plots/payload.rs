//! Plot 3: requests per second over payloads, under what the network and the server's CPUs allow.

use linerate_model::http::{Cell, Study};

use crate::document::chart::{Axis, Chart, LineStyle, Point, Series};
use crate::document::plot::Plot;
use crate::http::grid::{by_payload, runs_of};
use crate::http::numbers::{payload as payload_name, per_s};

pub(super) fn payload(study: &Study) -> Option<Plot> {
    let cells = by_payload(study);
    let cpus = study.server.as_ref().and_then(|server| server.cpus);
    let series = |name: &str, line_style, hue, value: &dyn Fn(&Cell) -> Option<f64>| Series {
        name: name.to_owned(),
        line_style,
        hue,
        points: cells
            .iter()
            .filter_map(|cell| Some(Point::new(bytes(cell), value(cell)?)))
            .collect(),
    };
    let by_cpu = |cell: &Cell| {
        let each = cell.median.server_cpu_ns_per_request.filter(|ns| *ns > 0.0)?;
        Some(f64::from(cpus?) * 1e9 / each)
    };
    let chart = Chart {
        name: "",
        x: payloads(&cells),
        y: Axis::log("2xx per second", |rate| format!("{}/s", per_s(rate))),
        series: vec![
            series("measured", LineStyle::Main, 0, &|cell| cell.median.ok_per_s),
            network(study)
                .unwrap_or_else(|| series("network (X_net)", LineStyle::Limit, 1, &|cell| cell.ceiling_per_s)),
            series("server's processors", LineStyle::Limit, 2, &by_cpu),
        ],
        height: 330.0,
        has_bars: false,
    };
    Plot::of(
        3,
        "2xx per second over payloads",
        "dashed: what the network allows (X_net), and what the server's processors would at the measured time per answer; ",
        runs_of(cells.iter().copied()),
        chart,
    )
}

/// The curve of what the network allows, where the study has it.
fn network(study: &Study) -> Option<Series> {
    let points = study.ceiling.iter();
    let points = points.map(|point| Point::new(point.payload_bytes as f64, point.responses_per_s));
    (!study.ceiling.is_empty()).then(|| Series {
        name: "network (X_net)".to_owned(),
        line_style: LineStyle::Limit,
        hue: 1,
        points: points.take(POINTS_MAX).collect(),
    })
}

/// Points of a curve that are drawn.
const POINTS_MAX: usize = 512;

/// The payload as a place on an axis.
pub(super) fn bytes(cell: &Cell) -> f64 {
    cell.key.payload_bytes as f64
}

/// An axis of the payloads that were run, by ratio. One of no bytes has no place there.
pub(super) fn payloads(cells: &[&Cell]) -> Axis {
    Axis::log("payload (1k = 1024 bytes)", |bytes| payload_name(bytes as u64)).at(cells.iter().map(|cell| bytes(cell)))
}
