//! A whole experiment, judged, from whatever runs there are.
//!
//! Called after every run as well, for the report an interruption leaves behind: it takes any set of runs, has no state
//! and reads every run a fixed number of times.

mod baseline;
mod cells;
mod curve;
mod demands;
mod sentences;

use linerate_model::http::{Baseline, CellKey, CellRun, Check, Environment, NegotiatedProtocol, Study, VerdictClass};

use super::c10k;
use super::ceiling::IpVersion;
use super::cells::Phases;
use super::plan::Plan;
use cells::Judged;

pub use baseline::troubles;

/// Version of the form of a study.
pub const SCHEMA: &str = "linerate.http/1";
/// More invalid cells than this share and the experiment as a whole says nothing.
const INVALID_MAX: f64 = 0.2;

/// What a study is made from.
#[derive(Debug, Clone)]
pub struct Material<'a> {
    /// The server, as the user wrote it.
    pub target: &'a str,
    /// Port of the server.
    pub port: u16,
    /// Version of the Internet Protocol towards it.
    pub ip: IpVersion,
    /// The plan, resolved.
    pub plan: &'a Plan,
    /// Parts of it that were asked for.
    pub phases: Phases,
    /// Start, wall clock of the client.
    pub started_unix_ms: u64,
    /// Time all of it took.
    pub elapsed_ns: u64,
    /// Whether it came to its end.
    pub is_complete: bool,
    /// What was seen before it.
    pub checks: Vec<Check>,
    /// The client's host.
    pub client: Environment,
    /// The server's host; absent without an agent there.
    pub server: Option<Environment>,
    /// TCP alone.
    pub baseline: Vec<Baseline>,
    /// Runs of all phases in the order they were made, with the flags of [`super::flags::flags`].
    pub runs: &'a [CellRun],
    /// What else must be known.
    pub notes: Vec<String>,
}

/// Judges an experiment.
#[must_use]
pub fn study(material: Material<'_>) -> Study {
    let judged = Judged::of(&material);
    let idle = c10k::idle(material.runs);
    let passes = demands::passes(&material, &judged, idle.as_ref());
    let sentences = [
        baseline::sentence(&material.baseline),
        sentences::isolation(material.plan, &judged),
        sentences::whole(&judged, idle.as_ref()),
    ];
    let ceiling = curve::ceiling_curve(&material, &judged);
    let ceiling_missing = curve::ceiling_missing(&material, &judged);
    let spoken = spoken(material.runs);
    let mut notes = material.notes;
    notes.extend(judged.notes);
    Study {
        schema: SCHEMA.to_owned(),
        target: material.target.to_owned(),
        started_unix_ms: material.started_unix_ms,
        elapsed_ns: material.elapsed_ns,
        seed: material.plan.seed,
        plan: material.plan.to_toml(),
        spoken,
        is_complete: material.is_complete,
        checks: material.checks,
        client: material.client,
        server: material.server,
        baseline: material.baseline,
        cells: judged.cells,
        ceiling,
        ceiling_missing,
        rows: judged.rows,
        idle,
        passes,
        sentences,
        notes,
    }
}

/// Each once, in the order in which it came up.
fn spoken(runs: &[CellRun]) -> Vec<NegotiatedProtocol> {
    let mut all: Vec<NegotiatedProtocol> = Vec::new();
    for spoken in runs.iter().filter_map(|run| run.load.as_ref()?.spoken.as_ref()) {
        if !all.contains(spoken) {
            all.push(spoken.clone());
        }
    }
    all
}

/// Cells that would say most about the knees, at most two more for each payload than the plan has; none where the plan
/// does not want them.
#[must_use]
pub fn refinements(material: &Material<'_>) -> Vec<CellKey> {
    if material.plan.matrix.refine_knee && material.phases.has(2) {
        cells::refinements(material)
    } else {
        Vec::new()
    }
}

/// How an experiment came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It says what it found.
    Done,
    /// Something that was wanted is missed.
    ObjectiveMissed,
    /// More than a fifth of its cells says nothing.
    TooManyInvalid,
}

/// How an experiment came out; what is wanted counts only where it was asked for (`--assert`).
#[must_use]
pub fn ending(study: &Study, is_asserted: bool) -> Ending {
    if invalid_share(study).is_some_and(|share| share > INVALID_MAX) {
        Ending::TooManyInvalid
    } else if is_asserted && study.passes.iter().any(|pass| pass.is_met == Some(false)) {
        Ending::ObjectiveMissed
    } else {
        Ending::Done
    }
}

/// Cells that say nothing as a share of those that were run; `None` where none was.
#[must_use]
pub fn invalid_share(study: &Study) -> Option<f64> {
    let run: Vec<_> = study.cells.iter().filter(|cell| !cell.runs.is_empty()).collect();
    let invalid = run
        .iter()
        .filter(|cell| cell.verdict.primary.class == VerdictClass::Invalid);
    (!run.is_empty()).then(|| invalid.count() as f64 / run.len() as f64)
}

#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod seed_tests;
#[cfg(test)]
mod tests;
