//! One run of the load generator: text for a terminal, JSON for programs.

mod cost;
mod latency;

use linerate_model::http::{CellVerdict, EndpointStats, Judgement, LoadResult, Mode};
use linerate_model::stored_name;
use serde_json::json;

use super::labels;
use super::numbers::{fine, grouped, known, mebi, mega, per_s, percent, time_ns};
use crate::document::style::Style;
use crate::document::{Block, Document};
use crate::glyphs::Glyphs;
use crate::numbers::rate;
use cost::{ends, seconds};
use latency::{errors, latency};

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
    document(report, style.glyphs).text(style)
}

/// The run as one JSON object: rates with their units in the names, then everything that was counted.
#[must_use]
pub fn load_json(report: &LoadReport<'_>) -> String {
    let load = report.load;
    let object = json!({
        "schema": "linerate.http-load/1",
        "target": report.target,
        "remarks": report.remarks,
        "rates": {
            "ok_per_s": load.ok_per_s(),
            "payload_bytes_per_s": load.payload_bytes_per_s(),
            "http_bytes_per_s": load.http_bytes_per_s(),
            "wire_bps": report.wire_bps,
            "error_share": load.error_share(),
        },
        "load": load,
        "client": report.client,
        "server": report.server,
        "verdict": report.verdict,
    });
    crate::pretty_json(&object)
}

fn document(report: &LoadReport<'_>, glyphs: Glyphs) -> Document {
    let LoadReport { load, target, .. } = report;
    let protocol = load.protocol.as_ref().filter(|protocol| !protocol.is_plain_http1());
    let protocol = protocol.map_or_else(String::new, |protocol| format!("{protocol}, "));
    let mut blocks =
        vec![Block::Title(format!("{target}: {protocol}{}", mode(load))), Block::List(report.remarks.to_vec())];
    blocks.extend(report.verdict.into_iter().flat_map(verdict));
    blocks.push(Block::Space);
    blocks.extend(rates(report));
    blocks.push(Block::Table(latency(load)));
    blocks.extend(errors(load).map(Block::Table));
    blocks.push(Block::Space);
    blocks.extend(ends(report));
    blocks.extend(seconds(load, glyphs));
    let flags = load.flags.iter();
    blocks.extend(flags.map(|flag| Block::Remark(format!("flag {}", labels::flag(*flag)))));
    let name = "linerate http load";
    Document { name, blocks }
}

/// Text beside its name.
fn named(name: &str, text: impl Into<String>) -> Block {
    Block::entry(name, NAME_CHARS, text)
}

const NAME_CHARS: usize = 13;

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
        Mode::Open { rate_per_s, arrivals } => format!(
            "open loop, {} requests per second offered, {} arrivals, {connections} connections, {window} measured",
            per_s(rate_per_s),
            stored_name(arrivals)
        ),
        Mode::Idle { heartbeat_ns } => {
            let heartbeat = heartbeat_ns
                .map_or_else(|| "no heartbeats".to_owned(), |ns| format!("a heartbeat on each every {}", time_ns(ns)));
            format!("{connections} connections held, {heartbeat}, {window} measured")
        }
    }
}

fn verdict(verdict: &CellVerdict) -> Vec<Block> {
    let sure = format!(" (confidence {})", stored_name(verdict.confidence));
    let contributing = verdict.contributing.iter().map(|judgement| ("as well", "", judgement));
    let judgements = std::iter::once(("verdict", sure.as_str(), &verdict.primary)).chain(contributing);
    let lines = |(name, sure, judgement): (&str, &str, &Judgement)| {
        let evidence: Vec<String> = judgement.evidence.iter().map(ToString::to_string).collect();
        let class = stored_name(judgement.class);
        let advice = Some(&judgement.advice).filter(|advice| !advice.is_empty());
        let first = named(name, format!("{class}{sure}: {}", evidence.join("; ")));
        std::iter::once(first).chain(advice.map(|advice| named("", advice.as_str()))).collect::<Vec<_>>()
    };
    judgements.flat_map(lines).collect()
}

fn rates(report: &LoadReport<'_>) -> Vec<Block> {
    let load = report.load;
    let when = if matches!(load.mode, Mode::Open { .. }) { "due" } else { "sent" };
    let failed = known(load.error_share(), |share| format!("{} of all that ended", percent(share)));
    let [requests, ok, failures] = [load.requests, load.ok, load.errors.total()].map(grouped);
    let head = load.response_head_bytes.map_or_else(String::new, |head| format!("; the first head had {head} bytes"));
    let c = load.connections;
    let [wanted, opened, at_end, reconnects, dropped] =
        [c.wanted, c.opened, c.open_at_end, c.reconnects, c.dropped].map(grouped);
    // A throughput with what it counts.
    let amount = |value: Option<f64>, text: fn(f64) -> String, unit: &str, counts: &str| {
        known(value, |value| format!("{:<16} {counts}", format!("{} {unit}", text(value))))
    };
    vec![
        named(
            "requests",
            format!("{requests} {when} in the window, {ok} answered 2xx, {failures} failures ({failed})"),
        ),
        named("2xx", known(load.ok_per_s(), |value| format!("{} per second", per_s(value)))),
        named("payload", amount(load.payload_bytes_per_s(), mega, "MB/s", "bodies of 2xx answers alone, 10^6 bytes")),
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
            let counts = format!("bits with frames and gaps, busier direction{}", link(report));
            amount(report.wire_bps, |bps| fine(bps / 1e6), "Mbit/s", &counts)
        }),
        named(
            "connections",
            format!(
                "{wanted} wanted, {opened} open after the ramp, {at_end} at the end; {reconnects} opened again, {dropped} \
             dropped while nothing was asked"
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
        format!(": {} of its {}", percent(wire / link as f64), rate(link as f64))
    });
    format!(" of {}{share}", nic.device)
}
