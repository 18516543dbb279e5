//! The last line: how much was run, and how.

use linerate_model::fleet::{
    Cell, FleetHeader, FleetMode, FleetReport, FleetTopology, PairDirection,
};

use linerate_document::number::counted;
use linerate_model::numbers::{clock, digits};

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
