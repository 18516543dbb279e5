//! The part before the cells: remarks about the whole run, and its findings.

use crate::conclude::{NO_FINDING, headline};
use linerate_model::finding::Finding;
use linerate_model::fleet::{FleetHeader, FleetReport};
use linerate_model::stored_name;

use super::not_run::Missing;
use super::{ladder, not_run};
use linerate_doctor::report::{doubt, graded, steps, wrapped};
use linerate_document::blocks::Block;
use linerate_document::number::counted;

/// Name of the page.
pub(super) const NAME: &str = "linerate fleet";

/// The strongest finding; without one, what the cells allow to state.
pub(super) fn title(report: &FleetReport) -> String {
    let cells = &report.cells;
    let measured = cells.iter().filter(|cell| cell.usable().is_some()).count();
    let all = counted(cells.len(), "cell");
    let missing = Missing::of(cells);
    let found = match ladder::slow_alone(report) {
        _ if !report.findings.is_empty() => headline(&report.findings, missing.is_none()),
        _ if measured == 0 => format!("no result: none of {all} was measured"),
        Some(slow) => slow,
        None if measured < cells.len() => format!("{NO_FINDING} ({measured} of {all} usable)"),
        None => NO_FINDING.to_owned(),
    };

    match missing {
        Some(missing) => format!("{found}; {}", missing.summary()),
        None => found,
    }
}

/// Next steps for the hosts and pairs without a result.
pub(super) fn next_steps(report: &FleetReport, steps: fn(&Missing) -> Vec<String>) -> Vec<String> {
    let missing = Missing::of(&report.cells);
    missing.as_ref().map(steps).unwrap_or_default()
}

/// Remarks about the whole report.
pub(super) fn remarks(header: &FleetHeader) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(ended) = &header.ended {
        remarks.push(format!("the run ended early: {}", not_run::reason(ended)));
    }

    if header.is_control_shared {
        remarks.push("control connections share the tested network".to_owned());
    }

    let targets = header.hosts.iter().filter(|host| host.is_target_only);
    let targets: Vec<&str> = targets.map(|host| host.id.as_str()).collect();
    let what = match targets.len() {
        0 => return remarks,
        1 => "is a server",
        _ => "are servers",
    };
    remarks.push(format!(
        "{} {what} without an agent: facts, CPU and clock are not known, one test at a time",
        targets.join(", ")
    ));
    remarks
}

/// The findings with their evidence.
pub(super) fn findings(findings: &[Finding]) -> Vec<Block> {
    let mut blocks = Vec::new();
    for finding in findings {
        let Finding {
            id, subject, title, ..
        } = finding;
        let doubt = doubt(finding.confidence);
        let severity = stored_name(finding.severity).to_uppercase();
        let head = format!("{id}  {subject}: {title}{doubt}");
        blocks.push(Block::Space);
        blocks.push(graded(&severity, finding.severity, &head));

        let mut label = "  seen";
        for seen in &finding.evidence {
            blocks.push(wrapped(label, seen.to_string()));
            label = "";
        }
        blocks.push(wrapped("  why", &finding.explanation));
        blocks.extend(steps(finding, findings));
        blocks.push(wrapped("  see", &finding.reference));
    }

    blocks
}
