//! Charts of a path: goodput and round-trip time of each load over time.

use linerate_model::path::{LoadPhase, LoadSample, PathReport, PhaseKind};

use super::terms;
use crate::document::chart::{Axis, Chart, LineStyle, Point, Series, from_zero};
use crate::document::plot::Plot;
use crate::http::numbers::time;
use crate::numbers::rate;

/// One plot for each load that was recorded over time.
pub(super) fn plots(report: &PathReport) -> Vec<Plot> {
    let idle_ns = report.idle.as_ref().and_then(|idle| idle.rtt?.p50_ns);
    report.phases.iter().filter_map(|phase| plot(phase, idle_ns)).collect()
}

fn plot(phase: &LoadPhase, idle_ns: Option<i64>) -> Option<Plot> {
    let last = |ns: Option<u64>| ns.map_or(0.0, |ns| ns as f64 / 1e9);
    let samples = last(phase.series.last().map(|sample| sample.at_ns));
    let end_s = samples.max(last(phase.rtt_series.last().map(|(at_ns, _)| *at_ns)));
    let axis = || Axis::linear("time", |s| format!("{} s", (s * 1e3).round() / 1e3)).between(0.0, end_s);
    let chart = |name, y: Axis, height, series| Chart { name, ..Chart::new(axis(), y, height, series) }.checked();
    let charts = [
        chart("goodput", Axis::linear("", from_zero(rate)), 260, goodput(phase)),
        chart("round-trip time", Axis::linear("", from_zero(time)), 200, round_trips(phase, idle_ns, end_s)),
    ];
    let charts: Vec<Chart> = charts.into_iter().flatten().collect();
    let lost = phase.rtt_series.iter().filter(|(_, ns)| ns.is_none()).count();
    let note = match lost {
        0 => format!("{} streams per direction", phase.streams),
        _ => format!("{} streams per direction; {lost} probes lost", phase.streams),
    };
    let title = format!("Load {} over time", terms::phase(phase.kind));
    (!charts.is_empty() && end_s > 0.0).then(|| Plot { title, key: "", note, charts })
}

/// The rate between each two samples, by direction.
fn goodput(phase: &LoadPhase) -> Vec<Series> {
    let of = |name: &str, hue: usize, bytes: fn(&LoadSample) -> u64| {
        let points = phase.series.windows(2).filter_map(|pair| {
            let [before, after] = pair else { return None };
            let ns = after.at_ns.checked_sub(before.at_ns).filter(|ns| *ns > 0)?;
            let moved = bytes(after).saturating_sub(bytes(before));
            Some(Point::new(after.at_ns as f64 / 1e9, moved as f64 * 8e9 / ns as f64))
        });
        Series::new(name, LineStyle::Main, hue, points)
    };
    let down = || of("down", 0, |sample| sample.down_bytes);
    let up = || of("up", 1, |sample| sample.up_bytes);
    match phase.kind {
        PhaseKind::Down => vec![down()],
        PhaseKind::Up => vec![up()],
        _ => vec![down(), up()],
    }
}

fn round_trips(phase: &LoadPhase, idle_ns: Option<i64>, end_s: f64) -> Vec<Series> {
    let points = phase.rtt_series.iter();
    let points = points.filter_map(|(at_ns, ns)| Some(Point::new(*at_ns as f64 / 1e9, (*ns)? as f64)));
    let mut series = vec![Series::new("under load", LineStyle::Main, 2, points)];
    series.extend(idle_ns.map(|ns| {
        let ends = [0.0, end_s].map(|at_s| Point::new(at_s, ns as f64));
        Series::new("median without load", LineStyle::Limit, 3, ends)
    }));
    series
}
