//! The runs over the time before the last one, and the median of each stretch between two changes.

use linerate_document::chart::{Axis, Chart, LineStyle, Point, Series};
use linerate_document::number::counted;
use linerate_document::plot::Plot;
use linerate_model::record::Way;
use linerate_model::stats::median;

use crate::conclude::trend::{Trend, TrendChange};
use crate::report::compare;

const DAY_MS: f64 = 86_400_000.0;

/// The plot; `None` for a trend without a value.
pub(super) fn chart(trend: &Trend) -> Option<Plot> {
    let info = trend.measure.info();
    let time = TimeAxis::new(trend)?;
    let mut series = vec![values(trend, &time), failed(trend, &time)];
    series.extend(medians(trend, &time)?);
    series.extend(changes(trend, &time));

    let x = Axis::linear("time before the last run", move |at| {
        format!("{} {}", (at * 1e3).round() / 1e3, time.unit)
    });
    let y = Axis::linear(info.words(), move |value| info.unit.text(value));
    let chart = Chart::new(x.between(time.start(), 0.0), y, 300, series).checked()?;

    let way = trend.way.and_then(Way::words);
    Some(Plot {
        title: way.map_or_else(|| "Trend".to_owned(), |way| format!("Trend, {way}")),
        key: "",
        note: format!(
            "{}; dashed: median between two changes",
            counted(trend.runs.len(), "run")
        ),
        charts: vec![chart],
    })
}

/// Time before the last run: it is at 0, and the earlier ones are on its left.
#[derive(Clone, Copy)]
struct TimeAxis {
    first_ms: f64,
    last_ms: f64,
    unit_ms: f64,
    unit: &'static str,
}

impl TimeAxis {
    fn new(trend: &Trend) -> Option<Self> {
        let first_ms = trend.runs.first()?.started_unix_ms as f64;
        let last_ms = trend.runs.last()?.started_unix_ms as f64;
        let (unit_ms, unit) = match (last_ms - first_ms) / DAY_MS {
            days if days > 2.0 => (DAY_MS, "d"),
            days if days * 24.0 > 2.0 => (DAY_MS / 24.0, "h"),
            _ => (DAY_MS / 1440.0, "min"),
        };

        Some(Self {
            first_ms,
            last_ms,
            unit_ms,
            unit,
        })
    }

    /// Place of a run, by its index.
    fn place(self, trend: &Trend, run: usize) -> f64 {
        (trend.runs[run].started_unix_ms as f64 - self.last_ms) / self.unit_ms
    }

    /// Left end. One run has no span of time: its axis is a minute long.
    fn start(self) -> f64 {
        if self.last_ms > self.first_ms {
            (self.first_ms - self.last_ms) / self.unit_ms
        } else {
            -1.0
        }
    }
}

/// Index and value of each run with a result.
fn known(trend: &Trend) -> impl Iterator<Item = (usize, f64)> {
    let runs = trend.runs.iter().enumerate();
    runs.filter_map(|(run, found)| Some((run, found.value?)))
}

fn values(trend: &Trend, time: &TimeAxis) -> Series {
    let points = known(trend).map(|(run, value)| Point::new(time.place(trend, run), value));
    Series::new("run", LineStyle::Dots, 0, points)
}

/// Runs without a result have no value: their dots lie at the lowest one.
fn failed(trend: &Trend, time: &TimeAxis) -> Series {
    let lowest = known(trend)
        .map(|(_, value)| value)
        .fold(f64::INFINITY, f64::min);
    let runs = (0..trend.runs.len()).filter(|run| trend.runs[*run].value.is_none());
    let points = runs.map(|run| Point::new(time.place(trend, run), lowest));
    Series::new("no result", LineStyle::Dots, 1, points)
}

/// Median of each stretch between two changes; `None` if a stretch has no value.
fn medians(trend: &Trend, time: &TimeAxis) -> Option<Vec<Series>> {
    let mut starts = vec![0];
    starts.extend(trend.changes.iter().map(|change| change.at));
    let ends = starts[1..].iter().copied().chain([trend.runs.len()]);

    let mut series = Vec::new();
    for (start, end) in starts.iter().copied().zip(ends) {
        let stretch = known(trend).filter(|(run, _)| (start..end).contains(run));
        let values: Vec<f64> = stretch.map(|(_, value)| value).collect();
        let middle = median(&values)?;
        let line = [start, end - 1].map(|run| Point::new(time.place(trend, run), middle));
        // One name is enough for all stretches.
        let name = if end == trend.runs.len() {
            "median"
        } else {
            ""
        };
        series.push(Series::new(name, LineStyle::Limit, 0, line));
    }

    Some(series)
}

/// A flag at each change, with its size and the first difference of configuration.
fn changes(trend: &Trend, time: &TimeAxis) -> Option<Series> {
    let unit = trend.measure.info().unit;
    let flag = |change: &TrendChange| {
        let size = compare::effect(change.is_ratio, change.effect, unit);
        let label = match change.configuration.first() {
            Some(first) => format!("{size}, {}", first.difference.key),
            None => size,
        };
        Point {
            label: Some(label),
            is_marked: true,
            ..Point::new(time.place(trend, change.at), change.after)
        }
    };

    let flags = trend.changes.iter().map(flag);
    (!trend.changes.is_empty()).then(|| Series::new("change", LineStyle::Dots, 4, flags))
}
