//! Rounds and results of a run.

use std::collections::BTreeSet;
use std::time::Duration;

use linerate_model::fleet::{Cell, CellOutcome, FleetReport, HostId, NotRun, NotRunReason, Round};
use thiserror::Error;

use super::findings::ranked;
use super::hosts::HostFindings;
use super::shared_slot::{self, Forwarder};

/// Runs rounds of tests and reads the clock.
pub trait RoundRunner {
    /// Runs all tests of a round at the same time and waits for their cells. A task without a cell
    /// counts as failed.
    ///
    /// # Errors
    /// When no other round can be run; see [`RoundError`].
    fn run(&mut self, round: &Round) -> Result<Vec<Cell>, RoundError>;

    /// Called after each round with its cells as they count. Those that may run once more are not
    /// among them.
    fn keep(&mut self, _cells: &[Cell]) {}

    /// Hosts that can take part in a round now.
    fn alive(&self) -> BTreeSet<HostId>;

    /// Time since an arbitrary moment; never goes back.
    fn now(&self) -> Duration;

    /// Called before every round.
    fn progress(&mut self, progress: &FleetProgress);

    /// Highest rate of the link of a host in bit/s, where that is known.
    fn link_bps(&self, _: &HostId) -> Option<f64> {
        None
    }

    /// Facts that the hosts of each of two groups share and that differ between the groups, as
    /// statements. Empty where no facts are known.
    fn separating(&self, _fast: &[HostId], _slow: &[HostId]) -> Vec<String> {
        Vec::new()
    }
}

/// Why no more rounds can be run.
#[derive(Debug, Error)]
pub enum RoundError {
    /// The user cancelled the run.
    #[error("cancelled")]
    Cancelled,
    /// The coordinator cannot continue. With the reason.
    #[error("{0}")]
    Failed(String),
}

impl From<RoundError> for NotRun {
    fn from(error: RoundError) -> Self {
        match error {
            RoundError::Cancelled => Self::new(NotRunReason::Cancelled),
            RoundError::Failed(text) => Self {
                reason: NotRunReason::Failed,
                detail: Some(text),
            },
        }
    }
}

/// Where a run is.
#[derive(Debug)]
pub struct FleetProgress {
    /// Rounds that have ended.
    pub rounds_done: usize,
    /// Rounds that are planned now; grows when results need more.
    pub rounds_planned: usize,
    /// Tasks without a cell that are planned now, each once.
    pub cells_left: usize,
    /// Time that the remaining ones will take.
    pub left: Duration,
}

/// Adds what was found about the hosts: the findings, and why cells of excluded hosts have no
/// result.
pub fn add_hosts(report: &mut FleetReport, found: &HostFindings, forwarders: &[Forwarder]) {
    let cells: Vec<&Cell> = report.cells.iter().collect();
    let mut findings = std::mem::take(&mut report.findings);
    findings.extend(found.findings.iter().cloned());
    findings.extend(shared_slot::findings(forwarders, &cells));
    report.findings = ranked(findings);

    for cell in &mut report.cells {
        for host in [&cell.task.source, &cell.task.sink] {
            if let Some(id) = found.excluded.get(host) {
                cell.outcome = CellOutcome::NotRun(NotRun {
                    reason: NotRunReason::Refused,
                    detail: Some(format!("{host} is excluded ({id})")),
                });
                break;
            }
        }
    }
}
