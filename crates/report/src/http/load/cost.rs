//! What a run cost both ends, and how it went from second to second.

use linerate_model::http::{EndpointStats, LoadResult};

use super::LoadReport;
use super::lines::Lines;
use crate::http::numbers::{cpus, grouped, peak, percent, time, time_ns};
use crate::numbers::{bytes, clock};

/// Both ends, known or not.
pub(super) fn write_sides(out: &mut Lines, report: &LoadReport<'_>) {
    out.text.push('\n');
    for (name, side) in [("client", report.client), ("server", report.server)] {
        match side {
            Some(side) => {
                out.named(name, &cost(side, report.load.ok));
                if !side.missing.is_empty() {
                    out.named("", &format!("not known: {}", side.missing.join("; ")));
                }
            }
            None if name == "server" => out.named(name, "no agent there, so what it cost is not known"),
            None => out.named(name, "its figures were not taken"),
        }
    }
}

/// What a run cost one end.
fn cost(side: &EndpointStats, ok: u64) -> String {
    let mut words = Vec::new();
    if let Some(ns) = side.process_cpu_ns.filter(|_| side.window_ns > 0) {
        words.push(format!(
            "program {} of one processor",
            cpus(ns as f64 / side.window_ns as f64)
        ));
        if ok > 0 {
            words.push(format!("{} of it per 2xx", time(ns as f64 / ok as f64)));
        }
    }
    words.extend(side.cpu_busy.map(|busy| match side.cpus {
        Some(cpus) => format!("all {cpus} processors {} busy", percent(busy)),
        None => format!("all processors {} busy", percent(busy)),
    }));
    words.extend(side.busiest_cpu_busy.map(|busy| match side.busiest_cpu {
        Some(cpu) => format!("busiest processor ({cpu}) {}", percent(busy)),
        None => format!("busiest processor {}", percent(busy)),
    }));
    words.extend(side.rss_bytes.map(|rss| format!("{} resident", bytes(rss as f64))));
    words.extend(side.fds.map(|fds| format!("descriptors {}", peak(fds))));
    words.extend(side.time_wait.map(|sockets| format!("TIME_WAIT {}", peak(sockets))));
    if words.is_empty() {
        words.push("nothing could be measured".to_owned());
    }
    words.join(", ")
}

/// Seconds that fit into one line; longer runs are thinned.
const SECONDS_SHOWN: usize = 60;

/// Throughput and latency of every second, the warm-up apart.
pub(super) fn write_seconds(out: &mut Lines, load: &LoadResult) {
    let Some(highest) = load
        .seconds
        .iter()
        .map(|second| second.ok)
        .max()
        .filter(|highest| *highest > 0)
    else {
        return;
    };
    let step = load.seconds.len().div_ceil(SECONDS_SHOWN).max(1);
    let shown = load.seconds.iter().step_by(step);
    let rates = out
        .style
        .glyphs
        .curve(shown.map(|second| Some(second.ok as f64 / highest as f64)));
    let warmup = load.warmup_seconds as usize / step;
    let measured = load
        .seconds
        .iter()
        .skip(load.warmup_seconds as usize)
        .map(|second| second.ok);
    let range = match (measured.clone().min(), measured.max()) {
        (Some(low), Some(high)) => format!("  {} to {} after the warm-up", grouped(low), grouped(high)),
        _ => String::new(),
    };
    out.text.push('\n');
    out.named("2xx each s", &format!("{}{range}", split_at(&rates, warmup)));
    write_latencies(out, load, step);
    let unit = if step > 1 {
        format!("every {step} s shown; ")
    } else {
        String::new()
    };
    let length = clock(load.seconds.len() as f64);
    out.named(
        "",
        &format!("{unit}{length} in all; before the |: warm-up, not counted"),
    );
}

fn write_latencies(out: &mut Lines, load: &LoadResult, step: usize) {
    let slowest = load.seconds.iter().filter_map(|second| second.p99_ns).max();
    let Some(slowest) = slowest.filter(|slowest| *slowest > 0) else {
        return;
    };
    let shares = load.seconds.iter().step_by(step);
    let shares = shares.map(|second| second.p99_ns.map(|ns| ns as f64 / slowest as f64));
    let curve = split_at(&out.style.glyphs.curve(shares), load.warmup_seconds as usize / step);
    out.named("p99 each s", &format!("{curve}  up to {}", time_ns(slowest)));
}

fn split_at(curve: &str, place: usize) -> String {
    let before: String = curve.chars().take(place).collect();
    let after: String = curve.chars().skip(place).collect();
    format!("{before}|{after}")
}
