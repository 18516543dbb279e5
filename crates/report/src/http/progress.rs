//! What is seen while an experiment runs: a block of lines for a terminal, one line per cell elsewhere, and events for
//! programs.

use std::fmt::Write;

use linerate_model::http::{CellKey, CellRun, Peak, Share};
use linerate_model::stored_name;
use serde::Serialize;

use crate::numbers::clock;

use super::labels::{ending, phase};
use super::numbers::{cell, grouped, known, mega, peak, per_s, percent, quantile, time_ns};
use crate::document::style::Style;
use crate::document::wrap::LINE_CHARS;

/// Progress of an experiment in this second. What is not known is absent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Progress {
    /// The cell that runs.
    #[serde(rename = "cell")]
    pub key: CellKey,
    /// Which of its repeats, from 1.
    pub repeat: u32,
    /// What it is doing.
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
    /// Answers per second as a share of the network's ceiling.
    pub of_ceiling: Option<Share>,
    /// 99th percentile of the latency in the last second.
    pub p99_ns: Option<u64>,
    /// Failures of this run so far.
    pub errors: u64,
    /// Connections open now.
    pub open: u64,
    /// The client.
    pub client: HostSample,
    /// The server; absent without an agent there.
    pub server: Option<HostSample>,
}

/// One end in the last second.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct HostSample {
    /// Share of all CPUs that was busy.
    pub cpu_busy: Option<Share>,
    /// Share of the busiest CPU that was busy.
    pub busiest_cpu_busy: Option<Share>,
    /// Descriptors of the program.
    pub fds: Option<Peak>,
    /// TCP sockets in TIME_WAIT.
    pub time_wait: Option<Peak>,
}

/// What a run is doing.
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

/// The status block of a terminal: always four lines, each at most 120 columns, so that it can be drawn over.
#[must_use]
pub fn block(now: &Progress, style: Style) -> String {
    let left = now.left_s.map_or_else(String::new, |left| format!(", about {} left", clock(left)));
    let first = format!(
        "{} {}, repeat {}, {}; run {} of {}, {} so far{left}",
        phase(now.key.phase),
        cell(&now.key),
        now.repeat,
        stored_name(now.stage),
        now.run,
        now.runs,
        clock(now.elapsed_ms as f64 / 1e3)
    );
    let second = format!(
        "{} 2xx/s, {} of X_net, payload {} MB/s, p99 {}, {} errors, {} open",
        known(now.ok_per_s, per_s),
        known(now.of_ceiling, percent),
        known(now.payload_bytes_per_s, mega),
        known(now.p99_ns, time_ns),
        grouped(now.errors),
        grouped(now.open)
    );
    let client = format!("client: {}", end(now.client));
    let server = format!("server: {}", now.server.map_or_else(|| "no agent there".to_owned(), end));
    let mut out = String::new();
    for line in [first, second, client, server] {
        let line: String = style.line(&line).chars().take(LINE_CHARS).collect();
        let _ = writeln!(out, "{line}");
    }
    out
}

fn end(end: HostSample) -> String {
    format!(
        "CPU {} (max core {}), fds {}, tw {}",
        known(end.cpu_busy, whole_percent),
        known(end.busiest_cpu_busy, whole_percent),
        known(end.fds, peak),
        known(end.time_wait, |sockets| grouped(sockets.peak))
    )
}

fn whole_percent(share: Share) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A finished run in one line, for logs, however long its reason is. `run` of `runs` are counted from 1.
#[must_use]
pub fn finished_line(finished: &CellRun, run: u32, runs: u32, style: Style) -> String {
    let name = format!("[{run}/{runs}] {} {} r{}", phase(finished.key.phase), cell(&finished.key), finished.repeat);
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
        "{} 2xx/s, payload {} MB/s, p99 {}, {} errors, max core client {} server {}",
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
    let event = Event { event: "second", now };
    serde_json::to_string(&event).unwrap_or_default() + "\n"
}
