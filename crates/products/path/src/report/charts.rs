//! Charts of a path: goodput and round-trip time of each load over time.

use linerate_document::chart::{Axis, Chart, LineStyle, Point, Series, from_zero};
use linerate_document::number::time;
use linerate_document::plot::Plot;
use linerate_model::numbers::rate;
use linerate_model::path::{LoadPhase, LoadSample, PathReport, PhaseKind};

/// One plot for each load that was recorded over time.
pub(super) fn plots(report: &PathReport) -> Vec<Plot> {
    let idle_ns = report.idle.as_ref().and_then(|idle| idle.rtt?.p50_ns);
    report
        .phases
        .iter()
        .filter_map(|phase| plot(phase, idle_ns))
        .collect()
}

fn plot(phase: &LoadPhase, idle_ns: Option<i64>) -> Option<Plot> {
    let last = |ns: Option<u64>| ns.map_or(0.0, |ns| ns as f64 / 1e9);
    let samples = last(phase.series.last().map(|sample| sample.at_ns));
    let end_s = samples.max(last(phase.rtt_series.last().map(|(at_ns, _)| *at_ns)));
    let axis =
        || Axis::linear("time", |s| format!("{} s", (s * 1e3).round() / 1e3)).between(0.0, end_s);
    let chart = |name, y: Axis, height, series| {
        Chart {
            name,
            ..Chart::new(axis(), y, height, series)
        }
        .checked()
    };
    let charts = [
        chart(
            "goodput",
            Axis::linear("", from_zero(rate)),
            260,
            goodput(phase),
        ),
        chart(
            "round-trip time",
            Axis::linear("", from_zero(time)),
            200,
            round_trips(phase, idle_ns, end_s),
        ),
    ];
    let charts: Vec<Chart> = charts.into_iter().flatten().collect();

    let lost = phase
        .rtt_series
        .iter()
        .filter(|(_, ns)| ns.is_none())
        .count();
    let note = match lost {
        0 => format!("{} streams per direction", phase.streams),
        _ => format!(
            "{} streams per direction; {lost} probes lost",
            phase.streams
        ),
    };

    let title = format!("Load {} over time", phase.kind.name());
    (!charts.is_empty() && end_s > 0.0).then(|| Plot {
        title,
        key: "",
        note,
        charts,
    })
}

/// Time that a point of the rate covers at least. A receiver that was late for one sample of 100 ms
/// reads the bytes of two in the next one, which is no rate of the path.
const POINT_NS: u64 = 500_000_000;

/// The rate over time, by direction.
fn goodput(phase: &LoadPhase) -> Vec<Series> {
    let of = |name: &str, hue: usize, bytes: fn(&LoadSample) -> u64| {
        Series::new(
            name,
            LineStyle::Main,
            hue,
            rate_points(&phase.series, bytes),
        )
    };
    let down = || of("down", 0, |sample| sample.down_bytes);
    let up = || of("up", 1, |sample| sample.up_bytes);

    match phase.kind {
        PhaseKind::Down => vec![down()],
        PhaseKind::Up => vec![up()],
        _ => vec![down(), up()],
    }
}

fn rate_points(samples: &[LoadSample], bytes: fn(&LoadSample) -> u64) -> Vec<Point> {
    let Some((first, rest)) = samples.split_first() else {
        return Vec::new();
    };
    let (mut before, mut points) = (first, Vec::new());

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

fn round_trips(phase: &LoadPhase, idle_ns: Option<i64>, end_s: f64) -> Vec<Series> {
    let points = phase.rtt_series.iter();
    let points =
        points.filter_map(|(at_ns, ns)| Some(Point::new(*at_ns as f64 / 1e9, (*ns)? as f64)));
    let mut series = vec![Series::new("under load", LineStyle::Main, 2, points)];
    series.extend(idle_ns.map(|ns| {
        let ends = [0.0, end_s].map(|at_s| Point::new(at_s, ns as f64));
        Series::new("median without load", LineStyle::Limit, 3, ends)
    }));

    series
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
