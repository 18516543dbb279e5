//! Reports of a fleet run: the strongest finding first, then all findings with evidence and next
//! command, then the cells. Text and HTML are one document over a [`FleetReport`], which is also
//! the JSON.

mod brief;
mod cells;
mod check;
mod csv;
mod footer;
mod hosts;
mod ladder;
mod large;
mod leftovers;
mod matrix;
mod not_run;
mod opening;
#[cfg(test)]
mod tests;

use crate::conclude::NO_FINDING;
use crate::conclude::trials::with_trials;
use linerate_doctor::report as doctor;
use linerate_document::frame::{Badge, Card, Head};
use linerate_document::number::counted;
use linerate_document::record::{ProductReport, RunPage};
use linerate_model::finding::Severity;
use linerate_model::fleet::{FleetReport, FleetRun};
use linerate_model::numbers::rate;
use linerate_model::record::{Body, RunRecord};
use linerate_model::stats::median;
use linerate_model::stored_name;

pub use check::{CheckReport, CheckRow, CheckState, check_text};
pub use csv::csv;
pub use footer::{Announced, announcement, progress_line};
pub use hosts::hosts_text;
pub use leftovers::{HostLeftovers, Leftover, leftovers_text};
use linerate_doctor::report::wrapped;
use linerate_document::Style;
use linerate_document::blocks::{Block, Document};
use opening::NAME;

/// The report as text: what fits a terminal, or where it is `verbose` every finding with its
/// evidence, all effects and references.
pub fn text(report: &FleetReport, verbose: bool, style: Style) -> String {
    if !verbose {
        return brief::text(report, style);
    }

    let mut blocks = vec![Block::Title(opening::title(report))];
    blocks.extend(self::blocks(report));
    Document { name: NAME, blocks }.text(style)
}

/// The report as one HTML file.
pub fn html(report: &FleetReport) -> String {
    page(report).document(NAME).html()
}

/// The page: the answer, the matrix or the ladder as a picture, findings, and all values folded.
fn page(report: &FleetReport) -> RunPage {
    let mut blocks = Vec::new();
    let next = opening::next_steps(report, not_run::Missing::steps);
    for remark in next.into_iter().chain(opening::remarks(&report.header)) {
        blocks.push(Block::Remark(remark));
    }

    let mut details = Vec::new();
    for matrix in matrix::matrices(report) {
        if matrix.hosts.len() > HEAT_HOSTS_MAX {
            blocks.extend(large::blocks(&matrix));
        } else {
            blocks.push(Block::Heat(cells::heat_map(&matrix)));
            details.push(Block::Details(
                cells::title(&matrix),
                cells::blocks(&matrix),
            ));
        }
    }

    blocks.extend(ladder::plot(report).map(Block::Plot));
    details.extend(ladder::blocks(report));
    if !report.findings.is_empty() {
        blocks.push(Block::Heading("Why".to_owned()));
    }
    for finding in &report.findings {
        let card = doctor::card(finding, &report.findings);
        blocks.push(Block::Finding(card));
    }
    details.push(Block::Paragraph(footer::line(report)));

    let verdict = opening::title(report);
    let mut hosts = report.header.hosts.iter();
    let first = report.findings.first();
    RunPage {
        head: Head {
            title: counted(report.header.hosts.len(), "host"),
            facts: footer::kind(&report.header).into_iter().collect(),
            is_name_first: hosts.any(|host| verdict.starts_with(host.id.as_str())),
            verdict,
            step: first.and_then(brief::to_do).unwrap_or_default(),
            badge: Some(badge(report)),
            cards: cards(report),
            ..Head::default()
        },
        blocks,
        details,
    }
}

/// Most hosts of a picture of all cells.
const HEAT_HOSTS_MAX: usize = 64;

fn badge(report: &FleetReport) -> Badge {
    let worst = report.findings.iter().map(|finding| finding.severity).max();
    let label = counted(report.findings.len(), "finding");
    match worst {
        Some(worst) => Badge::new(stored_name(worst), worst, label),
        None if opening::title(report) == NO_FINDING => Badge::new("ok", Severity::Info, label),
        // The answer names a slow host, or what has no result.
        None => Badge::new("warning", Severity::Medium, ""),
    }
}

/// Median, lowest and highest of all usable cells.
fn cards(report: &FleetReport) -> Vec<Card> {
    let usable = report.cells.iter().filter_map(|cell| cell.usable());
    let mut rates: Vec<f64> = usable.map(|of| of.goodput_bps).collect();
    rates.sort_by(f64::total_cmp);
    let mut cards = Vec::new();
    for (name, bps) in [
        ("median cell", median(&rates)),
        ("slowest cell", rates.first().copied()),
        ("fastest cell", rates.last().copied()),
    ] {
        cards.extend(bps.map(|bps| Card::new(name, rate(bps), "")));
    }

    cards
}

/// The report as one JSON object, schema `linerate.fleet/1`.
pub fn json(report: &FleetReport) -> String {
    linerate_document::pretty_json(report)
}

/// Records of fleet runs in reports of the history.
pub const RECORDS: ProductReport = ProductReport {
    name: |record| fleet_run(record).map(name),
    answers: |record| Some(vec![opening::title(&report_of(record)?)]),
    // A run that did not end has nothing but its title.
    blocks: |record| {
        fleet_run(record)?;
        Some(report_of(record).as_ref().map(blocks).unwrap_or_default())
    },
    page: |record| Some(page(&report_of(record)?)),
    ..ProductReport::NONE
};

/// The report of a record with all of its cells; `None` of a run that did not end.
fn report_of(record: &RunRecord) -> Option<FleetReport> {
    let report = fleet_run(record)?.report.as_ref()?;
    Some(with_trials(report, &record.trials))
}

fn fleet_run(record: &RunRecord) -> Option<&FleetRun> {
    match &record.body {
        Body::Fleet(run) => Some(run),
        _ => None,
    }
}

/// Title of a run of a record: `fleet, mesh, both ways`.
fn name(run: &FleetRun) -> String {
    let mut parts = vec!["fleet".to_owned()];
    if let Some(report) = &run.report {
        parts.extend(footer::kind(&report.header));
    }

    parts.join(", ")
}

/// Most hosts of a table of all cells.
const CELLS_HOSTS_MAX: usize = 24;

/// The parts of the report but its title.
fn blocks(report: &FleetReport) -> Vec<Block> {
    let mut blocks = Vec::new();
    for step in opening::next_steps(report, not_run::Missing::steps) {
        blocks.push(wrapped("next", step));
    }
    for remark in opening::remarks(&report.header) {
        blocks.push(wrapped("note", remark));
    }
    blocks.extend(opening::findings(&report.findings));

    // A table of all cells is readable up to some number of hosts; of more, outliers are listed.
    for matrix in matrix::matrices(report) {
        blocks.extend(if matrix.hosts.len() <= CELLS_HOSTS_MAX {
            cells::blocks(&matrix)
        } else {
            large::blocks(&matrix)
        });
    }

    blocks.extend(ladder::blocks(report));
    blocks.push(Block::Paragraph(footer::line(report)));
    blocks
}
