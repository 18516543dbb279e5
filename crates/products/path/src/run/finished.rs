//! Results of each phase, shown when it ended.

use linerate_model::path::{
    FinishedPhase, PathReport, PathSpec, PathState, PathTarget, PhaseKind, PhaseResult, ProbeKind,
};

use super::observers::Observers;
use crate::conclude::{CeilingFacts, ClockFacts, ConcludeInput, conclude};

/// Shows the last of these phases, if it has a result.
pub(super) fn show(
    phases: &[PhaseResult],
    target: &PathTarget,
    spec: &PathSpec,
    (probe, clock): (ProbeKind, ClockFacts),
    observers: &mut Observers<'_>,
) {
    let Some(last) = phases.last() else { return };
    let report = conclude(&ConcludeInput {
        target: target.clone(),
        spec: spec.clone(),
        state: PathState::Partial,
        elapsed_ns: 0,
        resumed: 0,
        concurrent_max: None,
        probe,
        phases: phases.to_vec(),
        ladders: Vec::new(),
        clock,
        ceiling_down: CeilingFacts::default(),
        ceiling_up: CeilingFacts::default(),
        absent: Vec::new(),
    });
    if let Some(finished) = finished(&report, last.spec.kind) {
        observers.finished(finished);
    }
}

fn finished(report: &PathReport, kind: PhaseKind) -> Option<FinishedPhase<'_>> {
    Some(match kind {
        PhaseKind::Size => FinishedPhase::Size(&report.size),
        PhaseKind::Idle => FinishedPhase::Idle(report.idle.as_ref()?),
        PhaseKind::Down | PhaseKind::Up | PhaseKind::Both => {
            FinishedPhase::Load(report.phases.last()?)
        }
        PhaseKind::Rr | PhaseKind::Crr => FinishedPhase::Transactions(report.transactions.last()?),
        _ => FinishedPhase::Datagrams(report.datagrams.last()?),
    })
}
