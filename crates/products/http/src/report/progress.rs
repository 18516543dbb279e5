//! Progress of a running experiment: a block of lines for a terminal, one line per cell elsewhere,
//! and events for programs.

use std::fmt::Write;

use linerate_document::Style;
use linerate_document::wrap::LINE_CHARS;
use linerate_model::http::{CellKey, CellRun, Reading, RunState, Share};
use linerate_model::numbers::{clock, rate};
use linerate_model::printable::printable_json;
use linerate_model::stored_name;
use serde::Serialize;

use super::labels::{ending, phase};
use super::numbers::{cell, grouped, known, mega, per_s, quantile, time_ns};

/// Progress of an experiment in this second. What is not known is absent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Progress {
    /// The cell that runs.
    #[serde(rename = "cell")]
    pub key: CellKey,
    /// Which of its repeats, from 1.
    pub repeat: u32,
    /// The current stage.
    pub stage: Stage,
    /// Which run of all, from 1.
    pub run: u32,
    /// Runs of all.
    pub runs: u32,
    /// Since the experiment began, in milliseconds.
    pub elapsed_ms: u64,
    /// Until it ends, in seconds.
    pub left_s: Option<f64>,
    /// Complete 2xx answers in the last second.
    pub ok_per_s: Option<f64>,
    /// Bytes of their bodies.
    pub payload_bytes_per_s: Option<f64>,
    /// 99th percentile of the latency in the last second.
    pub p99_ns: Option<u64>,
    /// Failures of this run so far.
    pub errors: u64,
    /// Connections open now.
    pub open: u64,
    /// The last sample of the client.
    pub client: Option<Reading>,
    /// That of the server; absent without an agent there.
    pub server: Option<Reading>,
}

/// Stage of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Load is on and not recorded.
    WarmUp,
    /// Load is on and recorded.
    Measure,
    /// Nothing more is sent; answers are awaited.
    Drain,
}

/// The status block of a terminal: always four lines, each at most 120 columns, so that it can be
/// drawn over.
#[must_use]
pub fn block(now: &Progress, style: Style) -> String {
    let left = now
        .left_s
        .map_or_else(String::new, |left| format!(", about {} left", clock(left)));
    let first = format!(
        "{}; run {} of {}, {} so far{left}",
        run_words(now),
        now.run,
        now.runs,
        clock(now.elapsed_ms as f64 / 1e3)
    );

    let second = format!(
        "{}, {} errors, {} open",
        second_words(now.ok_per_s, now.payload_bytes_per_s, now.p99_ns),
        grouped(now.errors),
        grouped(now.open)
    );
    let [client, server] = [("client", &now.client), ("server", &now.server)]
        .map(|(name, end)| end_words(name, end.as_ref()));
    let mut out = String::new();

    for line in [first, second, client, server] {
        let line: String = style.line(&line).chars().take(LINE_CHARS).collect();
        let _ = writeln!(out, "{line}");
    }

    out
}

/// `matrix 10k c64, repeat 2, measure`
#[must_use]
pub fn run_words(now: &Progress) -> String {
    format!(
        "{}, repeat {}, {}",
        cell_words(&now.key),
        now.repeat,
        stored_name(now.stage)
    )
}

/// `matrix 10k c64`
#[must_use]
pub fn cell_words(key: &CellKey) -> String {
    format!("{} {}", phase(key.phase), cell(key))
}

/// `12,345 responses/s, payload 126.4 MB/s, p99 1.234 ms`, of one second.
#[must_use]
pub fn second_words(
    ok_per_s: Option<f64>,
    payload_bytes_per_s: Option<f64>,
    p99_ns: Option<u64>,
) -> String {
    format!(
        "{} responses/s, payload {} MB/s, p99 {}",
        known(ok_per_s, per_s),
        known(payload_bytes_per_s, mega),
        known(p99_ns, time_ns)
    )
}

/// Complete 2xx answers per second of a finished run, and the same as text, `12,345/s`; `None` of a
/// run without a result.
#[must_use]
pub fn answers(finished: &CellRun) -> Option<(f64, String)> {
    let load = finished
        .load
        .as_ref()
        .filter(|_| finished.state == RunState::Done)?;
    let value = load.ok_per_s()?;
    Some((value, format!("{}/s", per_s(value))))
}

/// `client: CPU 45 % ...`
#[must_use]
pub fn end_words(name: &str, end: Option<&Reading>) -> String {
    format!(
        "{name}: {}",
        end.map_or_else(|| "no figures".to_owned(), end_line)
    )
}

/// `CPU 45 % (busiest 99 %), 64 connections, 941 Mbit/s sent, 12 Mbit/s received`
#[must_use]
pub fn end_line(end: &Reading) -> String {
    let per_s = |bytes: Option<u64>| {
        known(bytes.filter(|_| end.window_ns > 0), |bytes| {
            rate(8e9 * bytes as f64 / end.window_ns as f64)
        })
    };
    format!(
        "CPU {} (busiest {}), {} connections, {} sent, {} received",
        known(end.cpu_busy, whole_percent),
        known(end.busiest_cpu_busy, whole_percent),
        known(end.connections, grouped),
        per_s(end.tx_bytes),
        per_s(end.rx_bytes)
    )
}

fn whole_percent(share: Share) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A finished run in one line, for logs, however long its reason is. `run` of `runs` are counted
/// from 1.
#[must_use]
pub fn finished_line(finished: &CellRun, run: u32, runs: u32, style: Style) -> String {
    let name = format!(
        "[{run}/{runs}] {} {} r{}",
        phase(finished.key.phase),
        cell(&finished.key),
        finished.repeat
    );
    let mut words: Vec<String> = ending(finished).into_iter().collect();
    words.extend(numbers(finished));

    let flags: Vec<String> = finished.flags.iter().map(stored_name).collect();
    if !flags.is_empty() {
        words.push(format!("flags {}", flags.join(" ")));
    }

    style.line(&format!("{name}: {}", words.join(", "))) + "\n"
}

fn numbers(run: &CellRun) -> Option<String> {
    let load = run.load.as_ref()?;
    let busiest = |busy: Option<Share>| known(busy, whole_percent);
    let server = run.server.as_ref();
    Some(format!(
        "{} responses/s, payload {} MB/s, p99 {}, {} errors, max core client {} server {}",
        known(load.ok_per_s(), per_s),
        known(load.payload_bytes_per_s(), mega),
        known(load.latency.p99, |p99| quantile(Some(p99), load.latency.n)),
        grouped(load.errors.total()),
        busiest(run.client.busiest_cpu_busy),
        busiest(server.and_then(|server| server.busiest_cpu_busy))
    ))
}

/// One event of `--json-stream`: an object on one line.
#[must_use]
pub fn event(now: &Progress) -> String {
    #[derive(Serialize)]
    struct Event<'a> {
        event: &'static str,
        #[serde(flatten)]
        now: &'a Progress,
    }

    let event = Event {
        event: "second",
        now,
    };
    printable_json(&serde_json::to_string(&event).unwrap_or_default()) + "\n"
}
