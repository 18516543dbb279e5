//! What a run cost both ends, and how it went from second to second.

use linerate_model::http::{EndpointStats, LoadResult, Second};

use super::{LoadReport, named};
use crate::document::Block;
use crate::glyphs::Glyphs;
use crate::http::numbers::{cpus, grouped, peak, percent, time, time_ns};
use crate::numbers::{bytes, clock};

/// Both ends, known or not.
pub(super) fn ends(report: &LoadReport<'_>) -> Vec<Block> {
    let ends = [
        ("client", report.client, "its figures were not taken"),
        ("server", report.server, "no agent there, so what it cost is not known"),
    ];
    let lines = |(name, end, unknown): (&str, Option<&EndpointStats>, &str)| {
        let missing = end.filter(|end| !end.missing.is_empty());
        let missing = missing.map(|end| named("", format!("not known: {}", end.missing.join("; "))));
        let cost = end.map_or_else(|| unknown.to_owned(), |end| cost(end, report.load.ok));
        std::iter::once(named(name, cost)).chain(missing).collect::<Vec<_>>()
    };
    ends.into_iter().flat_map(lines).collect()
}

/// What a run cost one end.
fn cost(side: &EndpointStats, ok: u64) -> String {
    let mut words = Vec::new();
    if let Some(ns) = side.process_cpu_ns.filter(|_| side.window_ns > 0) {
        words.push(format!("program {} of one processor", cpus(ns as f64 / side.window_ns as f64)));
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

/// Throughput and latency of every second, the warm-up apart; nothing without an answer.
pub(super) fn seconds(load: &LoadResult, glyphs: Glyphs) -> Vec<Block> {
    let highest = load.seconds.iter().map(|second| second.ok).max().unwrap_or(0);
    if highest == 0 {
        return Vec::new();
    }
    let step = load.seconds.len().div_ceil(SECONDS_SHOWN).max(1);
    let curve = |highest: u64, value: fn(&Second) -> Option<u64>| {
        let shown = load.seconds.iter().step_by(step);
        let curve = glyphs.curve(shown.map(|second| value(second).map(|value| value as f64 / highest as f64)));
        split_at(&curve, load.warmup_seconds as usize / step)
    };
    let measured = load.seconds.iter().skip(load.warmup_seconds as usize);
    let measured = measured.map(|second| second.ok);
    let range = match (measured.clone().min(), measured.max()) {
        (Some(low), Some(high)) => format!("  {} to {} after the warm-up", grouped(low), grouped(high)),
        _ => String::new(),
    };
    let rates = format!("{}{range}", curve(highest, |second| Some(second.ok)));
    let slowest = load.seconds.iter().filter_map(|second| second.p99_ns).max();
    let latencies = slowest.filter(|slowest| *slowest > 0).map(|slowest| {
        let curve = curve(slowest, |second| second.p99_ns);
        named("p99 each s", format!("{curve}  up to {}", time_ns(slowest)))
    });
    let unit = if step > 1 { format!("every {step} s shown; ") } else { String::new() };
    let length = clock(load.seconds.len() as f64);
    let legend = format!("{unit}{length} in all; before the |: warm-up, not counted");
    let mut blocks = vec![Block::Space, named("2xx each s", rates)];
    blocks.extend(latencies);
    blocks.push(named("", legend));
    blocks
}

fn split_at(curve: &str, place: usize) -> String {
    let before: String = curve.chars().take(place).collect();
    let after: String = curve.chars().skip(place).collect();
    format!("{before}|{after}")
}
