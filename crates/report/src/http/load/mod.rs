//! What one run of the load generator found, for a terminal.

mod cost;
mod errors;
mod json;
mod latency;
mod lines;

use linerate_model::http::{CellVerdict, Connections, EndpointStats, LoadResult, Mode};

use crate::numbers::rate;

use super::labels;
use super::numbers::{fine, grouped, known, mebi, mega, per_s, percent, time_ns};
use crate::document::style::Style;
use cost::{write_seconds, write_sides};
use errors::write_errors;
pub use json::load_json;
use latency::write_latency;
use lines::Lines;

/// One run of the load generator with what is known around it.
#[derive(Debug, Clone, Copy)]
pub struct LoadReport<'a> {
    /// The URL as the user wrote it.
    pub target: &'a str,
    /// What the generator found.
    pub load: &'a LoadResult,
    /// Bits per second on the wire in the busier direction, frames and gaps included; absent where unknown.
    pub wire_bps: Option<f64>,
    /// What it cost the client.
    pub client: Option<&'a EndpointStats>,
    /// What it cost the server; absent without an agent there.
    pub server: Option<&'a EndpointStats>,
    /// What held it back.
    pub verdict: Option<&'a CellVerdict>,
    /// Remarks, one line each: the server's own description, limits in force.
    pub remarks: &'a [String],
}

/// The run as text in lines of at most 120 columns.
#[must_use]
pub fn load_text(report: &LoadReport<'_>, style: Style) -> String {
    let mut out = Lines {
        text: String::new(),
        style,
    };
    let LoadReport { load, target, .. } = report;
    let protocol = load.protocol.as_ref().filter(|protocol| !protocol.is_plain_http1());
    let protocol = protocol.map_or_else(String::new, |protocol| format!("{protocol}, "));
    out.line(0, &format!("{target}: {protocol}{}", mode(load)));
    for remark in report.remarks {
        out.line(2, remark);
    }
    if let Some(verdict) = report.verdict {
        write_verdict(&mut out, verdict);
    }
    out.text.push('\n');
    write_rates(&mut out, report);
    out.text.push('\n');
    write_latency(&mut out, load);
    write_errors(&mut out, load);
    write_sides(&mut out, report);
    write_seconds(&mut out, load);
    for flag in &load.flags {
        out.line(0, &format!("flag {}", labels::flag(*flag)));
    }
    out.text
}

/// `open loop, 5,000 requests per second, poisson arrivals, 64 connections, 10.0 s measured`
fn mode(load: &LoadResult) -> String {
    let connections = grouped(load.connections.wanted);
    let window = time_ns(load.window_ns);
    match load.mode {
        Mode::Closed { pipeline, think_ns } => {
            let pipeline = if pipeline > 1 {
                format!(", {pipeline} requests outstanding on each")
            } else {
                String::new()
            };
            let think = if think_ns > 0 {
                format!(", {} pause after each answer", time_ns(think_ns))
            } else {
                String::new()
            };
            format!("closed loop, {connections} connections{pipeline}{think}, {window} measured")
        }
        Mode::Open { rate_per_s, arrivals } => format!(
            "open loop, {} requests per second offered, {} arrivals, {connections} connections, {window} measured",
            per_s(rate_per_s),
            labels::arrivals(arrivals)
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

fn write_verdict(out: &mut Lines, verdict: &CellVerdict) {
    let judgements = std::iter::once(&verdict.primary).chain(&verdict.contributing);
    for (place, judgement) in judgements.enumerate() {
        let sure = match place {
            0 => format!(" (confidence {})", verdict.confidence.name()),
            _ => String::new(),
        };
        let name = if place == 0 { "verdict" } else { "as well" };
        let evidence: Vec<String> = judgement.evidence.iter().map(ToString::to_string).collect();
        out.named(
            name,
            &format!("{}{sure}: {}", judgement.class.name(), evidence.join("; ")),
        );
        if !judgement.advice.is_empty() {
            out.named("", &judgement.advice);
        }
    }
}

fn write_rates(out: &mut Lines, report: &LoadReport<'_>) {
    let load = report.load;
    let when = if matches!(load.mode, Mode::Open { .. }) {
        "due"
    } else {
        "sent"
    };
    out.named(
        "requests",
        &format!(
            "{} {when} in the window, {} answered 2xx, {} failures ({})",
            grouped(load.requests),
            grouped(load.ok),
            grouped(load.errors.total()),
            known(load.error_share(), |share| format!(
                "{} of all that ended",
                percent(share)
            ))
        ),
    );
    out.named(
        "2xx",
        &known(load.ok_per_s(), |value| format!("{} per second", per_s(value))),
    );
    write_amounts(out, report);
    write_connections(out, load.connections);
}

/// The three throughputs, each with what it counts.
fn write_amounts(out: &mut Lines, report: &LoadReport<'_>) {
    let load = report.load;
    let unit = |value: Option<f64>, text: fn(f64) -> String, unit: &str, counts: &str| {
        known(value, |value| {
            format!("{:<16} {counts}", format!("{} {unit}", text(value)))
        })
    };
    out.named(
        "payload",
        &unit(
            load.payload_bytes_per_s(),
            mega,
            "MB/s",
            "bodies of 2xx answers alone, 10^6 bytes",
        ),
    );
    let head = load
        .response_head_bytes
        .map_or_else(String::new, |head| format!("; the first head had {head} bytes"));
    let counts = format!("heads and bodies of 2xx answers, 2^20 bytes{head}");
    let unseen = "n/a (the bytes of heads are not seen inside TLS and in HTTP/2)";
    match load.http_bytes {
        Some(_) => out.named("http", &unit(load.http_bytes_per_s(), mebi, "MiB/s", &counts)),
        None => out.named("http", unseen),
    }
    let counts = format!("bits with frames and gaps, busier direction{}", link(report));
    out.named("wire", &unit(report.wire_bps, |bps| fine(bps / 1e6), "Mbit/s", &counts));
}

fn write_connections(out: &mut Lines, c: Connections) {
    out.named(
        "connections",
        &format!(
            "{} wanted, {} open after the ramp, {} at the end; {} opened again, {} dropped while nothing was asked",
            grouped(c.wanted),
            grouped(c.opened),
            grouped(c.open_at_end),
            grouped(c.reconnects),
            grouped(c.dropped)
        ),
    );
}

/// ` of eth0: 94.1 % of its 1.00 Gbit/s`
fn link(report: &LoadReport<'_>) -> String {
    let Some(nic) = report.client.and_then(|client| client.nic.as_ref()) else {
        return String::new();
    };
    let share = report.wire_bps.zip(nic.link_bps.filter(|bps| *bps > 0));
    let share = share.map_or_else(String::new, |(wire, link)| {
        format!(": {} of its {}", percent(wire / link as f64), rate(link as f64))
    });
    format!(" of {}{share}", nic.device)
}
