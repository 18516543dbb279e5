//! One run of the load generator as text.

mod latency;
mod page;

use linerate_doctor::report::doubt;
use linerate_document::Style;
use linerate_document::blocks::{Block, Document};
use linerate_document::short::{Need, SHORT_COLUMN, fitted};
use linerate_model::finding::Confidence;
use linerate_model::http::{
    CellVerdict, EndpointStats, ErrorClass, Flag, Judgement, LoadResult, Mode, VerdictClass,
};
use linerate_model::numbers::{bytes, rate};
use linerate_model::stored_name;
use linerate_model::words::joined;

use super::labels::{
    self, counted, cpus, fine, grouped, known, mebi, mega, peak, per_s, percent, quantile, time,
    time_ns,
};
use latency::{errors, latency};
pub(crate) use page::load_page;

/// One run of the load generator with what is known around it.
#[derive(Debug, Clone, Copy)]
pub struct LoadReport<'a> {
    /// The URL as the user wrote it.
    pub target: &'a str,
    /// Result of the generator.
    pub load: &'a LoadResult,
    /// Bits per second on the wire in the busier direction, frames and gaps included; absent where
    /// unknown.
    pub wire_bps: Option<f64>,
    /// Cost at the client.
    pub client: Option<&'a EndpointStats>,
    /// Cost at the server; absent without an agent there.
    pub server: Option<&'a EndpointStats>,
    /// Limit of the load.
    pub verdict: Option<&'a CellVerdict>,
    /// Remarks, one line each: the server's own description, limits in force.
    pub remarks: &'a [String],
}

/// The run as text: in at most six lines what it reached, what limited it and what to do, and
/// everything else where it `is_verbose`.
pub fn load_text(report: &LoadReport<'_>, is_verbose: bool, style: Style) -> String {
    let name = "linerate http load";
    if is_verbose {
        let blocks = load_blocks(report);
        return Document { name, blocks }.text(style);
    }

    let mut parts = vec![(Need::Answer, Block::Title(result(report.load)))];
    for (label, text) in notes(report, is_verbose) {
        parts.push((Need::Finding, entry(label, text)));
    }
    let details = format!("{name} {} -v", report.target);
    parts.push((Need::Answer, entry("Details", details)));

    let blocks = fitted(parts, LINES_MAX, style);
    Document { name, blocks }.text(style)
}

/// Everything that was measured, below what it means.
pub(crate) fn load_blocks(report: &LoadReport<'_>) -> Vec<Block> {
    let mut blocks = vec![Block::Title(result(report.load))];
    for (label, text) in notes(report, true) {
        blocks.push(entry(label, text));
    }
    blocks.push(Block::Space);
    blocks.extend(details(report));
    blocks
}

fn entry(label: &str, text: String) -> Block {
    Block::entry(label, SHORT_COLUMN, text)
}

/// Failures, the limit and the next step, and what qualifies them; the most important first.
fn notes(report: &LoadReport<'_>, is_verbose: bool) -> Vec<(&'static str, String)> {
    let mut notes = Vec::new();
    notes.extend(errors_words(report.load).map(|text| ("Errors", text)));
    if let Some(verdict) = report.verdict {
        notes.extend(limit(&verdict.primary, verdict.confidence));
    }
    notes.extend(not_accepted(report.load).map(|text| ("Do", text.to_owned())));

    let mut flags = Vec::new();
    for flag in &report.load.flags {
        // A limit has it already.
        if *flag != Flag::Unsteady || report.verdict.is_none() {
            flags.push(labels::flag(*flag));
        }
    }
    if flags.len() > 1 && !is_verbose {
        notes.push(("Note", joined(flags.iter().map(|(name, _)| name), ", ")));
    } else {
        notes.extend(flags.iter().map(|(_, text)| ("Note", (*text).to_owned())));
    }

    notes
}

/// `11,566 responses/s, 94.7 Mbit/s; p50 259 us, p99 14.5 ms, max 84.3 ms; no errors`
fn result(load: &LoadResult) -> String {
    let latency = &load.latency;
    let quantiles = [
        ("p50", latency.p50),
        ("p99", latency.p99),
        ("max", latency.max),
    ];
    let quantiles = quantiles.into_iter().filter(|(_, ns)| ns.is_some());
    let quantiles = quantiles.map(|(name, ns)| format!("{name} {}", quantile(ns, latency.n)));

    let parts = [amount(load), joined(quantiles, ", "), errors_counted(load)];
    joined(parts.iter().filter(|part| !part.is_empty()), "; ")
}

/// `11,566 responses/s, 94.7 Mbit/s`
fn amount(load: &LoadResult) -> String {
    match load.mode {
        Mode::Idle { .. } => held(load),
        _ => load.ok_per_s().zip(load.payload_bytes_per_s()).map_or_else(
            || "no request was sent".to_owned(),
            |(ok, payload)| format!("{} responses/s, {}", per_s(ok), rate(payload * 8.0)),
        ),
    }
}

fn errors_counted(load: &LoadResult) -> String {
    match load.errors.total() {
        0 => "no errors".to_owned(),
        total => counted(usize::try_from(total).unwrap_or(usize::MAX), "error"),
    }
}

/// `0.52 % of the requests: 12 no local port, 40 timeout`; `None` without errors.
fn errors_words(load: &LoadResult) -> Option<String> {
    let classes = load.errors.iter();
    let classes = classes
        .map(|(class, error)| format!("{} {}", grouped(error.count), labels::error(class).0));
    let classes = joined(classes, ", ");
    // Without requests there is nothing that they are a share of.
    let is_held = matches!(load.mode, Mode::Idle { .. }) && load.requests == 0;
    let share = load.error_share().filter(|_| !is_held);
    let share = share.map_or_else(String::new, |share| {
        format!("{} of the requests: ", percent(share))
    });

    (!classes.is_empty()).then(|| format!("{share}{classes}"))
}

/// `30 of 200 connections held`
fn held(load: &LoadResult) -> String {
    let c = load.connections;
    let held = c.answered_at_end.unwrap_or(c.open_at_end);
    let wanted = grouped(c.wanted);
    match c.open_at_end.saturating_sub(held) {
        0 => format!("{} of {wanted} connections held", grouped(held)),
        silent => format!(
            "{} of {wanted} connections held; {} more are connected without a response, so whether \
             the server accepted them is not known",
            grouped(held),
            grouped(silent)
        ),
    }
}

/// Next step where idle connections had no response: the kernel of the server connects them, the
/// server accepts them.
fn not_accepted(load: &LoadResult) -> Option<&'static str> {
    let c = load.connections;
    let has_silent = load.errors.count(ErrorClass::Timeout) > 0
        || c.answered_at_end.is_some_and(|n| n < c.open_at_end);
    let is_idle = matches!(load.mode, Mode::Idle { .. });

    (is_idle && has_silent).then_some(
        "check the server's descriptors (ulimit -n, LimitNOFILE=) and limit of connections: \
         without a response they may wait to be accepted (`ss -lnt`: Recv-Q)",
    )
}

/// The limit of the run with its confidence, and the next step.
fn limit(judgement: &Judgement, confidence: Confidence) -> Vec<(&'static str, String)> {
    let evidence = joined(&judgement.evidence, "; ");
    let has_advice = !evidence.contains(judgement.advice.as_str());
    let mut notes = vec![match judgement.class {
        VerdictClass::Invalid => ("Invalid", evidence),
        class => {
            let name = labels::limit(class);
            ("Limit", format!("{name}{}: {evidence}", doubt(confidence)))
        }
    }];

    if has_advice {
        notes.push(("Do", judgement.advice.clone()));
    }
    notes
}

/// Everything that was counted.
fn details(report: &LoadReport<'_>) -> Vec<Block> {
    let LoadReport { load, target, .. } = report;
    let protocol = load
        .protocol
        .as_ref()
        .filter(|protocol| !protocol.is_plain_http1());
    let protocol = protocol.map_or_else(String::new, |protocol| format!("{protocol}, "));
    let mut blocks = vec![
        Block::Title(format!("{target}: {protocol}{}", mode(load))),
        Block::List(report.remarks.to_vec()),
    ];
    let contributing = report
        .verdict
        .iter()
        .flat_map(|verdict| &verdict.contributing);
    for judgement in contributing {
        let evidence = joined(&judgement.evidence, "; ");
        let text = format!("{}: {evidence}", labels::limit(judgement.class));
        blocks.push(named("as well", text));
        if !judgement.advice.is_empty() {
            blocks.push(named("", judgement.advice.as_str()));
        }
    }
    blocks.push(Block::Space);
    blocks.extend(rates(report));
    blocks.push(Block::Table(latency(load)));
    blocks.extend(errors(load).map(Block::Table));
    blocks.push(Block::Space);
    blocks.extend(ends(report));

    blocks
}

/// Text beside its name.
fn named(name: &str, text: impl Into<String>) -> Block {
    Block::entry(name, NAME_CHARS, text)
}

const NAME_CHARS: usize = 13;
/// Most lines of the report that is not verbose.
const LINES_MAX: usize = 6;

/// `open loop, 5,000 requests per second, poisson arrivals, 64 connections, 10.0 s measured`
fn mode(load: &LoadResult) -> String {
    let connections = grouped(load.connections.wanted);
    let window = time_ns(load.window_ns);

    match load.mode {
        Mode::Closed { pipeline, think_ns } => {
            let pipeline = match pipeline {
                0 | 1 => String::new(),
                many => format!(", {many} requests outstanding on each"),
            };
            let think = match think_ns {
                0 => String::new(),
                ns => format!(", {} pause after each response", time_ns(ns)),
            };
            format!("closed loop, {connections} connections{pipeline}{think}, {window} measured")
        }
        Mode::Open {
            rate_per_s,
            arrivals,
        } => format!(
            "open loop, {} requests per second offered, {} arrivals, {connections} connections, \
             {window} measured",
            per_s(rate_per_s),
            stored_name(arrivals)
        ),
        Mode::Idle { heartbeat_ns } => {
            let heartbeat = heartbeat_ns.map_or_else(
                || "no heartbeats".to_owned(),
                |ns| format!("a heartbeat on each every {}", time_ns(ns)),
            );
            format!("{connections} connections held, {heartbeat}, {window} measured")
        }
    }
}

fn rates(report: &LoadReport<'_>) -> Vec<Block> {
    let load = report.load;
    let when = if matches!(load.mode, Mode::Open { .. }) {
        "due"
    } else {
        "sent"
    };

    let failed = known(load.error_share(), |share| {
        format!("{} of all that ended", percent(share))
    });
    let [requests, ok, failures] = [load.requests, load.ok, load.errors.total()].map(grouped);
    let head = load.response_head_bytes.map_or_else(String::new, |head| {
        format!("; the first head had {head} bytes")
    });
    let c = load.connections;
    let [wanted, opened, at_end, reconnects, dropped] =
        [c.wanted, c.opened, c.open_at_end, c.reconnects, c.dropped].map(grouped);

    // A throughput with what it counts.
    let amount = |value: Option<f64>, text: fn(f64) -> String, unit: &str, counts: &str| {
        known(value, |value| {
            format!("{:<16} {counts}", format!("{} {unit}", text(value)))
        })
    };
    vec![
        named(
            "requests",
            format!("{requests} {when}, {ok} responses 2xx, {failures} failures ({failed})"),
        ),
        named("responses/s", known(load.ok_per_s(), per_s)),
        named(
            "payload",
            amount(
                load.payload_bytes_per_s(),
                mega,
                "MB/s",
                "bodies of 2xx responses alone, 10^6 bytes",
            ),
        ),
        named(
            "http",
            match load.http_bytes {
                Some(_) => {
                    let counts = format!("heads and bodies of 2xx responses, 2^20 bytes{head}");
                    amount(load.http_bytes_per_s(), mebi, "MiB/s", &counts)
                }
                None => "n/a (the bytes of heads are not seen inside TLS and in HTTP/2)".to_owned(),
            },
        ),
        named("wire", {
            let counts = format!(
                "bits with frames and gaps, busier direction{}",
                link(report)
            );
            amount(report.wire_bps, |bps| fine(bps / 1e6), "Mbit/s", &counts)
        }),
        named(
            "connections",
            format!(
                "{wanted} wanted, {opened} open after the ramp, {at_end} at the end; {reconnects} \
                 opened again, {dropped} dropped while idle"
            ),
        ),
    ]
}

/// ` of eth0: 94.1 % of its 1.00 Gbit/s`
fn link(report: &LoadReport<'_>) -> String {
    let Some(nic) = report.client.and_then(|client| client.nic.as_ref()) else {
        return String::new();
    };
    let share = report.wire_bps.zip(nic.link_bps.filter(|bps| *bps > 0));
    let share = share.map_or_else(String::new, |(wire, link)| {
        format!(
            ": {} of its {}",
            percent(wire / link as f64),
            rate(link as f64)
        )
    });

    format!(" of {}{share}", nic.device)
}

/// Both ends, known or not.
fn ends(report: &LoadReport<'_>) -> [Block; 2] {
    let end = |name, end: Option<&EndpointStats>, unknown: &str| {
        let text = end.map(|end| cost(end, report.load.ok));
        named(name, text.unwrap_or_else(|| unknown.to_owned()))
    };
    [
        end("client", report.client, "not measured"),
        end(
            "server",
            report.server,
            "no agent there, so what it cost is not known",
        ),
    ]
}

/// Cost of a run at one end.
fn cost(side: &EndpointStats, ok: u64) -> String {
    let mut words = Vec::new();
    if let Some(ns) = side.process_cpu_ns.filter(|_| side.window_ns > 0) {
        words.push(format!(
            "program {} of one CPU",
            cpus(ns as f64 / side.window_ns as f64)
        ));
        if ok > 0 {
            words.push(format!(
                "{} of it per response",
                time(ns as f64 / ok as f64)
            ));
        }
    }

    words.extend(side.cpu_busy.map(|busy| match side.cpus {
        Some(cpus) => format!("all {cpus} CPUs {} busy", percent(busy)),
        None => format!("all CPUs {} busy", percent(busy)),
    }));
    words.extend(side.busiest_cpu_busy.map(|busy| match side.busiest_cpu {
        Some(cpu) => format!("busiest CPU ({cpu}) {}", percent(busy)),
        None => format!("busiest CPU {}", percent(busy)),
    }));
    words.extend(
        side.rss_bytes
            .map(|rss| format!("{} resident", bytes(rss as f64))),
    );
    words.extend(side.fds.map(|fds| format!("descriptors {}", peak(fds))));
    words.extend(
        side.time_wait
            .map(|sockets| format!("TIME_WAIT {}", peak(sockets))),
    );

    if words.is_empty() {
        words.push("nothing could be measured".to_owned());
    }

    words.join(", ")
}
