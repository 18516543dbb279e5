//! Latency by quantile, on an axis on which each nine is as wide as the one before.

use hdrhistogram::Histogram;
use linerate_document::chart::{Axis, Chart, LineStyle, Point, SERIES_MAX, Series};
use linerate_document::plot::Plot;
use linerate_model::http::{Cell, LoadResult, Study};

use crate::hdr;
use crate::report::grid::{median_run, notable};
use crate::report::numbers::{cell as cell_name, time};

pub(super) fn quantiles(study: &Study) -> Option<Plot> {
    let curve = |(hue, cell): (usize, &Cell)| {
        let load = median_run(cell)?.load.as_ref()?;
        series(cell_name(&cell.key), hue, load)
    };
    let cells = notable(study).into_iter().enumerate();
    let series = cells.filter_map(curve).take(SERIES_MAX).collect();
    let title = "latency by quantile of the best stable cells and of those with many connections";
    plot(
        title,
        "one run of each, the middle one by throughput",
        series,
    )
}

/// Latency of one load.
pub(in crate::report) fn latency_of(load: &LoadResult) -> Option<Plot> {
    let series = series("latency".to_owned(), 2, load)?;
    plot("Latency by quantile", "one run", vec![series])
}

fn series(name: String, hue: usize, load: &LoadResult) -> Option<Series> {
    let points = points(&hdr::read(&load.latency.hdr)?);
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

fn points(histogram: &Histogram<u64>) -> Vec<Point> {
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
