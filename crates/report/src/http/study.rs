//! The report of a study: the answers first, then section by section the numbers behind them.

use linerate_model::http::{Environment, NegotiatedProtocol, Study};

use super::numbers::moment;
use super::plots::plots;
use super::preflight::preflight;
use super::tables;
use crate::document::plot::Plot;
use crate::document::style::Style;
use crate::document::table::Table;
use crate::document::{Block, Document};
use crate::numbers::{clock, rate};

/// Most bytes of a plan that are shown; a plan written by hand has a few thousand.
const PLAN_BYTES_MAX: usize = 64 << 10;

const HEADINGS: [&str; 3] = [
    "1 Baseline: is the path clean?",
    "2 Isolation: what does bare HTTP reach on it?",
    "3 Whole picture: throughput, latency, processors and limits of both ends",
];

/// The report as text in lines of at most 120 columns, without plots; only commands to copy may be longer.
#[must_use]
pub fn text(study: &Study, style: Style) -> String {
    document(study, Vec::new()).text(style)
}

/// The report as one HTML file.
#[must_use]
pub fn html(study: &Study) -> String {
    document(study, plots(study)).html()
}

/// The study as one JSON object whose keys are always in the same order; `schema` names its form.
#[must_use]
pub fn json(study: &Study) -> String {
    crate::pretty_json(study)
}

fn document(study: &Study, plots: Vec<Plot>) -> Document {
    let mut lines = head(study).into_iter();
    let mut blocks: Vec<Block> = lines.next().map(Block::Title).into_iter().collect();
    blocks.extend(lines.map(Block::Remark));
    for ((heading, sentence), tables) in HEADINGS.iter().zip(&study.sentences).zip(sections(study)) {
        blocks.push(Block::Heading((*heading).to_owned()));
        blocks.push(Block::Answer(sentence.clone().unwrap_or_else(|| "not run".to_owned())));
        blocks.extend(tables.into_iter().map(Block::Table));
    }
    if !plots.is_empty() {
        blocks.push(Block::Heading("Plots".to_owned()));
        blocks.extend(plots.into_iter().map(Block::Plot));
    }
    if !study.checks.is_empty() {
        blocks.push(Block::Heading("T6 preflight".to_owned()));
        blocks.push(Block::Verbatim(preflight(&study.checks, Style::UNSTYLED)));
    }
    blocks.push(Block::Table(tables::environment(study)));
    let plan: String = study.plan.chars().take(PLAN_BYTES_MAX).collect();
    blocks.push(Block::Details("Plan", Box::new(Block::Verbatim(plan))));
    Document { name: "linerate http lab", blocks }
}

/// The tables of each section.
fn sections(study: &Study) -> [Vec<Table>; 3] {
    let mut whole = tables::matrices(study);
    let more = [
        tables::rows(study),
        tables::idle(study),
        tables::busy(study),
        tables::passes(study),
        tables::limits(study),
        tables::verdicts(study),
    ];
    whole.extend(more.into_iter().flatten());
    let one = |table: Option<Table>| table.into_iter().collect();
    [one(tables::baseline(study)), one(tables::payload(study)), whole]
}

/// What was run, from where to where, and what else must be known of it.
fn head(study: &Study) -> Vec<String> {
    let mut lines = vec![
        format!(
            "linerate http lab {}: {}, took {}, seed {}",
            study.target,
            moment(study.started_unix_ms),
            clock(study.elapsed_ns as f64 / 1e9),
            study.seed
        ),
        format!("client: {}", host(&study.client)),
        match &study.server {
            Some(server) => format!("server: {}", host(server)),
            None => "server: no agent there, so what it cost is not known".to_owned(),
        },
    ];
    lines.extend(protocol(study));
    if let Some(why) = &study.ceiling_missing {
        lines.push(format!("2xx/s that the network allows (X_net), and shares of it: n/a, {why}"));
    }
    if !study.is_complete {
        lines.push("It did not come to its end: what was finished by then stands here".to_owned());
    }
    lines.extend(study.notes.iter().map(|note| format!("note: {note}")));
    lines
}

/// `protocol: HTTP/2 over TLS 1.3 (TLS13_AES_256_GCM_SHA384), 8 requests at a time on each connection`; HTTP/1.1 in
/// plain text, the default, is not listed.
fn protocol(study: &Study) -> Option<String> {
    if study.protocol.iter().all(NegotiatedProtocol::is_plain_http1) {
        return None;
    }
    let all: Vec<String> = study.protocol.iter().map(ToString::to_string).collect();
    let runs = study.cells.iter().flat_map(|cell| &cell.runs);
    let streams = runs.filter_map(|run| run.load.as_ref()).map(|load| load.mode.streams()).max();
    let streams = streams
        .filter(|streams| *streams > 1)
        .map_or_else(String::new, |streams| format!(", {streams} requests at a time on each connection"));
    Some(format!("protocol: {}{streams}", all.join(" and ")))
}

fn host(host: &Environment) -> String {
    let mut words = vec![format!("linerate {}", host.version)];
    words.extend(host.kernel.as_ref().map(|kernel| format!("Linux {kernel}")));
    words.extend(host.cpus.map(|cpus| format!("{cpus} processors")));
    words.extend(host.device.clone());
    words.extend(host.link_bps.map(|bps| rate(bps as f64)));
    words.extend(host.mtu_bytes.map(|mtu| format!("MTU {mtu}")));
    words.join(", ")
}
