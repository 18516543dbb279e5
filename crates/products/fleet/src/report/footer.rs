//! The last line: how much was run, and how.

use std::time::Duration;

use super::ladder::link_rate;
use crate::conclude::FleetProgress;
use crate::plan::{Estimate, FleetPlan};
use linerate_document::Style;
use linerate_document::number::counted;
use linerate_model::fleet::{
    Cell, FleetHeader, FleetMode, FleetReport, FleetTopology, PairDirection,
};
use linerate_model::numbers::{bytes, clock, digits};

/// `56 of 56 cells, 8 hosts, mesh, both ways, 7 rounds, 0:18; starts within 0.4 ms; seed 1`
pub(super) fn line(report: &FleetReport) -> String {
    let FleetReport { header, cells, .. } = report;
    let mut parts = vec![measured(cells), counted(header.hosts.len(), "host")];
    parts.extend(kind(header));
    parts.push(counted(header.rounds, "round"));
    parts.push(clock(header.elapsed_ns as f64 / 1e9));

    let mut line = parts.join(", ");
    if let Some(ns) = start_spread_ns(report) {
        line += &format!("; starts within {} ms", digits(ns as f64 / 1e6));
    }
    if let Some(run) = &header.run_id {
        line += &format!("; run {run}");
    }

    format!("{line}; seed {}", header.seed)
}

/// `55 of 56 cells`
pub(super) fn measured(cells: &[Cell]) -> String {
    let measured = cells.iter().filter(|cell| cell.measurement().is_some());
    format!("{} of {}", measured.count(), counted(cells.len(), "cell"))
}

/// Which pairs, and what ran at the same time: `mesh`, `both ways`, `rack-safe`.
pub(super) fn kind(header: &FleetHeader) -> Vec<String> {
    let mut kind = vec![topology(&header.topology)];
    // The steps of a ladder decide what runs at the same time, not direction and mode.
    if matches!(header.topology, FleetTopology::Mesh | FleetTopology::Pairs) {
        let direction = match header.direction {
            PairDirection::Both => "both ways",
            PairDirection::OneWay => "one way",
        };
        kind.push(direction.to_owned());
        kind.extend(mode(header.mode).map(str::to_owned));
    }

    kind
}

/// `mesh`, `incast into h1`
pub(super) fn topology(topology: &FleetTopology) -> String {
    match topology {
        FleetTopology::Mesh => "mesh".to_owned(),
        FleetTopology::Pairs => "pairs".to_owned(),
        FleetTopology::Incast(hub) => format!("incast into {hub}"),
        FleetTopology::Fanout(hub) => format!("fanout from {hub}"),
        FleetTopology::IncastAndFanout(hub) => format!("incast into {hub} and fanout from it"),
    }
}

/// Name of a mode that is not the usual one.
pub(super) const fn mode(mode: FleetMode) -> Option<&'static str> {
    match mode {
        FleetMode::Isolated => Some("one pair at a time"),
        FleetMode::RackSafe => Some("rack-safe"),
        FleetMode::Stress => Some("all pairs at once"),
        _ => None,
    }
}

/// Largest distance between the starts of two tests that were to start at the same time; `None`
/// where no two were.
fn start_spread_ns(report: &FleetReport) -> Option<u64> {
    let mut starts: Vec<(u64, u64)> = Vec::new();
    for cell in &report.cells {
        let start = cell.measurement().and_then(|of| of.start);
        starts.extend(start.map(|start| (start.planned_ns, start.actual_ns)));
    }
    starts.sort_unstable();

    let mut most_ns = None;
    for round in starts.chunk_by(|one, next| next.0 - one.0 <= PLANNED_TOGETHER_NS) {
        // One start alone has no distance to another one.
        if round.len() > 1 {
            let actual = || round.iter().map(|(_, actual_ns)| *actual_ns);
            let spread_ns = actual().max()?.saturating_sub(actual().min()?);
            most_ns = most_ns.max(Some(spread_ns));
        }
    }

    most_ns
}

/// Largest distance of one planned start as the clocks of several hosts have it.
const PLANNED_TOGETHER_NS: u64 = 10_000_000;

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
