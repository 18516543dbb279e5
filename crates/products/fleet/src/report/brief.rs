//! The report that fits a terminal: what stands out, the rates of all pairs, and what to do.

use linerate_doctor::report::confidence;
use linerate_document::blocks::{Block, Document};
use linerate_document::short::SHORT_COLUMN;
use linerate_document::style::Style;
use linerate_model::finding::{Confidence, Finding};
use linerate_model::fleet::FleetReport;
use linerate_model::numbers::clock;

use super::footer::measured;
use super::not_run::Missing;
use super::opening::{self, NAME};
use super::{cells, ladder, large, matrix};
use crate::conclude::seen;

/// Most lines besides one for each host.
const LINES_MAX: usize = 8;
/// Most hosts with an effect of a fleet whose table of pairs does not fit.
const HOSTS_SHOWN: usize = 12;

/// The report in lines of 80 columns: one for each host, and at most [`LINES_MAX`] others.
pub(super) fn text(report: &FleetReport, style: Style) -> String {
    let written = |blocks| Document { name: NAME, blocks }.text(style);
    let mut head = vec![Block::Title(opening::title(report))];
    head.extend(tables(report, style));
    let head = written(head);
    let mut notes = notes(report);

    let details = details(report);
    let lines_max = report.header.hosts.len() + LINES_MAX;
    loop {
        let end = written(notes.iter().chain([&details]).map(entry).collect());
        let lines = head.lines().count() + end.lines().count();

        // The last note is the least important one, and an empty line is less.
        match lines_max.checked_sub(lines) {
            None if notes.pop().is_some() => {}
            None | Some(0) => return head + &end,
            Some(_) => return format!("{head}\n{end}"),
        }
    }
}

fn entry((label, text): &(&str, String)) -> Block {
    Block::entry(label, SHORT_COLUMN, text.as_str())
}

/// The rates of all pairs, or of racks where the pairs do not fit the terminal.
fn tables(report: &FleetReport, style: Style) -> Vec<Block> {
    let mut tables = Vec::new();
    for matrix in &matrix::matrices(report) {
        let table = cells::table(matrix, matrix.unit.corner());
        if table.fits(style) {
            tables.push(Block::Table(table));
        } else {
            tables.extend(large::brief(matrix, HOSTS_SHOWN));
        }
    }

    tables.extend(ladder::all_tables(report));
    tables
}

/// Evidence of the first finding and what to do, then the others and remarks.
fn notes(report: &FleetReport) -> Vec<(&'static str, String)> {
    let mut notes = Vec::new();
    let first = report.findings.first();
    notes.extend(first.map(|first| ("Seen", seen(first))));
    for step in opening::next_steps(report, Missing::short_steps) {
        notes.push(("Do", step));
    }
    notes.extend(first.and_then(to_do).map(|step| ("Do", step)));
    for other in report.findings.iter().skip(1) {
        notes.push(("Also", also(other)));
    }
    let remarks = opening::remarks(&report.header);
    for note in remarks.into_iter().chain(ladder::interference(report)) {
        notes.push(("Note", note));
    }

    notes
}

/// The commands of a finding, else its advice.
pub(super) fn to_do(finding: &Finding) -> Option<String> {
    match finding.remedy.as_slice() {
        [] => finding.advice.clone(),
        commands => Some(commands.join("; ")),
    }
}

/// `h3: A host is slow to receive (likely)`
fn also(finding: &Finding) -> String {
    let sure = match finding.confidence {
        Confidence::High => "",
        unsure => confidence(unsure),
    };
    format!("{}: {}{sure}", finding.subject, finding.title)
}

/// `56 of 56 cells in 0:18; -v, or linerate report last -o fleet.html`
fn details(report: &FleetReport) -> (&'static str, String) {
    let measured = measured(&report.cells);
    let elapsed = clock(report.header.elapsed_ns as f64 / 1e9);
    let text = format!("{measured} in {elapsed}; -v, or linerate report last -o fleet.html");
    ("Details", text)
}
