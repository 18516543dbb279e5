//! Plot 6: a run over time, as drawings above each other with one time axis.

use linerate_model::http::{CellRun, EndpointSecond, EndpointStats, LoadResult, Second, Study};

use crate::document::chart::{Axis, Chart, LineStyle, Point, Series};
use crate::document::plot::Plot;
use crate::http::grid::{median_run, notable};
use crate::http::numbers::{cell as cell_name, per_s, percent, time as time_text};
use crate::numbers::rate;

/// Runs that are drawn.
const RUNS_MAX: usize = 6;
/// Points of a line; longer runs are thinned.
const POINTS_MAX: usize = 400;

pub(super) fn time(study: &Study) -> Vec<Plot> {
    let runs = notable(study).into_iter().filter_map(median_run).take(RUNS_MAX);
    runs.filter_map(plot).collect()
}

fn plot(run: &CellRun) -> Option<Plot> {
    let load = run.load.as_ref()?;
    let ok = load_line(load, |second| Some(second.ok as f64));
    let p99 = load_line(load, |second| second.p99_ns.map(|ns| ns as f64));
    let wire = both(run, |second| second.wire_bps);
    let cpu = both(run, |second| second.busiest_cpu_busy);
    let length_s = load.seconds.len() as f64;
    let charts = [
        panel(length_s, "2xx", Axis::linear("2xx/s", |value| format!("{}/s", per_s(value))), one(ok)),
        panel(length_s, "p99", Axis::log("p99", time_text), one(p99)),
        panel(length_s, "wire", Axis::linear("wire", rate), wire),
        panel(length_s, "busiest core", Axis::linear("busiest core", percent), cpu),
    ];
    let charts: Vec<Chart> = charts.into_iter().flatten().collect();
    (!charts.is_empty()).then(|| Plot {
        number: Some(6),
        title: format!("{} over time", cell_name(&run.key)),
        key: "",
        note: format!("run {}, whose first {} s are warm-up", run.repeat, load.warmup_seconds),
        charts,
    })
}

fn panel(length_s: f64, name: &'static str, y: Axis, series: Vec<Series>) -> Option<Chart> {
    let x = Axis::linear("seconds since the start of the warm-up", |s| format!("{s:.0} s")).to(length_s);
    Chart { name, ..Chart::new(x, y, 150.0, series) }.checked()
}

fn one(points: Vec<Point>) -> Vec<Series> {
    vec![Series::new("generator", LineStyle::Main, 0, points)]
}

fn load_line(load: &LoadResult, value: impl Fn(&Second) -> Option<f64>) -> Vec<Point> {
    line(load.seconds.iter().map(value), load.seconds.len())
}

/// A line for each end that was seen.
fn both(run: &CellRun, value: fn(&EndpointSecond) -> Option<f64>) -> Vec<Series> {
    let of = |side: &EndpointStats| line(side.seconds.iter().map(value), side.seconds.len());
    let server = run.server.as_ref().map(|server| Series::new("server", LineStyle::Main, 1, of(server)));
    std::iter::once(Series::new("client", LineStyle::Main, 0, of(&run.client))).chain(server).collect()
}

fn line(values: impl Iterator<Item = Option<f64>>, number: usize) -> Vec<Point> {
    let step = number.div_ceil(POINTS_MAX).max(1);
    let points = values.enumerate().step_by(step);
    // A value is of the second that ends there.
    points.filter_map(|(second, value)| Some(Point::new((second + 1) as f64, value?))).collect()
}
