//! The report that fits a terminal: the answer, the best of each payload, what limits it, what to do.

use linerate_document::blocks::Block;
use linerate_document::short::{Need, SHORT_COLUMN, fitted};
use linerate_document::style::Style;
use linerate_document::table::Table;
use linerate_model::http::{CheckStatus, Study};
use linerate_model::numbers::clock;
use linerate_model::printable::printable_start;
use linerate_model::words::joined;

use super::{protocol, sentences};
use crate::report::grid::{Grid, by_payload, quantile_of};
use crate::report::labels::{self, counted, known, mega, payload, per_s};
use crate::report::tables::by_advice;

/// Most lines.
const LINES_MAX: usize = 14;
/// Characters of the URL.
const TARGET_CHARS_MAX: usize = 60;
/// Payloads of the table.
const ROWS_MAX: usize = 6;

/// The report in at most [`LINES_MAX`] lines of 80 columns.
pub(super) fn blocks(study: &Study, style: Style) -> Vec<Block> {
    let [path, isolation, whole] = sentences(study);
    // The last part that was run has the answer.
    let answers = [whole, isolation, path.clone()];
    let answer = answers.into_iter().flatten().next();
    let state = if study.is_complete {
        ""
    } else {
        "incomplete: "
    };
    let answer = answer.unwrap_or_else(|| "no result".to_owned());
    let target = printable_start(&study.target, TARGET_CHARS_MAX);
    let title = Block::Title(format!("{target}: {state}{answer}"));

    let mut parts = vec![(Need::Answer, title)];
    let found = cells(study).map(|table| (Need::Answer, Block::Table(table)));
    parts.extend(found);
    parts.push((Need::Answer, Block::Space));
    parts.extend(notes(study, path));
    fitted(parts, LINES_MAX, style)
}

/// The best number of connections of each payload, or the only one.
fn cells(study: &Study) -> Option<Table> {
    let mut cells = Grid::new(study).best_stable();
    if cells.is_empty() {
        cells = by_payload(study);
    }
    let shown = cells.get(..ROWS_MAX).unwrap_or(&cells);
    Table::of("", "", shown)
        .text("payload", |cell| payload(cell.key.payload_bytes))
        .number("conns", |cell| cell.key.connections.to_string())
        .number("responses/s", |cell| known(cell.median.ok_per_s, per_s))
        .number("MB/s", |cell| known(cell.median.payload_bytes_per_s, mega))
        .number("p99", |cell| {
            quantile_of(cell, cell.median.p99_ns, |latency| latency.p99)
        })
        .text("limit", |cell| labels::limit(cell.verdict.primary.class))
        .non_empty()
}

fn notes(study: &Study, path: Option<String>) -> Vec<(Need, Block)> {
    let mut parts = Vec::new();
    let mut add = |need, label, texts: Vec<String>| {
        let entries = Block::entries(label, SHORT_COLUMN, texts);
        parts.extend(entries.map(|entry| (need, entry)));
    };

    let missed = study
        .passes
        .iter()
        .filter(|pass| pass.is_met == Some(false));
    let missed = missed.map(|pass| format!("{}: {}", pass.what, pass.evidence));
    add(Need::Finding, "Missed", missed.collect());
    // The first of those for most cells.
    let advised = by_advice(study)
        .into_iter()
        .rev()
        .max_by_key(|(_, cells, _)| *cells);
    let advised = advised
        .map(|(limit, cells, advice)| format!("{limit} ({}): {advice}", counted(cells, "cell")));
    add(Need::Step, "Limit", advised.into_iter().collect());
    add(Need::Finding, "Path", path.into_iter().collect());
    add(Need::Finding, "Checks", checks(study).into_iter().collect());
    add(Need::Detail, "Note", study.notes.clone());
    add(Need::Detail, "Note", protocol(study).into_iter().collect());

    let runs: usize = study.cells.iter().map(|cell| cell.runs.len()).sum();
    let took = clock(study.elapsed_ns as f64 / 1e9);
    let details = format!(
        "{} in {took}; -v shows all, --html FILE draws it",
        counted(runs, "run")
    );
    add(Need::Answer, "Details", vec![details]);
    parts
}

/// Checks before the runs that did not pass.
fn checks(study: &Study) -> Option<String> {
    let named = |wanted: CheckStatus, word: &str| {
        let of = study.checks.iter().filter(|check| check.status == wanted);
        let names = joined(of.map(|check| &check.id), ", ");
        (!names.is_empty()).then(|| format!("{word} {names}"))
    };
    let parts = [
        named(CheckStatus::Fail, "failed"),
        named(CheckStatus::Warn, "warning"),
    ];
    Some(joined(parts.into_iter().flatten(), "; ")).filter(|parts| !parts.is_empty())
}
