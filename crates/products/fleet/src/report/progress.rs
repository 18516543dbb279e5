//! Output before and during a run: its time and data, and a line that is replaced or written once
//! per round.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::conclude::FleetProgress;
use crate::plan::Estimate;
use crate::plan::{FleetPlan, Topology};
use linerate_model::fleet::{HostId, PairDirection};

use super::footer::mode;
use super::ladder::link_rate;
use linerate_document::Style;
use linerate_document::number::counted;
use linerate_model::numbers::{bytes, clock, digits};

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
#[must_use]
pub fn announcement(run: &Announced<'_>, style: Style) -> String {
    let Announced { plan, estimate, .. } = run;
    let topology = match &plan.topology {
        Topology::Mesh => "mesh".to_owned(),
        Topology::Pairs(_) => "pairs".to_owned(),
        Topology::Incast(hub) => format!("incast into {hub}"),
        Topology::Fanout(hub) => format!("fanout from {hub}"),
        Topology::IncastAndFanout(hub) => format!("incast into {hub} and fanout from it"),
    };
    let mut parts = vec![
        topology,
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
    parts.push(format!(
        "{} of {} s",
        counted(estimate.rounds, "round"),
        run.test_time.as_secs_f64()
    ));
    let mut takes = vec![format!("about {}", clock(estimate.time.as_secs_f64()))];
    takes.push(match run.bytes_max {
        Some(most) => format!("up to {} in all", bytes(most as f64)),
        None => "amount of data not limited".to_owned(),
    });
    takes.extend(
        run.host_bps_max
            .map(|bps| format!("at most {} per host", link_rate(bps))),
    );

    style.line(&format!("{}: {}", parts.join(", "), takes.join(", ")))
}

/// A run in progress.
#[derive(Debug, Clone, Copy)]
pub struct FleetLive<'a> {
    /// Where it is.
    pub progress: &'a FleetProgress,
    /// Rates of the round so far; tests without a sample are absent.
    pub rates: &'a [PairRate],
    /// Cells with a result or a reason, each once.
    pub cells_done: usize,
    /// Cells that are planned now.
    pub cells_planned: usize,
    /// Hosts that were slow so far.
    pub suspects: usize,
}

/// Rate of a test that runs.
#[derive(Debug, Clone, PartialEq)]
pub struct PairRate {
    /// The source.
    pub source: HostId,
    /// The sink.
    pub sink: HostId,
    /// Payload in bit/s.
    pub bps: f64,
}

/// `round 3/7  h7⇄h8 0.18  h1⇄h6 1.90  h2⇄h5 1.90 Gbit/s  24/56 cells  1 suspect  0:12 left`,
/// without a line end and no longer than the terminal is wide. The slowest pair is the first, and
/// those that do not fit are counted.
#[must_use]
pub fn live(now: &FleetLive<'_>, style: Style) -> String {
    let (head, tail) = (head(now), tail(now));
    let pairs = pairs(now);
    let unit = Unit::of(&pairs);
    let width = style.columns.saturating_sub(1);

    let line = |shown: usize| {
        let named = pairs
            .iter()
            .take(shown)
            .map(|(name, bps)| format!("{name} {}", unit.text(*bps)));
        let mut rates = named.collect::<Vec<_>>().join("  ");

        if shown > 0 {
            rates = format!("{rates} {}", unit.name);
        }

        let hidden = pairs.len() - shown;
        let more = if hidden > 0 {
            counted(hidden, if shown > 0 { "other pair" } else { "pair" })
        } else {
            String::new()
        };
        let parts = [head.as_str(), &rates, &more, &tail];
        style.line(
            &parts
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join("  "),
        )
    };
    let fits = |shown: &usize| line(*shown).chars().count() <= width;

    // Any line is longer than a character for each pair of it.
    let shown = (0..=pairs.len().min(width)).rev().find(fits).unwrap_or(0);
    // A line that is too long would wrap and could not be replaced.
    line(shown).chars().take(width).collect()
}

/// A line for a round that ran, with its line end, where standard error is no terminal:
/// `round 3/7  slowest h7⇄h8 0.18 Gbit/s  24/56 cells  1 suspect  0:12 left`
#[must_use]
pub fn progress_line(now: &FleetLive<'_>, style: Style) -> String {
    let pairs = pairs(now);
    let unit = Unit::of(&pairs);
    let slowest = pairs.into_iter().find(|(_, bps)| bps.is_some());
    let slowest =
        slowest.map(|(name, bps)| format!("slowest {name} {} {}", unit.text(bps), unit.name));
    let parts = [Some(head(now)), slowest, Some(tail(now))];
    style.line(&parts.into_iter().flatten().collect::<Vec<_>>().join("  ")) + "\n"
}

fn head(now: &FleetLive<'_>) -> String {
    let FleetProgress {
        rounds_done,
        rounds_planned,
        ..
    } = now.progress;
    format!("round {}/{rounds_planned}", rounds_done.saturating_add(1))
}

fn tail(now: &FleetLive<'_>) -> String {
    let mut parts = vec![format!("{}/{} cells", now.cells_done, now.cells_planned)];
    if now.suspects > 0 {
        parts.push(counted(now.suspects, "suspect"));
    }

    parts.push(format!("{} left", clock(now.progress.left.as_secs_f64())));
    parts.join("  ")
}

/// Pairs of the round with the sum of their directions, the slowest first, those without a sample
/// last.
fn pairs(now: &FleetLive<'_>) -> Vec<(String, Option<f64>)> {
    let tasks: BTreeSet<(&HostId, &HostId)> = now
        .progress
        .round
        .tasks
        .iter()
        .map(|task| (&task.source, &task.sink))
        .collect();
    let rates: BTreeMap<(&HostId, &HostId), f64> = now
        .rates
        .iter()
        .map(|rate| ((&rate.source, &rate.sink), rate.bps))
        .collect();

    let mut pairs = Vec::new();
    for (source, sink) in &tasks {
        let is_both = tasks.contains(&(*sink, *source));
        if is_both && source > sink {
            continue;
        }

        let arrow = if is_both { '⇄' } else { '→' };
        let back = rates.get(&(*sink, *source)).filter(|_| is_both);
        let sum = [rates.get(&(*source, *sink)), back]
            .into_iter()
            .flatten()
            .copied()
            .reduce(|a, b| a + b);
        pairs.push((format!("{source}{arrow}{sink}"), sum));
    }

    let key = |rate: &Option<f64>| rate.unwrap_or(f64::INFINITY);
    pairs.sort_by(|(_, a), (_, b)| key(a).total_cmp(&key(b)));
    pairs
}

/// Unit of all rates of a line.
struct Unit {
    name: &'static str,
    bps: f64,
}

impl Unit {
    fn of(pairs: &[(String, Option<f64>)]) -> Self {
        let fastest = pairs.iter().filter_map(|(_, bps)| *bps).fold(0.0, f64::max);
        if fastest >= 1e9 {
            Self {
                name: "Gbit/s",
                bps: 1e9,
            }
        } else {
            Self {
                name: "Mbit/s",
                bps: 1e6,
            }
        }
    }

    fn text(&self, bps: Option<f64>) -> String {
        bps.map_or_else(|| "-".to_owned(), |bps| digits(bps / self.bps))
    }
}
