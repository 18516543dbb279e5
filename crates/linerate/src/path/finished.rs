//! A line for each phase that ended, where no live line is shown.

use linerate_lab::path::{CeilingFacts, ClockFacts, ConcludeInput, conclude};
use linerate_model::path::{PathSpec, PathState, PathTarget, PhaseKind, PhaseResult, ProbeKind};
use linerate_report::path::{FinishedPhase, finished_line};

use crate::progress::style;

/// The last of these phases in one line; `None` for one without a result.
pub(super) fn line(phases: &[PhaseResult], target: &PathTarget, spec: &PathSpec, clock: ClockFacts) -> Option<String> {
    let kind = phases.last()?.spec.kind;
    let report = conclude(&ConcludeInput {
        target: target.clone(),
        spec: spec.clone(),
        state: PathState::Partial,
        elapsed_ns: 0,
        resumed: 0,
        concurrent_max: None,
        probe: ProbeKind::Udp,
        phases: phases.to_vec(),
        ladders: Vec::new(),
        clock,
        ceiling_down: CeilingFacts::default(),
        ceiling_up: CeilingFacts::default(),
        absent: Vec::new(),
    });
    let finished = match kind {
        PhaseKind::Size => FinishedPhase::Size(&report.size),
        PhaseKind::Idle => FinishedPhase::Idle(report.idle.as_ref()?),
        PhaseKind::Down | PhaseKind::Up | PhaseKind::Both => FinishedPhase::Load(report.phases.last()?),
        PhaseKind::Rr | PhaseKind::Crr => FinishedPhase::Transactions(report.transactions.last()?),
        _ => FinishedPhase::Datagrams(report.datagrams.last()?),
    };
    Some(finished_line(finished, style()).trim_end().to_owned())
}
