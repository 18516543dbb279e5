//! Reports of a test of a path: the answer and the goodput first, then what limits it, then the
//! rest. Text, HTML and a stored record are one document.

mod charts;
mod details;
mod goodput;
mod page;
mod phases;
mod progress;
mod route;
mod rows;
mod scores;
mod short;
#[cfg(test)]
mod tests;
mod wording;

use linerate_doctor::report as doctor;
use linerate_document::blocks::{Block, Document};
use linerate_document::number::counted;
use linerate_document::record::{ProductReport, TimeRange};
use linerate_document::short::{Need, fitted};
use linerate_document::style::Style;
use linerate_document::{Glyphs, pretty_json, record};
use linerate_model::finding::Diagnosis;
use linerate_model::path::{PathEvent, PathReport, PathState, SampleSeries};
use linerate_model::printable::printable_json;
use linerate_model::record::{Detail, RunRecord};
use serde::Serialize;

pub use progress::{PhaseProgress, announcement, finished_line, live};

/// Name of the page.
const NAME: &str = "linerate test";

/// The report as text. `verbose` adds all percentiles, streams, the clock and how each rate was
/// limited.
pub fn text(
    report: &PathReport,
    diagnosis: Option<&Diagnosis>,
    verbose: bool,
    style: Style,
) -> String {
    let title = Block::Title(goodput::answer(report));
    let remarks = remarks(report).into_iter().map(Block::Remark);
    let head = std::iter::once(title).chain(remarks);
    let blocks = if verbose {
        head.chain(blocks(report, diagnosis)).collect()
    } else {
        let head = head.map(|block| (Need::Answer, block));
        let parts = head.chain(short::blocks(report, diagnosis, style.glyphs));
        fitted(parts.collect(), short::LINES_MAX, style)
    };
    Document { name: NAME, blocks }.text(style)
}

/// The report of a record of a test as one HTML file.
pub fn html(record: &RunRecord) -> String {
    let records = std::slice::from_ref(record);
    record::html(records, TimeRange::default(), RECORDS)
}

/// The report as one JSON object, schema `linerate.path/1`, with the diagnosis and the single
/// probes, if any, as members of it.
pub fn json(
    report: &PathReport,
    diagnosis: Option<&Diagnosis>,
    samples: &[SampleSeries],
) -> String {
    pretty_json(&Diagnosed {
        report,
        diagnosis,
        samples,
    })
}

/// An event as one line of JSON with its line end.
pub fn event_line(event: &PathEvent<'_>) -> String {
    // A value of these types always has a form as JSON.
    printable_json(&serde_json::to_string(event).unwrap_or_default()) + "\n"
}

#[derive(Serialize)]
struct Diagnosed<'a> {
    #[serde(flatten)]
    report: &'a PathReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    diagnosis: Option<&'a Diagnosis>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    samples: &'a [SampleSeries],
}

/// Remarks that qualify the whole report.
fn remarks(report: &PathReport) -> Vec<String> {
    let mut remarks = Vec::new();
    if report.state == PathState::Partial {
        remarks.push(format!(
            "The test is not complete; it took {}.",
            wording::ns(report.elapsed_ns)
        ));
    }

    if let Some(others) = report.concurrent_max.filter(|others| *others > 0) {
        let tests = counted(others as usize, "other test");
        remarks.push(format!(
            "The server ran {tests} at the same time: the rates are shared with them."
        ));
    }

    remarks
}

/// The parts of the long report but its head. Each check has a line, behind what was measured.
fn blocks(report: &PathReport, diagnosis: Option<&Diagnosis>) -> Vec<Block> {
    let mut blocks: Vec<Block> = goodput::table(report)
        .map(Block::Table)
        .into_iter()
        .collect();
    section(&mut blocks, scores::scores(report));
    section(
        &mut blocks,
        diagnosis.map(doctor::findings).unwrap_or_default(),
    );
    section(&mut blocks, rows::results(report));
    for table in route::tables(&report.path) {
        section(&mut blocks, vec![Block::Table(table)]);
    }
    blocks.extend(details::tables(report).into_iter().map(Block::Table));
    section(&mut blocks, rows::absent(report));
    section(
        &mut blocks,
        diagnosis.map(doctor::checks).unwrap_or_default(),
    );

    blocks
}

/// The report of a record of tests of a path.
pub const RECORDS: ProductReport = ProductReport {
    blocks: record_blocks,
    findings: doctor::cards,
    page: page::page,
    ..ProductReport::NONE
};

/// The report of the first test of a path in a record, without its title; `None` of a record without
/// one.
fn record_blocks(record: &RunRecord) -> Option<Vec<Block>> {
    let (first, others) = reports(record)?;
    let mut shown: Vec<Block> = others.map(Block::Remark).into_iter().collect();
    let parts = short::blocks(first, None, Glyphs::Ascii).into_iter();
    shown.extend(parts.map(|(_, block)| block));
    Some(shown)
}

/// The first test of a path in a record, and a remark where there are others.
fn reports(record: &RunRecord) -> Option<(&PathReport, Option<String>)> {
    let mut reports = record
        .trials
        .iter()
        .filter_map(|trial| match &trial.detail {
            Some(Detail::Path(report)) => Some(&**report),
            _ => None,
        });
    let first = reports.next()?;
    let count = 1 + reports.count();
    let others = (count > 1).then(|| format!("The first of {count} tests of the path."));
    Some((first, others))
}

/// Adds blocks below an empty line.
fn section(blocks: &mut Vec<Block>, more: Vec<Block>) {
    if !more.is_empty() {
        blocks.push(Block::Space);
        blocks.extend(more);
    }
}
