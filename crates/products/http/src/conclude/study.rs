//! A whole experiment, judged, from whatever runs there are.
//!
//! Called after every run as well, for the report an interruption leaves behind: it takes any set
//! of runs, has no state and reads every run a fixed number of times.

mod cells;
mod curve;
mod input;
mod sentences;

use linerate_model::http::{
    CellRun, HTTP_SCHEMA, NegotiatedProtocol, RunState, Study, VerdictClass,
};

use super::c10k;
use cells::JudgedCells;

pub(crate) use cells::refinements;
pub(crate) use input::{Kept, Setup, StudyInput};
pub(crate) use sentences::{path_defects, slow_tests};

/// Share of invalid cells above which the experiment is invalid.
const INVALID_MAX: f64 = 0.2;

/// Judges an experiment.
pub(crate) fn study(input: &StudyInput<'_>) -> Study {
    let setup = input.setup;
    let kept = input.kept;
    let judged = JudgedCells::of(input);
    let idle = c10k::idle(&kept.runs);
    Study {
        schema: HTTP_SCHEMA.to_owned(),
        target: setup.target.clone(),
        plan: setup.plan.to_toml(),
        started_unix_ms: setup.started_unix_ms,
        elapsed_ns: input.elapsed_ns,
        seed: setup.plan.seed,
        protocol: protocol(&kept.runs),
        is_complete: input.is_complete,
        checks: setup.checks.clone(),
        client: setup.client.clone(),
        server: setup.server.clone(),
        baseline: kept.baseline.clone(),
        passes: sentences::passes(input, &judged, idle.as_ref()),
        sentences: [
            sentences::path(&kept.baseline),
            sentences::isolation(&setup.plan, &judged),
            sentences::whole(&judged, idle.as_ref()),
        ],
        ceiling: curve::ceiling_curve(input, &judged).unwrap_or_default(),
        ceiling_missing: curve::ceiling_missing(input, &judged),
        notes: [kept.notes.as_slice(), &judged.notes].concat(),
        cells: judged.cells,
        rows: judged.rows,
        idle,
    }
}

/// Each once, in the order in which it came up.
fn protocol(runs: &[CellRun]) -> Vec<NegotiatedProtocol> {
    let mut all: Vec<NegotiatedProtocol> = Vec::new();
    for protocol in runs
        .iter()
        .filter_map(|run| run.load.as_ref()?.protocol.as_ref())
    {
        if !all.contains(protocol) {
            all.push(protocol.clone());
        }
    }

    all
}

/// Outcome of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It is complete enough.
    Done,
    /// Something that was wanted is missed.
    ObjectiveMissed,
    /// More than a fifth of its cells are invalid.
    TooManyInvalid,
    /// Every run was skipped because of a check.
    AllSkipped,
}

/// Outcome of an experiment; the objective counts only with `--assert`.
pub(crate) fn ending(study: &Study, is_asserted: bool) -> Ending {
    if invalid_share(study).is_some_and(|share| share > INVALID_MAX) {
        Ending::TooManyInvalid
    } else if is_asserted && study.passes.iter().any(|pass| pass.is_met == Some(false)) {
        Ending::ObjectiveMissed
    } else if is_all_skipped(study) {
        Ending::AllSkipped
    } else {
        Ending::Done
    }
}

fn is_all_skipped(study: &Study) -> bool {
    let mut runs = study.cells.iter().flat_map(|cell| &cell.runs);
    !study.cells.is_empty() && runs.all(|run| run.state == RunState::Skipped)
}

/// Invalid cells as a share of those that were run; `None` where none was.
pub(crate) fn invalid_share(study: &Study) -> Option<f64> {
    let run: Vec<_> = study
        .cells
        .iter()
        .filter(|cell| !cell.runs.is_empty())
        .collect();
    let invalid = run
        .iter()
        .filter(|cell| cell.verdict.primary.class == VerdictClass::Invalid);
    (!run.is_empty()).then(|| invalid.count() as f64 / run.len() as f64)
}

#[cfg(test)]
pub(crate) mod tests;
