//! Charts of a test: panels on one time axis, and its trials.

use linerate_model::measure::Unit;
use linerate_model::record::{RunRecord, Trial, Way};

use super::intervals::{TimeRange, Value, by_interval, merged, streams, sum, values, warm_up_ns};
use super::measures::{self, Values, has_own_trials, value, way};
use crate::chart::{
    Axis, Chart, LineStyle, Point, SERIES_MAX, Series, ShadedRange, bounds, from_zero,
};
use crate::number::percent;
use crate::numbers::{clock, digits, rate};
use crate::plot::Plot;

/// Times from here on are written as `1:23:45`.
const LONG_S: f64 = 600.0;

/// Full minutes or hours, at most nine of them.
fn round_times(first: f64, last: f64) -> Vec<f64> {
    const MINUTES: [u32; 12] = [1, 2, 5, 10, 15, 30, 60, 120, 240, 360, 720, 1440];

    let steps = MINUTES.into_iter().map(|minutes| f64::from(minutes) * 60.0);
    let step = steps
        .into_iter()
        // Nine labels and eight steps between them fit the width of a chart.
        .find(|step| (last - first) / step <= 8.0)
        .unwrap_or((last - first) / 8.0);
    (0..=8)
        .map(|number| ((first / step).ceil() + f64::from(number)) * step)
        .collect()
}

const WAYS: [Way; 2] = [Way::Forward, Way::Reverse];

/// The charts of a run.
pub(super) fn plots(record: &RunRecord, measures: &[Values<'_>], stretch: TimeRange) -> Vec<Plot> {
    let mut plots: Vec<Plot> = match over_settings(measures) {
        _ if has_own_trials(record) => Vec::new(),
        Some(settings) => vec![settings],
        None => over_trials(measures).into_iter().collect(),
    };
    let Some((trial, others)) = shown(record) else {
        return plots;
    };
    let ends = ends(trial, stretch);
    let Some((first, last)) = ends else {
        return plots;
    };
    let warm_up = warm_up_ns(trial) as f64 / 1e9;

    let axis = || {
        if last < LONG_S {
            Axis::linear("time", |s| format!("{} s", (s * 1e3).round() / 1e3)).between(first, last)
        } else {
            Axis::linear("time", clock)
                .at(round_times(first, last))
                .between(first, last)
        }
    };
    let panels = [
        throughput(trial, stretch),
        latency(trial, stretch),
        losses(trial, stretch),
        limits(trial, stretch),
    ];
    let charts = panels
        .into_iter()
        .flatten()
        .filter_map(|(name, y, height, series)| {
            // A part of the time that begins after the warm-up has no band.
            let bands = if warm_up > first {
                vec![ShadedRange {
                    from: first,
                    to: warm_up.min(last),
                    label: "warm-up".to_owned(),
                }]
            } else {
                Vec::new()
            };
            Chart {
                name,
                bands,
                ..Chart::new(axis(), y, height, series)
            }
            .checked()
        });
    let charts: Vec<Chart> = charts.collect();
    if !charts.is_empty() {
        let several = if others > 0 {
            format!("trial {}, the one with the median result", trial.no + 1)
        } else {
            "one trial".to_owned()
        };
        let warm_up = if warm_up > 0.0 {
            "; shaded: warm-up, not in the result"
        } else {
            ""
        };

        plots.insert(
            0,
            Plot {
                title: "Over time".to_owned(),
                key: "",
                note: format!("{several}{warm_up}"),
                charts,
            },
        );
    }

    plots
}

/// The trial with the median result, and the number of the others; with an even number the lower
/// one.
fn shown(record: &RunRecord) -> Option<(&Trial, usize)> {
    let measures = measures::all(record);
    let trials: Vec<&Trial> = measures::counted(record)
        .filter(|trial| !trial.series.is_empty())
        .collect();
    let others = trials.len().checked_sub(1)?;
    let primary = measures::primary(&measures);
    let mut ranked: Vec<_> = primary
        .first()
        .map(|values| values.values.clone())
        .unwrap_or_default();
    ranked.retain(|(trial, ..)| !trial.series.is_empty());
    ranked.sort_by(|a, b| a.1.total_cmp(&b.1));

    let middle = ranked
        .get(ranked.len().saturating_sub(1) / 2)
        .map(|(trial, ..)| *trial);
    Some((middle.or(trials.first().copied())?, others))
}

/// Start of the first and end of the last interval, in s.
fn ends(trial: &Trial, stretch: TimeRange) -> Option<(f64, f64)> {
    let all = trial.series.iter().map(|series| values(series, stretch));
    let ends = all.filter_map(|values| Some((values.first()?.from_ns, values.last()?.to_ns)));
    let (from, to) = ends.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))?;
    (from < to).then_some((from as f64 / 1e9, to as f64 / 1e9))
}

/// A chart before it has its time axis: name, vertical axis, height and series.
type Panel = (&'static str, Axis, u32, Vec<Series>);

fn points(values: &[Value], y: impl Fn(&Value) -> f64) -> Vec<Point> {
    values
        .iter()
        .map(|value| Point::new(value.at_s(), y(value)))
        .collect()
}

/// `up, stream 3`
fn stream_name(direction: Way, number: u32) -> String {
    match direction {
        Way::Reverse => format!("stream {number}, to client"),
        _ => format!("stream {number}"),
    }
}

fn bits(value: &Value) -> f64 {
    value.per_s() * 8.0
}

/// The sum of each direction, and its streams where they are few; of many, from the slowest to the
/// fastest.
fn throughput(trial: &Trial, stretch: TimeRange) -> Option<Panel> {
    let mut series = Vec::new();
    for (hue, direction) in WAYS.into_iter().enumerate() {
        let all = sum(trial, "bytes", direction, stretch);
        let streams = streams(trial, "bytes", direction, stretch);
        series.push(Series::new(
            way(direction),
            LineStyle::Main,
            hue,
            points(&all, bits),
        ));

        // Both directions share the series of one drawing.
        if streams.len() > SERIES_MAX / 2 {
            let count = streams.len();
            let ends = spread(&streams, bits).into_iter();
            let range = ends.map(|(at_s, low, high)| Point {
                interval: Some((low, high)),
                ..Point::new(at_s, high)
            });
            series.push(Series::new(
                format!("{count} streams, range"),
                LineStyle::Area,
                hue + 2,
                range,
            ));
        } else if streams.len() > 1 {
            let first = series.len();
            series.extend((first..).zip(&streams).map(|(hue, (number, values))| {
                Series::new(
                    stream_name(direction, *number),
                    LineStyle::Thin,
                    hue,
                    points(values, bits),
                )
            }));
        }
    }

    Some(("throughput", Axis::linear("", from_zero(rate)), 260, series))
}

/// The largest round-trip time of the streams.
fn latency(trial: &Trial, stretch: TimeRange) -> Option<Panel> {
    let mut series = Vec::new();
    for (hue, direction) in WAYS.into_iter().enumerate() {
        let streams = streams(trial, "rtt_us", direction, stretch);
        // The series has us, the axis ns.
        let spread = spread(&streams, |value| value.value * 1e3);

        let name = if streams.len() > 1 {
            "highest of the streams"
        } else {
            "round trip"
        };
        let high = spread
            .iter()
            .map(|(at_s, _, high)| Point::new(*at_s, *high));
        series.push(Series::new(
            format!("{name}{}", suffix(direction)),
            LineStyle::Main,
            hue,
            high,
        ));

        if streams.len() > 1 {
            let low = spread.iter().map(|(at_s, low, _)| Point::new(*at_s, *low));
            series.push(Series::new(
                format!("lowest{}", suffix(direction)),
                LineStyle::Thin,
                hue + 2,
                low,
            ));
        }
    }

    Some((
        "round-trip time under load",
        Axis::linear("", from_zero(|ns| Unit::Nanoseconds.text(ns))),
        180,
        series,
    ))
}

fn suffix(direction: Way) -> &'static str {
    if direction == Way::Reverse {
        ", to client"
    } else {
        ""
    }
}

/// Time, lowest and highest value of the streams at each end of an interval; 0 is no value.
fn spread(streams: &[(u32, Vec<Value>)], figure: impl Fn(&Value) -> f64) -> Vec<(f64, f64, f64)> {
    let range = |values: Vec<Value>| {
        let ranges = values.iter().map(&figure).map(|value| (value, value));
        let (low, high) = ranges.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))?;
        Some((values.last()?.at_s(), low, high))
    };
    by_interval(streams).into_iter().filter_map(range).collect()
}

/// Retransmitted segments, or lost datagrams.
fn losses(trial: &Trial, stretch: TimeRange) -> Option<Panel> {
    let of = |name: &str, word: &str| {
        let series = WAYS.into_iter().enumerate().filter_map(|(hue, direction)| {
            let values = sum(trial, name, direction, stretch);
            let name = format!("{word}{}", suffix(direction));
            (!values.is_empty()).then(|| {
                Series::new(
                    name,
                    LineStyle::Bars,
                    hue,
                    points(&values, |value| value.value),
                )
            })
        });
        series.collect::<Vec<_>>()
    };
    let count = |value: f64| {
        if value.fract() == 0.0 {
            format!("{value:.0}")
        } else {
            digits(value)
        }
    };

    let (name, series) = match of("lost", "lost") {
        lost if lost.is_empty() => ("retransmitted segments", of("retransmits", "retransmitted")),
        lost => ("lost datagrams", lost),
    };
    Some((name, Axis::linear("", count), 150, series))
}

/// Shares of the time in which the kernel names what kept TCP from sending (tcp_info of the
/// sender). What is neither limited by a window nor by a buffer waits for the network; what is not
/// busy waits for the application.
fn limits(trial: &Trial, stretch: TimeRange) -> Option<Panel> {
    let direction = WAYS
        .into_iter()
        .find(|way| !streams(trial, "limits.busy_us", *way, stretch).is_empty())?;
    let total = |name: &str| merged(&sum(trial, name, direction, stretch));

    let [busy, window, buffer] = [
        "limits.busy_us",
        "limits.rwnd_limited_us",
        "limits.sndbuf_limited_us",
    ]
    .map(total);
    let count = streams(trial, "limits.busy_us", direction, stretch).len() as f64;
    let names = ["network", "receive window", "send buffer", "application"];
    let mut shares: [Vec<Point>; 4] = Default::default();

    for (at, busy) in busy.iter().enumerate() {
        // The counters of all streams are added: each has the whole interval.
        let time_us = busy.to_ns.saturating_sub(busy.from_ns).max(1) as f64 / 1e3 * count;
        let of = |values: &[Value]| values.get(at).map_or(0.0, |value| value.value);
        let share = |us: f64| (us / time_us).clamp(0.0, 1.0);
        let window = share(of(&window));
        let buffer = share(of(&buffer));
        let busy_share = share(busy.value);
        // The kernel counts the time at both limits as busy (tcp_get_info_chrono_stats).
        let network = (busy_share - window - buffer).max(0.0);
        let mut below = 0.0;

        for (points, part) in shares
            .iter_mut()
            .zip([network, window, buffer, 1.0 - busy_share])
        {
            let top = (below + part).min(1.0);
            points.push(Point {
                interval: Some((below, top)),
                ..Point::new(busy.at_s(), part)
            });
            below = top;
        }
    }

    let parts = (0..).zip(names).zip(shares);
    let parts = parts.filter(|(_, points)| points.iter().any(|point| point.y > 0.0));
    let series = parts
        .map(|((hue, name), points)| Series::new(name, LineStyle::Area, hue, points))
        .collect();

    Some((
        "what the sender waited for",
        Axis::linear("share of time", percent).between(0.0, 1.0),
        180,
        series,
    ))
}

/// The result of every trial as a dot, with the median and its interval.
fn over_trials(measures: &[Values<'_>]) -> Option<Plot> {
    let primary = measures::primary(measures);
    let first = primary.first().filter(|values| values.values.len() > 1)?;
    let info = first.info;
    let last = first.values.iter().map(|(trial, ..)| trial.no + 1).max()?;
    let results = primary.iter().flat_map(|values| &values.values);
    let (low, high) = bounds(results.map(|(_, value, _)| *value));
    let mut series = Vec::new();

    for (hue, values) in primary.iter().enumerate() {
        let dots = values
            .values
            .iter()
            .map(|(trial, value, _)| Point::new(f64::from(trial.no + 1), *value));
        let name = match way(values.way) {
            "" => "trial".to_owned(),
            way => way.to_owned(),
        };
        series.push(Series::new(name, LineStyle::Dots, hue, dots));
        let median = values.median()?;
        let (low, high, what) = values.interval()?;
        let level = |y: f64| [Point::new(0.5, y), Point::new(f64::from(last) + 0.5, y)];
        series.push(Series::new("median", LineStyle::Limit, hue, level(median)));

        let area = level(high).map(|point| Point {
            interval: Some((low, high)),
            ..point
        });
        // A narrow drawing has no room for more.
        let name = what.replace("lowest to highest", "range");
        series.push(Series::new(name, LineStyle::Shade, hue, area));
    }

    // Equal values need room around them as well: an axis has a length.
    let air = ((high - low) * 0.5).max(high.abs() * 0.005);
    let y = Axis::linear(info.words(), move |number| value(&info, number))
        .between((low - air).max(0.0), high + air);
    let x = Axis::linear("trial", |number| format!("{number:.0}"))
        .at((1..=last).map(f64::from))
        .between(0.5, f64::from(last) + 0.5);
    let chart = Chart::new(x, y, 220, series).checked()?;
    let note = "the axis does not begin at 0".to_owned();

    Some(Plot {
        title: "Trials".to_owned(),
        key: "",
        note,
        charts: vec![chart],
    })
}

/// The result of each of several runs, in their order, by direction; none where they measured
/// different things.
pub(super) fn over_runs(records: &[RunRecord]) -> Option<Plot> {
    let all: Vec<Vec<Values<'_>>> = records.iter().map(measures::all).collect();
    let info = measures::primary(all.first()?).first()?.info;
    let of_way = |way: Way| {
        let point = |(at, measures): (usize, &Vec<Values<'_>>)| {
            let values = measures::primary(measures)
                .into_iter()
                .find(|values| values.way == way && values.info.measure == info.measure)?;
            Some(Point::new(at as f64 + 1.0, values.median()?))
        };
        all.iter().enumerate().filter_map(point).collect::<Vec<_>>()
    };
    let ways = [Way::Forward, Way::Reverse, Way::Sum];
    let series = ways.into_iter().enumerate().map(|(hue, direction)| {
        let name = match way(direction) {
            "" => "all",
            name => name,
        };
        Series::new(name, LineStyle::Dots, hue, of_way(direction))
    });

    let names = records.iter().map(|record| record.run_id.short());
    let x = Axis::of_names("run", names.collect());
    let y = Axis::linear(info.words(), from_zero(move |number| value(&info, number)));
    let chart = Chart::new(x, y, 200, series.collect()).checked()?;
    Some(Plot {
        title: "Runs".to_owned(),
        key: "",
        note: "the median of each run".to_owned(),
        charts: vec![chart],
    })
}

/// The median of each setting of a run with several, and the range of its trials.
fn over_settings(measures: &[Values<'_>]) -> Option<Plot> {
    let values = measures::primary(measures).first().copied()?;
    let settings = values.settings();
    if settings.len() < 2 {
        return None;
    }

    let info = values.info;
    let point = |(at, (_, of)): (u32, &(String, Values<'_>))| {
        let interval = of.interval().map(|(low, high, _)| (low, high));
        Some(Point {
            interval,
            ..Point::new(f64::from(at), of.median()?)
        })
    };
    let points = (1..).zip(&settings).filter_map(point);
    let series = Series::new("median", LineStyle::Dots, 0, points);
    let names: Vec<String> = settings.iter().map(|(name, _)| name.clone()).collect();
    let x = Axis::of_names("setting", names);
    let y = Axis::linear(info.words(), from_zero(move |number| value(&info, number)));
    let chart = Chart {
        has_bars: true,
        ..Chart::new(x, y, 300, vec![series])
    }
    .checked()?;

    let note = "vertical: lowest to highest trial, or 95 % interval of the median".to_owned();
    Some(Plot {
        title: "Settings".to_owned(),
        key: "",
        note,
        charts: vec![chart],
    })
}
