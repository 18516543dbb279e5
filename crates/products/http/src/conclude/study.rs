//! A whole experiment, judged, from whatever runs there are.
//!
//! Called after every run as well, for the report an interruption leaves behind: it takes any set
//! of runs, has no state and reads every run a fixed number of times.

mod cells;
mod curve;
mod sentences;

use linerate_model::http::{
    Baseline, CellFacts, CellRun, CellVerdict, Check, Environment, NegotiatedProtocol, RunState,
    Study, VerdictClass,
};

use super::c10k;
use super::ceiling::{Link, reached_bps};
use crate::plan::Plan;
use crate::plan::cells::Phases;
use cells::JudgedCells;

pub(crate) use cells::refinements;
pub(crate) use sentences::{path_defects, slow_tests};

/// Share of invalid cells above which the experiment is invalid.
const INVALID_MAX: f64 = 0.2;

/// The inputs of an experiment that do not change while it runs.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    /// The server, as the user wrote it.
    pub target: String,
    /// Port of the server.
    pub port: u16,
    /// It is reached over IPv6.
    pub is_ipv6: bool,
    /// The plan, resolved.
    pub plan: Plan,
    /// Selected parts of it.
    pub phases: Phases,
    /// Start, wall clock of the client.
    pub started_unix_ms: u64,
    /// Checks before it.
    pub checks: Vec<Check>,
    /// The client's host.
    pub client: Environment,
    /// The server's host; absent without an agent there.
    pub server: Option<Environment>,
    /// Rules that judge a cell.
    pub judge: fn(&CellFacts) -> CellVerdict,
}

impl Setup {
    /// The link between both hosts; see [`Link::between`].
    #[must_use]
    pub(crate) fn link(&self) -> Option<Link> {
        self.link_of(self.plan.line_rate_bps)
    }

    /// The link with this rate instead of the known one.
    #[must_use]
    pub(crate) fn link_of(&self, bps: Option<f64>) -> Option<Link> {
        Link::between(&self.client, self.server.as_ref(), self.is_ipv6, bps)
    }
}

/// Results of an experiment so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept {
    /// TCP alone.
    pub baseline: Vec<Baseline>,
    /// Runs of all phases in the order they were made, with their flags.
    pub runs: Vec<CellRun>,
    /// Notes for the report.
    pub notes: Vec<String>,
}

/// Input of a study.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StudyInput<'a> {
    /// The fixed inputs.
    pub setup: &'a Setup,
    /// Time all of it took.
    pub elapsed_ns: u64,
    /// True if the experiment is complete.
    pub is_complete: bool,
    /// The results.
    pub kept: &'a Kept,
}

impl StudyInput<'_> {
    /// The link with the segments of these runs. Where its speed is not known, it carries what TCP
    /// alone reached, unless that is refuted.
    fn link(&self, runs: &[CellRun], is_refuted: bool) -> Option<Link> {
        // A speed that a device names, or the user, is known independently of the tests.
        if let Some(link) = self.setup.link() {
            return Some(link.with_segments_of(runs));
        }

        let reached_bps = reached_bps(&self.kept.baseline);
        let unit = self
            .setup
            // A link of 1 bit/s gives the share of headers, which does not depend on the speed.
            .link_of(Some(1.0))
            .filter(|_| reached_bps > 0.0 && !is_refuted)?
            .with_segments_of(runs);
        Some(Link {
            // A virtual device names no real speed: with that of a veth a full shaper of 1 Gbit/s
            // was a limit of the server.
            bps: reached_bps / unit.goodput_bps()?,
            ..unit
        })
    }
}

/// Judges an experiment.
#[must_use]
pub(crate) fn study(input: &StudyInput<'_>) -> Study {
    let (setup, kept) = (input.setup, input.kept);
    let judged = JudgedCells::of(input);
    let idle = c10k::idle(&kept.runs);
    let mut study = Study::new(&setup.target, setup.plan.to_toml());
    study.started_unix_ms = setup.started_unix_ms;
    study.elapsed_ns = input.elapsed_ns;
    study.seed = setup.plan.seed;
    study.protocol = protocol(&kept.runs);
    study.is_complete = input.is_complete;
    study.checks = setup.checks.clone();
    study.client = setup.client.clone();
    study.server = setup.server.clone();
    study.baseline = kept.baseline.clone();
    study.passes = sentences::passes(input, &judged, idle.as_ref());
    study.sentences = [
        sentences::path(&kept.baseline),
        sentences::isolation(&setup.plan, &judged),
        sentences::whole(&judged, idle.as_ref()),
    ];
    study.ceiling = curve::ceiling_curve(input, &judged);
    study.ceiling_missing = curve::ceiling_missing(input, &judged);
    study.notes = [kept.notes.as_slice(), &judged.notes].concat();
    study.cells = judged.cells;
    study.rows = judged.rows;
    study.idle = idle;

    study
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
#[must_use]
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
#[must_use]
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
