//! The plots of a study: drawings of its numbers.

use hdrhistogram::Histogram;
use linerate_document::chart::{Axis, Chart, LineStyle, Point, SERIES_MAX, Series};
use linerate_document::plot::Plot;
use linerate_model::http::{Cell, Idle, IdleStep, LoadResult, MemoryLine, Study};
use linerate_model::numbers::digits;

use crate::load::distribution;
use crate::report::grid::{Grid, by_payload, median_run, notable, runs_of};
use crate::report::labels::{cell as cell_name, grouped, mega, payload, per_s, time};

/// The plots that have a curve.
pub(super) fn plots(study: &Study) -> Vec<Plot> {
    let plots = [
        throughput(study),
        latency(study),
        over_payloads(study),
        quantiles(study),
        memory(study),
    ];
    plots.into_iter().flatten().collect()
}

/// Throughput with what the network allows.
fn throughput(study: &Study) -> Option<Plot> {
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
fn latency(study: &Study) -> Option<Plot> {
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

/// Points of a curve that are drawn.
const POINTS_MAX: usize = 512;

fn over_payloads(study: &Study) -> Option<Plot> {
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
        Chart::new(axis_of_payloads(&cells), y, 330, series),
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
fn axis_of_payloads(cells: &[&Cell]) -> Axis {
    Axis::log("payload (1k = 1024 bytes)", |bytes| payload(bytes as u64))
        .at(cells.iter().map(|cell| bytes(cell)))
}

fn quantiles(study: &Study) -> Option<Plot> {
    let drawn = |(hue, cell): (usize, &Cell)| {
        let load = median_run(cell)?.load.as_ref()?;
        series(cell_name(&cell.key), hue, load)
    };
    let cells = notable(study).into_iter().enumerate();
    let series = cells.filter_map(drawn).take(SERIES_MAX).collect();
    let title = "latency by quantile of the best stable cells and of those with many connections";
    plot(
        title,
        "one run of each, the middle one by throughput",
        series,
    )
}

/// Latency of one load.
pub(super) fn latency_of(load: &LoadResult) -> Option<Plot> {
    let series = series("latency".to_owned(), 2, load)?;
    plot("Latency by quantile", "one run", vec![series])
}

fn series(name: String, hue: usize, load: &LoadResult) -> Option<Series> {
    let points = curve(&distribution::read(&load.latency.hdr)?);
    Some(Series::new(name, LineStyle::Main, hue, points))
}

fn plot(title: &str, note: &str, series: Vec<Series>) -> Option<Plot> {
    let x = Axis::log("quantile", quantile_text)
        // A place is 1 / (1 - q): each power of ten adds a nine, and 2 is the median.
        .at((0..7).map(|nines| 10_f64.powi(nines)).chain([2.0]));

    Plot::of(
        title,
        "",
        note.to_owned(),
        Chart::new(x, Axis::log("latency", time), 330, series),
    )
}

/// Steps for each nine.
const STEPS: i32 = 8;
/// A quantile needs at least this many values above it.
const VALUES_ABOVE_MIN: f64 = 10.0;

fn curve(histogram: &Histogram<u64>) -> Vec<Point> {
    let last = histogram.len() as f64 / VALUES_ABOVE_MIN;
    let places = (0..=6 * STEPS).map(|step| 10_f64.powf(f64::from(step) / f64::from(STEPS)));
    places
        .take_while(|place| *place <= last)
        .map(|place| {
            // The crate rounds down at the quantile 0 and up at all others.
            let value =
                histogram.highest_equivalent(histogram.value_at_quantile(1.0 - 1.0 / place));
            Point::new(place, value as f64)
        })
        .collect()
}

/// `p99.9` for 1,000.
fn quantile_text(place: f64) -> String {
    let percent = 100.0 * (1.0 - 1.0 / place);
    let digits = (place.log10().ceil() as usize).saturating_sub(2);
    let text = format!("{percent:.digits$}");
    format!("p{text}")
}

/// Value that is taken from a step.
type Figure = fn(&IdleStep) -> Option<u64>;

fn memory(study: &Study) -> Option<Plot> {
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
