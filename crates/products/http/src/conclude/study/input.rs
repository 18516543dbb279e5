//! Input of a study: what is fixed before an experiment, and its results so far.

use linerate_model::http::{Baseline, CellFacts, CellRun, CellVerdict, Check, Environment};

use crate::conclude::ceiling::{Link, reached_bps};
use crate::plan::Plan;
use crate::plan::cells::Phases;

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
    pub(crate) fn link(&self) -> Option<Link> {
        self.link_of(self.plan.line_rate_bps)
    }

    /// The link with this rate instead of the known one.
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
    pub(super) fn link(&self, runs: &[CellRun], is_refuted: bool) -> Option<Link> {
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
