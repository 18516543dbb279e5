//! Progress of a running experiment: a block of lines for a terminal, one line per cell elsewhere,
//! and events for programs.

use std::fmt::Write;
use std::time::Duration;

use linerate_document::Style;
use linerate_document::number::whole_percent;
use linerate_document::seconds::{end_words, second_words};
use linerate_model::http::{CellKey, CellRun, RunState, Share};
use linerate_model::live::LiveHttp;
use linerate_model::numbers::clock;
use linerate_model::printable::printable_json;
use linerate_model::stored_name;
use serde::Serialize;

use super::labels::{cell, ending, flag, grouped, known, mega, per_s, phase, quantile};
use crate::load::SecondPart;
use crate::plan::cells::PlannedRun;

/// Stage of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Stage {
    /// Load is on and not recorded.
    WarmUp,
    /// Load is on and recorded.
    Measure,
    /// Nothing more is sent; answers are awaited.
    Drain,
}

/// The status block of a terminal: always four lines, each at most 120 columns, so that it can be
/// drawn over.
pub(crate) fn block(now: &LiveHttp, elapsed: Duration, style: Style) -> String {
    let left = now
        .left_s
        .map_or_else(String::new, |left| format!(", about {} left", clock(left)));
    let first = format!(
        "{}; run {} of {}, {} so far{left}",
        now.running,
        now.run,
        now.runs,
        clock(elapsed.as_secs_f64())
    );
    let second = format!(
        "{}, {} errors, {} open",
        second_words(now),
        grouped(now.errors),
        grouped(now.open)
    );
    let [client, server] = [("client", &now.client), ("server", &now.server)]
        .map(|(name, end)| end_words(name, end.as_ref()));

    let mut out = String::new();
    for line in [first, second, client, server] {
        let line: String = style.line(&line).chars().take(style.columns).collect();
        // Writing to a string does not fail.
        let _ = writeln!(out, "{line}");
    }
    out
}

/// `3 of 12 s: 990 responses/s, payload 1.01 MB/s, p99 12.0 ms, 0 errors`: a second of a load of
/// `load_s` seconds, with its own errors.
pub(crate) fn load_line(now: &LiveHttp, second: &SecondPart, load_s: u32) -> String {
    let server = now.server.as_ref().map_or_else(String::new, |server| {
        format!("; {}", end_words("server", Some(server)))
    });
    format!(
        "{} of {load_s} s: {}, {} errors{server}",
        second.index + 1,
        second_words(now),
        second.errors
    )
}

/// `matrix 10k c64, repeat 2, measure`
pub(crate) fn run_words(run: &PlannedRun, stage: Stage) -> String {
    format!(
        "{}, repeat {}, {}",
        cell_words(&run.key),
        run.repeat,
        stored_name(stage)
    )
}

/// `matrix 10k c64`
pub(crate) fn cell_words(key: &CellKey) -> String {
    format!("{} {}", phase(key.phase), cell(key))
}

/// Complete 2xx answers per second of a finished run, and the same as text, `12,345/s`; `None` of a
/// run without a result.
pub(crate) fn answers(finished: &CellRun) -> Option<(f64, String)> {
    let load = finished
        .load
        .as_ref()
        .filter(|_| finished.state == RunState::Done)?;
    let value = load.ok_per_s()?;
    Some((value, format!("{}/s", per_s(value))))
}

/// A finished run in one line, for logs, however long its reason is. `run` of `runs` are counted
/// from 1.
pub(crate) fn finished_line(finished: &CellRun, run: u32, runs: u32, style: Style) -> String {
    let name = format!(
        "[{run}/{runs}] {} {} r{}",
        phase(finished.key.phase),
        cell(&finished.key),
        finished.repeat
    );
    let mut words: Vec<String> = ending(finished).into_iter().collect();
    words.extend(numbers(finished));

    let flags = finished.flags.iter().map(|known| flag(*known).0.to_owned());
    words.extend(flags);

    style.line(&format!("{name}: {}", words.join(", "))) + "\n"
}

fn numbers(run: &CellRun) -> Option<String> {
    let load = run.load.as_ref()?;
    let busiest = |busy: Option<Share>| known(busy, whole_percent);
    let server = run.server.as_ref();
    Some(format!(
        "{} responses/s, payload {} MB/s, p99 {}, {} errors, busiest CPU client {} server {}",
        known(load.ok_per_s(), per_s),
        known(load.payload_bytes_per_s(), mega),
        known(load.latency.p99, |p99| quantile(Some(p99), load.latency.n)),
        grouped(load.errors.total()),
        busiest(run.client.busiest_cpu_busy),
        busiest(server.and_then(|server| server.busiest_cpu_busy))
    ))
}

/// One event of `--json-stream` of an experiment: an object on one line. What is not known is null.
pub(crate) fn event(run: &PlannedRun, stage: Stage, elapsed: Duration, now: &LiveHttp) -> String {
    let event = serde_json::json!({
        "event": "second",
        "cell": run.key,
        "repeat": run.repeat,
        "stage": stage,
        "run": now.run,
        "runs": now.runs,
        "elapsed_ms": u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        "left_s": now.left_s,
        "ok_per_s": now.ok_per_s.last(),
        "payload_bytes_per_s": now.payload_bytes as f64,
        "p99_ns": now.p99_ns,
        "errors": now.errors,
        "open": now.open,
        "client": now.client,
        "server": now.server,
    });
    printable_json(&event.to_string()) + "\n"
}

/// One event of `--json-stream` of a load.
pub(crate) fn load_event(second: &SecondPart) -> String {
    let object = serde_json::json!({
        "event": "second",
        "second": second.index + 1,
        "ok": second.ok,
        "payload_bytes": second.payload_bytes,
        "p99_ns": second.quantile_ns(0.99),
        "errors": second.errors,
    });
    format!("{object}\n")
}
