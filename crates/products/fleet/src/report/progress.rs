//! Output before and during a run: its time and data, and a line for each round.

use std::time::Duration;

use crate::conclude::FleetProgress;
use crate::plan::{Estimate, FleetPlan};
use linerate_model::fleet::PairDirection;

use super::footer::{mode, topology};
use super::ladder::link_rate;
use linerate_document::Style;
use linerate_document::number::counted;
use linerate_model::numbers::{bytes, clock};

/// A run before its first packet.
#[derive(Debug, Clone, Copy)]
pub struct Announced<'a> {
    /// Its plan.
    pub plan: &'a FleetPlan,
    /// Time and data of the plan.
    pub estimate: Estimate,
    /// Time of one test.
    pub test_time: Duration,
    /// Most payload of all tests in bytes, where a rate limits it.
    pub bytes_max: Option<u64>,
    /// Highest rate of one host in bit/s, where that is known.
    pub host_bps_max: Option<f64>,
}

/// `mesh, 8 hosts, 56 cells, both ways at once, 7 rounds of 2 s: about 0:19, up to 13.0 GiB in all, at most 1 Gbit/s per host`
pub fn announcement(run: &Announced<'_>, style: Style) -> String {
    let Announced { plan, estimate, .. } = run;
    let mut parts = vec![
        topology(&(&plan.topology).into()),
        counted(plan.hosts.len(), "host"),
        counted(estimate.cells, "cell"),
    ];
    if plan.topology.hub().is_none() {
        parts.push(match plan.direction {
            PairDirection::Both => "both ways at once".to_owned(),
            PairDirection::OneWay => "one way at a time".to_owned(),
        });
    }
    parts.extend(mode(plan.mode).map(str::to_owned));
    let rounds = counted(estimate.rounds, "round");
    parts.push(format!("{rounds} of {} s", run.test_time.as_secs_f64()));

    let mut takes = vec![format!("about {}", clock(estimate.time.as_secs_f64()))];
    takes.push(match run.bytes_max {
        Some(most) => format!("up to {} in all", bytes(most as f64)),
        None => "amount of data not limited".to_owned(),
    });
    if let Some(bps) = run.host_bps_max {
        takes.push(format!("at most {} per host", link_rate(bps)));
    }

    style.line(&format!("{}: {}", parts.join(", "), takes.join(", ")))
}

/// The line of a round, with its line end: `round 3/7  24/56 cells  0:12 left`. The cells are those
/// with a result or a reason, each once, and those that are planned now.
pub fn progress_line(
    progress: &FleetProgress,
    (done, planned): (usize, usize),
    style: Style,
) -> String {
    let line = format!(
        "round {}/{}  {done}/{planned} cells  {} left",
        progress.rounds_done.saturating_add(1),
        progress.rounds_planned,
        clock(progress.left.as_secs_f64())
    );
    style.line(&line) + "\n"
}
