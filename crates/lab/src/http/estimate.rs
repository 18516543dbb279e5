//! Estimated cost of a plan.

use std::time::Duration;

use linerate_model::http::{CellKey, Phase};

use super::ceiling::{Link, usual_header_bytes};
use super::cells::{self, Phases, PlannedRun};
use super::plan::{Plan, Ramp};

/// Opening the control channel, waiting for the last answers, closing.
const AROUND_A_RUN: Duration = Duration::from_secs(1);
/// Cells a knee may add to a payload.
pub const REFINEMENTS_MAX: u32 = 2;

/// What a part of a plan will probably cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Runs or tests.
    pub runs: u32,
    /// Time of all of them.
    pub time: Duration,
    /// Bytes on the wire at most, answers as fast as the link; absent where the speed is not known.
    pub bytes: Option<u64>,
}

impl Cost {
    fn plus(self, other: Self) -> Self {
        Self {
            runs: self.runs.saturating_add(other.runs),
            time: self.time.saturating_add(other.time),
            bytes: self.bytes.zip(other.bytes).map(|(a, b)| a.saturating_add(b)),
        }
    }
}

/// What a plan will probably cost, part by part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimate {
    /// TCP alone.
    pub tcp: Cost,
    /// Every cell with all its repeats, in the order of the report.
    pub cells: Vec<(CellKey, Cost)>,
    /// All of it.
    pub total: Cost,
    /// What cells around the knees may add to the total.
    pub refinement: Cost,
}

/// Estimates a plan on a link; without one, bytes of closed loops are unknown.
#[must_use]
pub fn estimate(plan: &Plan, phases: Phases, link: Option<&Link>) -> Estimate {
    let nothing = Cost { bytes: Some(0), ..Cost::default() };
    let tcp = cells::tests(plan, phases).iter().map(|_| test_cost(plan, link)).fold(nothing, Cost::plus);
    let mut runs = cells::runs(plan, phases);
    runs.sort_unstable();
    let cells: Vec<(CellKey, Cost)> = runs
        .chunk_by(|a, b| a.key == b.key)
        .filter_map(|runs| Some((runs.first()?.key, cost_of(plan, runs, link))))
        .collect();
    let total = cells.iter().map(|(_, cost)| *cost).fold(tcp, Cost::plus);
    Estimate { tcp, refinement: refinement(plan, phases, link).into_iter().fold(nothing, Cost::plus), cells, total }
}

fn cost_of(plan: &Plan, runs: &[PlannedRun], link: Option<&Link>) -> Cost {
    let costs = runs.iter().map(|run| run_cost(plan, &run.key, link));
    costs.reduce(Cost::plus).unwrap_or_default()
}

/// The most expensive cell of each payload, once per possible refinement.
fn refinement(plan: &Plan, phases: Phases, link: Option<&Link>) -> Vec<Cost> {
    let connections = plan.matrix.connections.iter().max();
    let Some(connections) = connections.filter(|_| phases.has(2) && plan.matrix.refine_knee) else {
        return Vec::new();
    };
    let each = REFINEMENTS_MAX.saturating_mul(plan.defaults.repeats) as usize;
    let payloads = plan.matrix.payloads_bytes.iter();
    payloads
        .flat_map(|payload_bytes| {
            let key = CellKey {
                phase: Phase::Matrix,
                payload_bytes: *payload_bytes,
                connections: *connections,
                rate_per_s: None,
            };
            std::iter::repeat_n(run_cost(plan, &key, link), each)
        })
        .collect()
}

fn test_cost(plan: &Plan, link: Option<&Link>) -> Cost {
    Cost { runs: 1, time: plan.tcp.duration, bytes: link.map(|link| carried_bytes(link, plan.tcp.duration)) }
}

fn run_cost(plan: &Plan, key: &CellKey, link: Option<&Link>) -> Cost {
    let window = window(plan, key);
    let warmup = match key.phase {
        Phase::Idle => Duration::ZERO,
        _ => plan.defaults.warmup,
    };
    let loaded = warmup.saturating_add(window);
    Cost {
        runs: 1,
        time: ramp(plan, key.connections)
            .saturating_add(loaded)
            .saturating_add(AROUND_A_RUN)
            .saturating_add(plan.defaults.cooldown),
        bytes: bytes(plan, key, loaded, link),
    }
}

/// The measured window of a cell.
#[must_use]
pub fn window(plan: &Plan, key: &CellKey) -> Duration {
    match key.phase {
        Phase::Idle => plan.c10k.idle.hold,
        Phase::LowRate => plan.c10k.low_rate.duration,
        Phase::Active => plan.c10k.active.duration,
        Phase::Baseline => plan.tcp.duration,
        Phase::Payload | Phase::Matrix => plan.defaults.duration,
    }
}

fn ramp(plan: &Plan, connections: u32) -> Duration {
    match plan.defaults.ramp {
        Ramp::PerSecond(rate) => Duration::from_secs_f64(f64::from(connections) / f64::from(rate.max(1))),
        Ramp::Max => Duration::ZERO,
    }
}

fn bytes(plan: &Plan, key: &CellKey, loaded: Duration, link: Option<&Link>) -> Option<u64> {
    let response_bytes = key.payload_bytes + usual_header_bytes(key.payload_bytes);
    match (key.phase, key.rate_per_s) {
        (Phase::Idle, _) => {
            let beats = plan.c10k.idle.heartbeat.map_or(0.0, |pause| loaded.as_secs_f64() / pause.as_secs_f64());
            let requests = f64::from(key.connections) * (beats + f64::from(u8::from(plan.c10k.idle.touch)));
            Some((requests * response_bytes as f64) as u64)
        }
        (_, Some(rate)) => Some((f64::from(rate) * loaded.as_secs_f64() * response_bytes as f64) as u64),
        _ => link.map(|link| carried_bytes(link, loaded)),
    }
}

fn carried_bytes(link: &Link, time: Duration) -> u64 {
    (link.bps / 8.0 * time.as_secs_f64()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minutes(plan: &Plan, phases: &str) -> f64 {
        let phases = Phases::parse(phases).expect("phases");
        estimate(plan, phases, None).total.time.as_secs_f64() / 60.0
    }

    #[test]
    fn default_plan_takes_the_documented_minutes() {
        let plan = Plan::default();
        let tcp = minutes(&plan, "0");
        assert!((tcp - 40.0 / 60.0).abs() < 1e-9, "{tcp}");
        let matrix = minutes(&plan, "2");
        assert!((14.0..15.0).contains(&matrix), "{matrix}");
        assert!((minutes(&plan, "1-2") - matrix).abs() < 1e-9);
        let c10k = minutes(&plan, "3");
        assert!((4.0..5.5).contains(&c10k), "{c10k}");
        let quick = minutes(&plan.quick(), "0-3");
        assert!((2.0..3.5).contains(&quick), "{quick}");
    }

    #[test]
    fn bytes_are_what_the_link_carries_and_unknown_without_one() {
        let plan = Plan::default();
        let link = Link::of_speed(1e9);
        let phases = Phases::parse("2").expect("phases");
        let known = estimate(&plan, phases, Some(&link));
        assert_eq!(known.total.bytes, Some(54 * 12 * 125_000_000));
        assert_eq!(known.cells.len(), 18);
        assert_eq!((known.cells[0].1.runs, known.refinement.runs), (3, 18));
        assert_eq!(estimate(&plan, phases, None).total.bytes, None);
        let text = "[phase0]\nstreams = []\n[phase2]\npayloads = []\n[phase3.active]\nconnections = 0\n[phase1]\npayloads = []";
        let slow = Plan::parse(text).expect("plan");
        let bytes = estimate(&slow, Phases::ALL, None).total.bytes.expect("rates are known");
        assert_eq!(bytes, 36_000 * 115 + 62_000 * 1142);
    }

    #[test]
    fn a_plan_without_anything_costs_nothing() {
        let phases = Phases::parse("0").expect("phases");
        let plan = Plan::parse("[phase0]\nstreams = []").expect("plan");
        let estimate = estimate(&plan, phases, None);
        assert_eq!((estimate.total.runs, estimate.total.time, estimate.total.bytes), (0, Duration::ZERO, Some(0)));
    }
}
