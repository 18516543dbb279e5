//! Charts of a path: goodput, round-trip time and lost probes of all phases on one time axis, and the
//! distributions of the round-trip times.

use linerate_document::boxes::{BoxRow, Boxes, ends};
use linerate_document::chart::{
    Axis, Chart, LineStyle, Point, Series, ShadedRange, bounds, from_zero,
};
use linerate_document::number::{known, percent, time};
use linerate_document::plot::Plot;
use linerate_model::numbers::rate;
use linerate_model::path::{Delay, IdleDelays, LoadPhase, LoadSample, PathDirection, PathReport};

use super::wording;

/// Colours of the directions and of the delays.
const HUE_DOWN: usize = 0;
const HUE_UP: usize = 1;
const HUE_DELAY: usize = 2;
const HUE_IDLE: usize = 3;
const HUE_LOST: usize = 4;

/// Between two phases.
const PAUSE_SHARE: f64 = 0.01;

/// A phase on the time axis.
struct Placed<'a> {
    name: &'static str,
    directions: &'static [PathDirection],
    bytes: &'a [LoadSample],
    round_trips: &'a [(u64, Option<i64>)],
    from_s: f64,
    to_s: f64,
}

impl<'a> Placed<'a> {
    fn of_idle(idle: &'a IdleDelays) -> Self {
        Self {
            name: "idle",
            directions: &[],
            bytes: &[],
            round_trips: &idle.rtt_series,
            from_s: 0.0,
            to_s: 0.0,
        }
    }

    fn of_load(phase: &'a LoadPhase) -> Self {
        Self {
            name: phase.kind.name(),
            directions: phase.kind.load_directions(),
            bytes: &phase.series,
            round_trips: &phase.rtt_series,
            from_s: 0.0,
            to_s: 0.0,
        }
    }

    fn length_s(&self) -> f64 {
        let sample_ns = self.bytes.last().map_or(0, |sample| sample.at_ns);
        let probe_ns = self.round_trips.last().map_or(0, |(at_ns, _)| *at_ns);
        sample_ns.max(probe_ns) as f64 / 1e9
    }

    fn at(&self, ns: u64) -> f64 {
        self.from_s + ns as f64 / 1e9
    }
}

/// The phases one after the other, the first one at 0; `None` where nothing was recorded over time.
fn placed(report: &PathReport) -> Option<Vec<Placed<'_>>> {
    let idle = report.idle.iter().map(Placed::of_idle);
    let loads = report.phases.iter().map(Placed::of_load);
    let mut phases: Vec<Placed<'_>> = idle.chain(loads).collect();
    phases.retain(|phase| phase.length_s() > 0.0);
    let all_s: f64 = phases.iter().map(Placed::length_s).sum();

    let mut from_s = 0.0;
    for phase in &mut phases {
        phase.from_s = from_s;
        phase.to_s = from_s + phase.length_s();
        from_s = phase.to_s + PAUSE_SHARE * all_s;
    }

    (!phases.is_empty()).then_some(phases)
}

/// All phases on one time axis.
pub(super) fn timeline(report: &PathReport) -> Option<Plot> {
    let phases = placed(report)?;
    let end_s = phases.last()?.to_s;
    let idle = report.idle.as_ref().and_then(|idle| idle.rtt);
    let band = |phase: &Placed<'_>| ShadedRange {
        from: phase.from_s,
        to: phase.to_s,
        label: phase.name.to_owned(),
    };
    let panel = |name, y: Axis, height, series: Vec<Series>| {
        let x = Axis::linear("time without pauses", |s| {
            format!("{} s", (s * 1e3).round() / 1e3)
        });
        let chart = Chart {
            name,
            bands: phases.iter().map(band).collect(),
            ..Chart::new(x.between(0.0, end_s), y, height, series)
        };
        chart.checked()
    };

    let delays = delays(&phases, idle, end_s);
    let points = delays.iter().flat_map(|series| &series.points);
    let range = bounds(points.map(|point| point.y));
    let panels = [
        panel(
            "goodput",
            Axis::linear("", from_zero(rate)),
            190,
            goodput(&phases),
        ),
        panel("latency", Axis::of_range("", range, time), 170, delays),
        panel(
            "probes lost per second",
            Axis::linear("", |n| format!("{n:.0}")),
            60,
            lost(&phases),
        ),
    ];
    let charts: Vec<Chart> = panels.into_iter().flatten().collect();

    (!charts.is_empty()).then(|| Plot {
        title: "Over time".to_owned(),
        key: "",
        note: streams(report),
        charts,
    })
}

/// `8 streams per direction`, where all loads have as many.
fn streams(report: &PathReport) -> String {
    let mut counts: Vec<u32> = report.phases.iter().map(|phase| phase.streams).collect();
    counts.sort_unstable();
    counts.dedup();
    match counts.as_slice() {
        [] | [0] => String::new(),
        [one] => format!("{one} streams per direction"),
        [least, .., most] => format!("{least} to {most} streams per direction"),
    }
}

/// Lines that end where their phase does.
fn series(
    name: &str,
    style: LineStyle,
    hue: usize,
    phases: &[Placed<'_>],
    points: impl Fn(&Placed<'_>) -> Vec<Point>,
) -> Series {
    let mut series = Series::new(name, style, hue, phases.iter().flat_map(points));
    series.breaks = phases.iter().map(|phase| phase.to_s).collect();
    series
}

/// The rate over time, by direction.
fn goodput(phases: &[Placed<'_>]) -> Vec<Series> {
    let of = |name: &str, hue, way: PathDirection, bytes: fn(&LoadSample) -> u64| {
        series(name, LineStyle::Main, hue, phases, move |phase| {
            if !phase.directions.contains(&way) {
                return Vec::new();
            }
            let points = rate_points(phase.bytes, bytes);
            points
                .into_iter()
                .map(|point| Point::new(phase.from_s + point.x, point.y))
                .collect()
        })
    };

    vec![
        of("down", HUE_DOWN, PathDirection::Down, |sample| {
            sample.down_bytes
        }),
        of("up", HUE_UP, PathDirection::Up, |sample| sample.up_bytes),
    ]
}

/// Round trips over time, and the median without load.
fn delays(phases: &[Placed<'_>], idle: Option<Delay>, end_s: f64) -> Vec<Series> {
    let measured = series("round trip", LineStyle::Main, HUE_DELAY, phases, |phase| {
        let points = phase.round_trips.iter();
        let points =
            points.filter_map(|(at_ns, ns)| Some(Point::new(phase.at(*at_ns), (*ns)? as f64)));
        points.collect()
    });

    let idle = idle.and_then(|idle| {
        let median = idle.p50_ns? as f64;
        let line = [0.0, end_s].map(|at_s| Point::new(at_s, median));
        let name = format!("idle {}", time(median));
        Some(Series::new(name, LineStyle::Limit, HUE_IDLE, line))
    });
    std::iter::once(measured).chain(idle).collect()
}

/// Probes that were lost in each second of a phase.
fn lost(phases: &[Placed<'_>]) -> Vec<Series> {
    let is_lost = |phase: &Placed<'_>| phase.round_trips.iter().any(|(_, ns)| ns.is_none());
    if !phases.iter().any(is_lost) {
        return Vec::new();
    }

    vec![series("lost", LineStyle::Bars, HUE_LOST, phases, |phase| {
        let seconds = (phase.to_s - phase.from_s).ceil() as u64;
        let count = |second: u64| {
            let lost = phase
                .round_trips
                .iter()
                .filter(|(at_ns, ns)| ns.is_none() && at_ns / 1_000_000_000 == second);
            let middle = phase.from_s + second as f64 + 0.5;
            Point::new(middle.min(phase.to_s), lost.count() as f64)
        };
        (0..seconds).map(count).collect()
    })]
}

/// Round-trip times without load and under each load.
pub(super) fn distributions(report: &PathReport) -> Option<Boxes> {
    let idle = report.idle.as_ref().and_then(|idle| idle.rtt);
    let loads = report
        .phases
        .iter()
        .map(|phase| (phase.kind.name(), phase.rtt));
    let rows = [("idle", idle)].into_iter().chain(loads);
    let row = |(name, delay): (&str, Option<Delay>)| {
        let delay = delay?;
        let median = delay.p50_ns? as f64;
        let high = delay.p99_ns.or(delay.p95_ns).map_or(median, |ns| ns as f64);
        let upper = delay.p95_ns.map_or(high, |ns| ns as f64);
        let low = delay.min_ns.map_or(median, |ns| ns as f64);
        let p99 = known(delay.p99_ns, wording::signed_ns);
        let lost = delay.lost as f64 / (delay.n + delay.lost).max(1) as f64;
        let beside = match delay.p99_ns {
            None if delay.lost > 0 => format!("{} lost", percent(lost)),
            _ => format!("p99 {p99}"),
        };
        Some(BoxRow {
            name: name.to_owned(),
            text: format!("{}, {beside}", time(median)),
            title: format!(
                "least {}\nmedian {}\np95 {}\np99 {p99}\nlargest {}",
                time(low),
                time(median),
                time(upper),
                known(delay.max_ns, wording::signed_ns)
            ),
            hue: if name == "idle" { HUE_IDLE } else { HUE_DELAY },
            median,
            interval: (median, upper),
            whisker: (low, high),
        })
    };
    let rows: Vec<BoxRow> = rows.filter_map(row).collect();

    (!rows.is_empty()).then(|| Boxes {
        title: "Latency".to_owned(),
        note: format!(
            "round trip of {}; box: median to p95; line: least to p99",
            wording::probes_of(report)
        ),
        axis: Axis::of_range("", ends(&rows), time),
        rows,
    })
}

/// Rates of both directions: `down 95.5 Mbit/s`.
pub(super) fn directions(report: &PathReport) -> Vec<String> {
    let of = |name: &str, bps: fn(&LoadPhase) -> Option<f64>| {
        let highest = report.phases.iter().filter_map(bps).reduce(f64::max);
        highest.map(|bps| format!("{name} {}", rate(bps)))
    };
    let ways = [
        of("down", |phase| phase.down_bps),
        of("up", |phase| phase.up_bps),
    ];
    ways.into_iter().flatten().collect()
}

/// Time that a point of the rate covers at least. A receiver that was late for one sample of 100 ms
/// reads the bytes of two in the next one, which is no rate of the path.
const POINT_NS: u64 = 500_000_000;

fn rate_points(samples: &[LoadSample], bytes: fn(&LoadSample) -> u64) -> Vec<Point> {
    let Some((first, rest)) = samples.split_first() else {
        return Vec::new();
    };
    let mut before = first;
    let mut points = Vec::new();

    for (at, after) in rest.iter().enumerate() {
        let ns = after.at_ns.saturating_sub(before.at_ns);
        let is_last = at + 1 == rest.len();
        // A load that is shorter than a point still has one.
        if ns < POINT_NS && !(is_last && points.is_empty() && ns > 0) {
            continue;
        }

        let moved = bytes(after).saturating_sub(bytes(before));
        points.push(Point::new(
            after.at_ns as f64 / 1e9,
            moved as f64 * 8e9 / ns as f64,
        ));
        before = after;
    }

    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_a_late_receiver_read_at_once_are_no_rate_of_the_path() {
        // 100 Mbit/s: 1.25 MB per sample, of which one has nothing and the next one those of both.
        let bytes = |sample: u64| {
            if sample == 13 {
                12 * 1_250_000
            } else {
                sample * 1_250_000
            }
        };
        let sample = |n: u64| LoadSample {
            at_ns: n * 100_000_000,
            down_bytes: bytes(n),
            ..LoadSample::default()
        };
        let samples: Vec<LoadSample> = (0..=40).map(sample).collect();

        let points = rate_points(&samples, |sample| sample.down_bytes);
        assert_eq!(points.len(), 8);
        let highest_bps = points.iter().map(|point| point.y).fold(0.0, f64::max);
        assert!(highest_bps <= 125e6, "{highest_bps}");
    }
}
