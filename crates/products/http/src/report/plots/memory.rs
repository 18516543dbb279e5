//! Memory over idle connections with the fitted lines.

use linerate_document::chart::{Axis, Chart, LineStyle, Point, Series};
use linerate_document::plot::Plot;
use linerate_model::http::{Idle, IdleStep, MemoryLine, Study};
use linerate_model::numbers::digits;

use crate::report::numbers::grouped;

/// Value that is taken from a step.
type Figure = fn(&IdleStep) -> Option<u64>;

pub(super) fn memory(study: &Study) -> Option<Plot> {
    let idle = study.idle.as_ref()?;
    let most = idle.steps.iter().map(|step| step.open).max()?;
    let mut series = Vec::new();

    let rows: [(&str, Figure, Option<MemoryLine>); 3] = [
        (
            "server program",
            |step| step.server_rss_bytes,
            idle.server_user,
        ),
        (
            "server kernel",
            |step| step.server_kernel_bytes,
            idle.server_kernel,
        ),
        (
            "client program",
            |step| step.client_rss_bytes,
            idle.client_user,
        ),
    ];
    for (hue, (name, figure, line)) in rows.into_iter().enumerate() {
        series.push(Series::new(
            name,
            LineStyle::Main,
            hue,
            measured(idle, figure),
        ));
        let name = format!("{name}, fitted");
        series
            .extend(line.map(|line| Series::new(name, LineStyle::Limit, hue, fitted(line, most))));
    }

    let x = Axis::linear("open connections", |c| grouped(c.max(0.0) as u64));
    let y = Axis::linear("memory in MiB", |mebibytes| {
        format!("{} MiB", digits(mebibytes))
    });
    let runs = "one run of each step".to_owned();
    let chart = Chart::new(x, y, 300, series);

    Plot::of(
        "memory over idle connections",
        "dashed: fitted line; ",
        runs,
        chart,
    )
}

fn measured(idle: &Idle, figure: Figure) -> Vec<Point> {
    let point = |step: &IdleStep| {
        Some(Point::new(
            step.open as f64,
            mebibytes(figure(step)? as f64),
        ))
    };
    idle.steps.iter().filter_map(point).collect()
}

fn fitted(line: MemoryLine, most: u64) -> Vec<Point> {
    let point = |c: f64| {
        Point::new(
            c,
            mebibytes(line.base_bytes + line.bytes_per_connection * c),
        )
    };
    vec![point(0.0), point(most as f64)]
}

/// Round numbers at an axis are round in its own unit.
fn mebibytes(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}
