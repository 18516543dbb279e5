//! The part before the cells: remarks about the whole run, and its findings.

use crate::conclude::{NO_FINDING, headline};
use linerate_model::finding::Finding;
use linerate_model::fleet::{FleetHeader, FleetReport};
use linerate_model::stored_name;

use super::missing::Missing;
use super::{ladder, not_run};
use linerate_doctor::report::{doubt, graded, steps, wrapped};
use linerate_document::blocks::Block;
use linerate_document::number::counted;

/// The strongest finding; without one, what the cells allow to state.
pub(super) fn title(report: &FleetReport) -> String {
    let measured = report
        .cells
        .iter()
        .filter(|cell| cell.usable().is_some())
        .count();
    let all = counted(report.cells.len(), "cell");
    let missing = Missing::of(&report.cells);
    let found = match ladder::slow_alone(report) {
        _ if !report.findings.is_empty() => headline(&report.findings, missing.is_none()),
        _ if measured == 0 => format!("no result: none of {all} was measured"),
        Some(slow) => slow,
        None if measured < report.cells.len() => {
            format!("{NO_FINDING} ({measured} of {all} usable)")
        }
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

    let targets: Vec<&str> = header
        .hosts
        .iter()
        .filter(|host| host.is_target_only)
        .map(|host| host.id.as_str())
        .collect();
    if !targets.is_empty() {
        let what = if targets.len() == 1 {
            "is a server"
        } else {
            "are servers"
        };
        let names = targets.join(", ");
        remarks.push(format!(
            "{names} {what} without an agent: facts, CPU and clock are not known, one test at a \
             time"
        ));
    }

    remarks
}

/// The findings with their evidence.
pub(super) fn findings(findings: &[Finding]) -> Vec<Block> {
    let mut blocks = Vec::new();
    for finding in findings {
        blocks.extend([Block::Space, head(finding)]);
        blocks.extend(body(finding, findings));
    }
    blocks
}

fn head(finding: &Finding) -> Block {
    let sure = doubt(finding.confidence);
    let text = format!(
        "{}  {}: {}{sure}",
        finding.id, finding.subject, finding.title
    );
    graded(
        &stored_name(finding.severity).to_uppercase(),
        finding.severity,
        &text,
    )
}

/// Evidence, cause, and the next step.
fn body(finding: &Finding, all: &[Finding]) -> Vec<Block> {
    let labels = std::iter::once("  seen").chain(std::iter::repeat(""));
    let seen = finding.evidence.iter().zip(labels);
    let mut blocks: Vec<Block> = seen
        .map(|(seen, label)| wrapped(label, seen.to_string()))
        .collect();
    blocks.push(wrapped("  why", &finding.explanation));
    blocks.extend(steps(finding, all));

    blocks.push(wrapped("  see", &finding.reference));

    blocks
}
