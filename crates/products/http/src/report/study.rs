//! The report of a study: the answers first, then section by section the numbers behind them.

mod brief;

use linerate_document::Style;
use linerate_document::blocks::{Block, Document};
use linerate_document::frame::Head;
use linerate_document::record::RunPage;
use linerate_document::table::Table;
use linerate_model::http::{Environment, NegotiatedProtocol, Study};
use linerate_model::numbers::{clock, rate};
use linerate_model::words::joined;

use super::labels::utc_time;
use super::plots::plots;
use super::preflight::preflight;
use super::tables;

/// Most bytes of a plan that are shown; a plan written by hand has a few thousand.
const PLAN_BYTES_MAX: usize = 64 << 10;

/// Name of the report.
const NAME: &str = "linerate http lab";

const HEADINGS: [&str; 3] = [
    "1 Baseline: is the path clean?",
    "2 Isolation: what does bare HTTP reach on it?",
    "3 Whole picture: throughput, latency, CPUs and limits of both ends",
];

/// The report as text without plots: what fits a terminal, or everything where it `is_verbose`.
/// Only commands to copy may be longer than a line.
pub fn text(study: &Study, is_verbose: bool, style: Style) -> String {
    let blocks = if is_verbose {
        verbose(study)
    } else {
        brief::blocks(study, style)
    };
    Document { name: NAME, blocks }.text(style)
}

fn verbose(study: &Study) -> Vec<Block> {
    let (title, remarks) = head(study);
    let mut blocks = vec![Block::Title(title)];
    blocks.extend(remarks.into_iter().map(Block::Remark));

    for ((heading, sentence), tables) in HEADINGS.iter().zip(sentences(study)).zip(sections(study))
    {
        blocks.push(Block::Heading((*heading).to_owned()));
        blocks.push(Block::Answer(
            sentence.unwrap_or_else(|| "not run".to_owned()),
        ));
        blocks.extend(tables.into_iter().map(Block::Table));
    }

    if !study.checks.is_empty() {
        blocks.push(Block::Heading("Checks before the runs".to_owned()));
        blocks.push(Block::Verbatim(preflight(&study.checks, Style::UNSTYLED)));
    }

    blocks.push(Block::Table(tables::environment(study)));
    blocks
}

/// The report as one HTML file: the answer, throughput of the matrix and the plots, all tables
/// folded.
pub fn html(study: &Study) -> String {
    let mut page = page(study);
    let (title, _) = head(study);
    page.head.title = format!("HTTP lab of {}", study.target);
    page.head.facts = vec![title];
    page.document(NAME).html()
}

/// The page but the title of its head.
pub(crate) fn page(study: &Study) -> RunPage {
    let (_, remarks) = head(study);
    let mut answers = sentences(study).into_iter().rev().flatten();
    let verdict = answers.next().unwrap_or_default();

    let mut blocks: Vec<Block> = tables::heat_map(study)
        .map(Block::Heat)
        .into_iter()
        .collect();
    blocks.extend(answers.map(Block::Answer));
    blocks.extend(plots(study).into_iter().map(Block::Plot));
    blocks.extend(remarks.into_iter().map(Block::Remark));
    let [baseline, payload, whole] = sections(study);
    RunPage {
        head: Head {
            verdict,
            ..Head::default()
        },
        blocks,
        details: folded_tables(study, [baseline, payload, whole]),
    }
}

/// The parts of the report of a record.
pub(crate) fn blocks(study: &Study) -> Vec<Block> {
    let (title, remarks) = head(study);
    let mut blocks = vec![Block::Title(title)];
    blocks.extend(
        sentences(study)
            .into_iter()
            .rev()
            .flatten()
            .map(Block::Answer),
    );

    let [baseline, payload, whole] = sections(study);
    let (heated, more): (Vec<Table>, Vec<Table>) = whole
        .into_iter()
        .partition(|table| table.title.starts_with(tables::HEAT_MAP));
    blocks.extend(heated.into_iter().map(|mut table| {
        table
            .notes
            .push("colour: share of the best of the payload".to_owned());
        Block::Table(table)
    }));
    blocks.extend(remarks.into_iter().map(Block::Remark));
    blocks.extend(plots(study).into_iter().map(Block::Plot));

    blocks.extend(folded_tables(study, [baseline, payload, more]));
    blocks
}

/// All tables, what was checked before, and the plan.
fn folded_tables(study: &Study, sections: [Vec<Table>; 3]) -> Vec<Block> {
    let tables = sections.into_iter().flatten();
    let tables = tables.chain([tables::environment(study)]);
    let mut blocks: Vec<Block> = tables.map(folded).collect();

    let mut fold = |name: &str, text| {
        blocks.push(Block::Details(name.to_owned(), vec![Block::Verbatim(text)]));
    };
    if !study.checks.is_empty() {
        fold(
            "Checks before the runs",
            preflight(&study.checks, Style::UNSTYLED),
        );
    }

    fold("Plan", study.plan.chars().take(PLAN_BYTES_MAX).collect());
    blocks
}

/// The answers of the sections; none to what was not run.
fn sentences(study: &Study) -> [Option<String>; 3] {
    let [path, isolation, whole] = study.sentences.clone();
    let none = || {
        (!study.rows.is_empty()).then(|| "No number of connections has a valid result.".to_owned())
    };
    [path, isolation, whole.or_else(none)]
}

/// A table under its title.
fn folded(table: Table) -> Block {
    Block::Details(
        table.title.clone(),
        vec![Block::Table(Table {
            title: String::new(),
            ..table
        })],
    )
}

/// The study as one JSON object whose keys are always in the same order; `schema` names its form.
pub fn json(study: &Study) -> String {
    linerate_document::pretty_json(study)
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
    [
        one(tables::baseline(study)),
        one(tables::payload(study)),
        whole,
    ]
}

/// Title of the study, and the lines below it: both ends and remarks.
fn head(study: &Study) -> (String, Vec<String>) {
    let title = format!(
        "{NAME} {}: {}, took {}, seed {}{}",
        study.target,
        utc_time(study.started_unix_ms),
        clock(study.elapsed_ns as f64 / 1e9),
        study.seed,
        if study.is_complete {
            ""
        } else {
            "; incomplete, with the runs finished by then"
        }
    );
    let mut lines = vec![
        format!("client: {}", host(&study.client)),
        match &study.server {
            Some(server) => format!("server: {}", host(server)),
            None => "server: no agent there, so what it cost is not known".to_owned(),
        },
    ];
    lines.extend(protocol(study));

    if let Some(why) = &study.ceiling_missing {
        lines.push(format!("responses/s that the network allows: n/a, {why}"));
    }

    lines.extend(study.notes.iter().map(|note| format!("note: {note}")));
    (title, lines)
}

/// `protocol: HTTP/2 over TLS 1.3 (TLS13_AES_256_GCM_SHA384), 8 requests at a time on each connection`;
/// HTTP/1.1 in plain text, the default, is not listed.
fn protocol(study: &Study) -> Option<String> {
    if study
        .protocol
        .iter()
        .all(NegotiatedProtocol::is_plain_http1)
    {
        return None;
    }

    let all = joined(&study.protocol, " and ");
    let runs = study.cells.iter().flat_map(|cell| &cell.runs);
    let streams = runs
        .filter_map(|run| run.load.as_ref())
        .map(|load| load.mode.streams())
        .max();
    let streams = streams
        .filter(|streams| *streams > 1)
        .map_or_else(String::new, |streams| {
            format!(", {streams} requests at a time on each connection")
        });

    Some(format!("protocol: {all}{streams}"))
}

fn host(host: &Environment) -> String {
    let mut words = vec![format!("linerate {}", host.version)];
    words.extend(host.kernel.as_ref().map(|kernel| format!("Linux {kernel}")));
    words.extend(host.cpus.map(|cpus| format!("{cpus} CPUs")));
    words.extend(host.device.clone());
    words.extend(host.link_bps.map(|bps| rate(bps as f64)));
    words.extend(host.mtu_bytes.map(|mtu| format!("MTU {mtu}")));
    words.join(", ")
}
