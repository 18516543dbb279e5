//! Reports of a fleet run: the strongest finding first, then all findings with evidence and next
//! command, then the cells. Text and HTML are one document over a [`FleetReport`], which is also
//! the JSON.

mod brief;
mod cells;
mod check;
mod csv;
mod depth;
mod footer;
mod hosts;
mod ladder;
mod large;
mod leftovers;
mod matrix;
mod missing;
mod not_run;
mod opening;
mod progress;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::conclude::FleetOutcome;
use crate::conclude::trials::with_trials;
use crate::plan::{PlanHost, PlannedRun};
use linerate_document::record::ProductReport;
use linerate_model::fleet::{FleetHeader, FleetHost, FleetReport, FleetRun, HostId};
use linerate_model::record::{Body, RunRecord, Trial};

pub use check::{CheckReport, CheckRow, CheckState, check_text};
pub use csv::csv;
use depth::Depth;
pub use hosts::hosts_text;
pub use leftovers::{HostLeftovers, Leftover, leftovers_text};
use linerate_doctor::report::wrapped;
use linerate_document::Style;
use linerate_document::blocks::{Block, Document};
pub use progress::{Announced, announcement, progress_line};

/// Facts of a run that the coordinator knows beside its plan and its outcome.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunFacts {
    /// Id of the run, where it is stored.
    pub run_id: Option<String>,
    /// Time of the run.
    pub elapsed: Duration,
    /// Control connections use the network under test, or it is not known that they do not.
    pub is_control_shared: bool,
    /// Speeds of the links under test in bit/s, where they are known.
    pub links_bps: BTreeMap<HostId, f64>,
}

/// The report of a run.
pub fn report(run: &PlannedRun, outcome: FleetOutcome, facts: RunFacts) -> FleetReport {
    let plan = &run.plan;
    let host = |host: &PlanHost| FleetHost {
        id: host.id.clone(),
        rack: host.rack.clone(),
        link_bps: facts.links_bps.get(&host.id).copied(),
        is_target_only: host.is_target_only,
    };
    let header = FleetHeader {
        hosts: plan.hosts.iter().map(host).collect(),
        run_id: facts.run_id,
        plan: run.hash,
        topology: (&plan.topology).into(),
        mode: plan.mode,
        direction: plan.direction,
        is_control_shared: facts.is_control_shared,
        rounds: outcome.rounds,
        // 584 years of nanoseconds fit into 64 bits.
        elapsed_ns: u64::try_from(facts.elapsed.as_nanos()).unwrap_or(u64::MAX),
        seed: plan.seed,
        ended: outcome.ended,
    };

    FleetReport {
        cells: outcome.cells,
        effects: outcome.effects,
        ladder: outcome.ladder,
        poisonings: outcome.poisonings,
        findings: outcome.findings,
        ..FleetReport::new(header)
    }
}

/// The report as text: what fits a terminal, or where it is `verbose` every finding with its
/// evidence, all effects and references.
pub fn text(report: &FleetReport, verbose: bool, style: Style) -> String {
    if verbose {
        document(report, Depth::Long).text(style)
    } else {
        brief::text(report, style)
    }
}

/// The report as one HTML file.
pub fn html(report: &FleetReport) -> String {
    document(report, Depth::Page).html()
}

/// The report as one JSON object, schema `linerate.fleet/1`.
pub fn json(report: &FleetReport) -> String {
    linerate_document::pretty_json(report)
}

/// Records of fleet runs in reports of the history.
pub const RECORDS: ProductReport = ProductReport {
    name: |record| fleet_run(record).map(name),
    answers: |record| {
        let run = fleet_run(record).filter(|run| run.report.is_some())?;
        Some(answer(run, &record.trials))
    },
    blocks: |record, is_page| {
        fleet_run(record).map(|run| record_blocks(run, &record.trials, is_page))
    },
    ..ProductReport::NONE
};

fn fleet_run(record: &RunRecord) -> Option<&FleetRun> {
    match &record.body {
        Body::Fleet(run) => Some(run),
        _ => None,
    }
}

/// Title of a run of a record: `fleet, mesh, both ways`.
fn name(run: &FleetRun) -> String {
    let kind = run
        .report
        .iter()
        .flat_map(|report| footer::kind(&report.header));
    std::iter::once("fleet".to_owned())
        .chain(kind)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Answer of a run of a record.
fn answer(run: &FleetRun, trials: &[Trial]) -> Vec<String> {
    run.report
        .iter()
        .map(|report| opening::title(&with_trials(report, trials)))
        .collect()
}

/// The report of a run of a record but its title; nothing of one that did not end.
fn record_blocks(run: &FleetRun, trials: &[Trial], is_page: bool) -> Vec<Block> {
    let depth = if is_page { Depth::Page } else { Depth::Long };
    run.report
        .iter()
        .flat_map(|report| blocks(&with_trials(report, trials), depth))
        .collect()
}

fn document(report: &FleetReport, depth: Depth) -> Document {
    let mut blocks = vec![Block::Title(opening::title(report))];
    blocks.extend(self::blocks(report, depth));
    Document {
        name: "linerate fleet",
        blocks,
    }
}

/// The parts of the report but its title.
fn blocks(report: &FleetReport, depth: Depth) -> Vec<Block> {
    let next = opening::next_steps(report, missing::Missing::steps).into_iter();
    let mut blocks: Vec<Block> = next.map(|step| wrapped("next", step)).collect();
    let remarks = opening::remarks(&report.header).into_iter();
    blocks.extend(remarks.map(|remark| wrapped("note", remark)));
    blocks.extend(opening::findings(&report.findings));

    // A table of all cells is readable up to some number of hosts; of more, outliers are listed.
    for matrix in matrix::matrices(report) {
        blocks.extend(match matrix.hosts.len() <= depth.cells_hosts_max() {
            true => cells::blocks(&matrix),
            false => large::blocks(&matrix),
        });
    }

    blocks.extend(ladder::blocks(report));
    blocks.push(Block::Paragraph(footer::line(report)));
    blocks
}
