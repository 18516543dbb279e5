//! Times of a run, and what they hold.

use linerate_model::http::{Latency, LoadResult, Mode};

use super::lines::Lines;
use crate::document::table::{Cell, Column, Table, numbers};
use crate::http::numbers::{grouped, known, quantile, time};

/// The table of times with what a reader must know of them.
pub(super) fn write_latency(out: &mut Lines, load: &LoadResult) {
    let is_open = matches!(load.mode, Mode::Open { .. });
    let first = match load.mode {
        Mode::Open { .. } => "corrected: due to answered",
        Mode::Closed { .. } => "response: sent to answered",
        Mode::Idle { .. } => "heartbeat: sent to answered",
    };
    let rows = [
        Some((first, &load.latency)),
        load.service
            .as_ref()
            .map(|service| ("service: sent to answered", service)),
        load.send_lag.as_ref().map(|lag| ("send lag: due to sent", lag)),
        load.connect.as_ref().map(|connect| ("connect", connect)),
    ];
    let table = Table {
        id: "latency",
        title: String::new(),
        columns: std::iter::once(Column::Text("of"))
            .chain(numbers(["p50", "p90", "p99", "p99.9", "max", "mean", "n"]))
            .collect(),
        rows: rows
            .into_iter()
            .flatten()
            .map(|(name, latency)| latency_row(name, latency))
            .collect(),
        notes: latency_notes(load, is_open),
    };
    out.text.push_str(&table.text(out.style));
}

fn latency_row(name: &'static str, latency: &Latency) -> Vec<Cell> {
    let text = |value| quantile(value, latency.n);
    let mean = (latency.n > 0).then_some(latency.mean_ns);
    vec![
        name.into(),
        text(latency.p50).into(),
        text(latency.p90).into(),
        text(latency.p99).into(),
        text(latency.p999).into(),
        text(latency.max).into(),
        known(mean, time).into(),
        grouped(latency.n).into(),
    ]
}

fn latency_notes(load: &LoadResult, is_open: bool) -> Vec<String> {
    let mut notes = Vec::new();
    match load.mode {
        Mode::Closed { .. } => {
            notes.push("closed loop: does not include time a user would have waited to be sent".to_owned());
            notes.push(
                "comparing with wrk: it fills its histogram up with values it did not measure, so after a stall its high \
                 quantiles are larger than these; use an open loop (--rate) for the time users wait"
                    .to_owned(),
            );
        }
        Mode::Open { .. } => notes.push(
            "corrected is what a user waits: it holds the time a request could not be sent because all connections were \
             busy"
                .to_owned(),
        ),
        Mode::Idle { .. } => {}
    }
    let all = std::iter::once(&load.latency)
        .chain(&load.service)
        .chain(&load.send_lag)
        .chain(&load.connect);
    let quantiles: Vec<_> = all.flat_map(|l| [l.p50, l.p90, l.p99, l.p999, l.max]).collect();
    if quantiles.contains(&None) {
        notes.push("n/a: fewer than ten values lie above the quantile, so it says nothing".to_owned());
    }
    if is_open && quantiles.iter().flatten().any(|quantile| quantile.is_lower_bound) {
        notes.push("≥: it falls on a request that never ended; the truth is this or more".to_owned());
    }
    notes
}
