//! One run of the load generator as text.

mod latency;

use linerate_document::Style;
use linerate_document::blocks::{Block, Document};
use linerate_model::finding::Confidence;
use linerate_model::http::{
    CellVerdict, EndpointStats, ErrorClass, Judgement, LoadResult, Mode, VerdictClass,
};
use linerate_model::numbers::{bytes, rate};
use linerate_model::stored_name;

use super::labels;
use super::numbers::{
    cpus, fine, grouped, known, mebi, mega, peak, per_s, percent, quantile, time, time_ns,
};
use latency::{errors, latency};

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

/// The run as text in lines of at most 120 columns: its result, what limited it and what to do, and
/// everything else where it `is_verbose`.
pub fn load_text(report: &LoadReport<'_>, is_verbose: bool, style: Style) -> String {
    Document {
        name: "linerate http load",
        blocks: load_blocks(report, is_verbose),
    }
    .text(style)
}

/// The parts of the report.
pub(crate) fn load_blocks(report: &LoadReport<'_>, is_verbose: bool) -> Vec<Block> {
    let mut blocks = vec![Block::entry("RESULT", ANSWER_CHARS, result(report.load))];
    blocks.extend(
        report
            .verdict
            .map(|verdict| limit(&verdict.primary, verdict.confidence)),
    );
    blocks.extend(not_accepted(report.load).map(|text| Block::entry("NEXT", ANSWER_CHARS, text)));

    if is_verbose {
        blocks.push(Block::Space);
        blocks.extend(details(report));
    }

    let flags = report.load.flags.iter();
    blocks.extend(flags.map(|flag| Block::entry("NOTE", ANSWER_CHARS, labels::flag(*flag))));
    blocks
}

/// `990 responses/s, 1.01 MB/s; 52 errors (0.52 %: 12 addr_not_avail, 40 timeout); p50 270 us, p90 840 us, p99 12.0 ms`
fn result(load: &LoadResult) -> String {
    let rate = match load.mode {
        Mode::Idle { .. } => held(load),
        _ => load.ok_per_s().zip(load.payload_bytes_per_s()).map_or_else(
            || "no request was sent".to_owned(),
            |(ok, payload)| format!("{} responses/s, {} MB/s", per_s(ok), mega(payload)),
        ),
    };
    let classes = load
        .errors
        .iter()
        .map(|(class, error)| format!("{} {}", grouped(error.count), stored_name(class)));
    let is_held = matches!(load.mode, Mode::Idle { .. }) && load.requests == 0;
    let errors = match load.errors.total() {
        0 => "no errors".to_owned(),
        // Without requests there is nothing that they are a share of.
        total if is_held => format!(
            "{} errors ({})",
            grouped(total),
            classes.collect::<Vec<_>>().join(", ")
        ),
        total => format!(
            "{} errors ({}: {})",
            grouped(total),
            known(load.error_share(), percent),
            classes.collect::<Vec<_>>().join(", ")
        ),
    };

    let latency = &load.latency;
    let quantiles = [
        ("p50", latency.p50),
        ("p90", latency.p90),
        ("p99", latency.p99),
        ("p99.9", latency.p999),
        ("max", latency.max),
    ];
    let quantiles = quantiles.into_iter().filter(|(_, ns)| ns.is_some());
    let quantiles: Vec<String> = quantiles
        .map(|(name, ns)| format!("{name} {}", quantile(ns, latency.n)))
        .collect();
    let parts = [rate, errors, quantiles.join(", ")];

    parts
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("; ")
}

/// `30 of 200 connections held`
fn held(load: &LoadResult) -> String {
    let c = load.connections;
    let (held, wanted) = (
        c.answered_at_end.unwrap_or(c.open_at_end),
        grouped(c.wanted),
    );
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
        "connections without a response wait in the server's listen queue (`ss -lnt` there: \
         Recv-Q) until it accepts them: check its limit of descriptors (ulimit -n, LimitNOFILE=) \
         and of connections, and at its log",
    )
}

/// The limit of the run, its confidence, and the next step.
fn limit(judgement: &Judgement, confidence: Confidence) -> Block {
    let label = if judgement.class == VerdictClass::Invalid {
        "INVALID"
    } else {
        "LIMIT"
    };
    let evidence: Vec<String> = judgement.evidence.iter().map(ToString::to_string).collect();
    let class = stored_name(judgement.class);
    let mut text = format!(
        "{class} (confidence {}): {}",
        stored_name(confidence),
        evidence.join("; ")
    );
    if !text.contains(&judgement.advice) {
        let next = if judgement.class == VerdictClass::NotSaturated {
            ""
        } else {
            "next: "
        };
        text += &format!("; {next}{}", judgement.advice);
    }

    Block::entry(label, ANSWER_CHARS, text)
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
    blocks.extend(
        report
            .verdict
            .into_iter()
            .flat_map(|verdict| contributing(&verdict.contributing)),
    );
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
/// Column of the first lines.
const ANSWER_CHARS: usize = 9;

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
                ns => format!(", {} pause after each answer", time_ns(ns)),
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

fn contributing(judgements: &[Judgement]) -> Vec<Block> {
    let lines = |judgement: &Judgement| {
        let evidence: Vec<String> = judgement.evidence.iter().map(ToString::to_string).collect();
        let advice = Some(&judgement.advice).filter(|advice| !advice.is_empty());
        let first = named(
            "as well",
            format!("{}: {}", stored_name(judgement.class), evidence.join("; ")),
        );
        std::iter::once(first)
            .chain(advice.map(|advice| named("", advice.as_str())))
            .collect::<Vec<_>>()
    };
    judgements.iter().flat_map(lines).collect()
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
            format!(
                "{requests} {when} in the window, {ok} answered 2xx, {failures} failures ({failed})"
            ),
        ),
        named("responses/s", known(load.ok_per_s(), per_s)),
        named(
            "payload",
            amount(
                load.payload_bytes_per_s(),
                mega,
                "MB/s",
                "bodies of 2xx answers alone, 10^6 bytes",
            ),
        ),
        named(
            "http",
            match load.http_bytes {
                Some(_) => {
                    let counts = format!("heads and bodies of 2xx answers, 2^20 bytes{head}");
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
                 opened again, {dropped} dropped while nothing was asked"
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
fn ends(report: &LoadReport<'_>) -> Vec<Block> {
    let ends = [
        ("client", report.client, "not measured"),
        (
            "server",
            report.server,
            "no agent there, so what it cost is not known",
        ),
    ];
    let line = |(name, end, unknown): (&str, Option<&EndpointStats>, &str)| {
        named(
            name,
            end.map_or_else(|| unknown.to_owned(), |end| cost(end, report.load.ok)),
        )
    };
    ends.into_iter().map(line).collect()
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
            words.push(format!("{} of it per 2xx", time(ns as f64 / ok as f64)));
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
