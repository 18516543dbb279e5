//! Bufferbloat and responsiveness: the scores of a path.

use linerate_doctor::report::{graded, wrapped};
use linerate_document::blocks::Block;
use linerate_model::finding::Severity;
use linerate_model::path::{Delay, LoadPhase, PathReport};

use super::goodput::worst_rpm;
use super::wording;
use crate::conclude::responsiveness_class;

/// Scale of the grades.
const SCALE: &str = "A+ <5 ms, A <30, B <60, C <200, D <400";
/// Classes of the responsiveness.
const CLASSES: &str = "poor <300, fair <1000, good <6000";

/// Bufferbloat and responsiveness.
pub(super) fn scores(report: &PathReport) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(grade) = &report.grade {
        let severity = match grade.letter.as_str() {
            "D" | "F" => Severity::High,
            "C" => Severity::Medium,
            _ => Severity::Info,
        };
        let added = wording::added_ns(grade.added_ns);
        let probes = wording::probes_of(report);
        let load = grade
            .load
            .map_or_else(String::new, |kind| format!(" {}", kind.name()));
        let text = format!(
            "{}: load{load} adds {added} to the median RTT of {probes} ({SCALE})",
            grade.letter
        );
        blocks.push(graded("Bufferbloat", severity, &text));
    }

    if let Some(worst) = worst_rpm(report) {
        let severity = if worst < 300.0 {
            Severity::Medium
        } else {
            Severity::Info
        };
        let text = format!(
            "{} responsiveness, {} ({CLASSES})",
            responsiveness_class(worst),
            wording::rpm(worst)
        );
        blocks.push(graded("RPM", severity, &text));
        blocks.extend(
            report
                .phases
                .iter()
                .filter_map(|phase| Some(wrapped("", responsiveness(phase)?))),
        );
    }

    blocks
}

/// `down 517 RPM: new connections 530, in-band 504`
fn responsiveness(phase: &LoadPhase) -> Option<String> {
    let with = |text: String, delays: &[(Option<Delay>, &str)]| {
        let medians = delays
            .iter()
            .map(|(delay, name)| wording::median(*delay, name));
        match wording::joined(medians) {
            None => text,
            Some(medians) => format!("{text} (p50 of {medians})"),
        }
    };

    let foreign = phase.rpm_foreign.map(|rpm| {
        with(
            format!("new connections {rpm:.0}"),
            &[(phase.tcp, "TCP"), (phase.tls, "TLS"), (phase.echo, "echo")],
        )
    });
    let own = phase.rpm_self.map(|rpm| {
        with(
            format!("load's own streams {rpm:.0}"),
            &[(phase.in_band, "echo")],
        )
    });

    let mean = phase.rpm_mean_rtt;
    let mean = mean.map(|rpm| format!("of the mean RTT {rpm:.0}, as goresponsiveness computes it"));
    let head = format!("{} {}", phase.kind.name(), wording::rpm(phase.rpm?));

    Some(match wording::joined([foreign, own, mean]) {
        None => head,
        Some(parts) => format!("{head}: {parts}"),
    })
}
