//! Latencies and failures of a run.

use linerate_document::table::Table;
use linerate_model::http::{ErrorCounts, Latency, LoadResult, Mode};
use linerate_model::stored_name;

use crate::report::labels::{self, grouped, known, quantile, time};

/// The latencies with what a reader must know of them.
pub(super) fn latency(load: &LoadResult) -> Table {
    let first = match load.mode {
        Mode::Open { .. } => "corrected: due to answered",
        Mode::Closed { .. } => "response: sent to answered",
        Mode::Idle { .. } => "heartbeat: sent to answered",
    };
    let more = [
        ("service: sent to answered", &load.service),
        ("send lag: due to sent", &load.send_lag),
        ("connect", &load.connect),
    ];
    let mut rows = vec![(first, &load.latency)];
    for (name, latency) in more {
        rows.extend(latency.as_ref().map(|latency| (name, latency)));
    }

    Table::of("latency", "", &rows)
        .text("of", |(name, _)| *name)
        .number("p50", |(_, latency)| quantile(latency.p50, latency.n))
        .number("p90", |(_, latency)| quantile(latency.p90, latency.n))
        .number("p99", |(_, latency)| quantile(latency.p99, latency.n))
        .number("p99.9", |(_, latency)| quantile(latency.p999, latency.n))
        .number("max", |(_, latency)| quantile(latency.max, latency.n))
        .number("mean", |(_, latency)| {
            known((latency.n > 0).then_some(latency.mean_ns), time)
        })
        .number("n", |(_, latency)| grouped(latency.n))
        .notes(notes(load, &rows))
        .table()
}

fn notes(load: &LoadResult, rows: &[(&str, &Latency)]) -> Vec<&'static str> {
    let mut notes = Vec::new();
    let quantiles = rows
        .iter()
        .flat_map(|(_, l)| [l.p50, l.p90, l.p99, l.p999, l.max]);
    if quantiles.clone().any(|quantile| quantile.is_none()) {
        notes.push("n/a: fewer than ten values lie above the quantile, so it says nothing");
    }

    let is_open = matches!(load.mode, Mode::Open { .. });
    if is_open && quantiles.flatten().any(|quantile| quantile.is_lower_bound) {
        notes.push("≥: it falls on a request that never ended; the truth is this or more");
    }

    notes
}

/// A row for each kind of failure with the first texts; `None` without failures.
pub(super) fn errors(load: &LoadResult) -> Option<Table> {
    let mut rows = Vec::new();
    for (class, error) in load.errors.iter() {
        let whose = labels::error(class).1.to_owned();
        rows.push((stored_name(class), grouped(error.count), whose));
        for text in error.texts.iter().take(ErrorCounts::TEXTS_MAX) {
            rows.push((String::new(), String::new(), format!("\"{text}\"")));
        }
    }

    Table::of("failures", "of requests and connections", &rows)
        .text("kind", |(kind, ..)| kind.as_str())
        .number("count", |(_, count, _)| count.as_str())
        .text("whose, and what was said", |(.., text)| text.as_str())
        .non_empty()
}
