//! Estimated cost of a plan.

use std::time::Duration;

use linerate_model::http::{CellKey, Phase};

use super::cells::{self, Phases, PlannedRun};
use crate::plan::Plan;

/// Waiting for the last answers, closing, and looking whether the hosts are at rest.
const AROUND_A_RUN: Duration = Duration::from_millis(500);
/// A TCP test leaves out its first second, and opens and closes its connections.
const AROUND_A_TEST: Duration = Duration::from_millis(1200);
/// The download that replaces phase 0.
const SHORT_TEST: Duration = Duration::from_millis(2700);

/// Estimated cost of a part of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Runs or tests.
    pub runs: u32,
    /// Time of all of them.
    pub time: Duration,
    /// Bytes of all responses; absent where they depend on the server and the path, as those of TCP
    /// tests and closed loops.
    pub bytes: Option<u64>,
}

impl Cost {
    const NOTHING: Self = Self {
        runs: 0,
        time: Duration::ZERO,
        bytes: Some(0),
    };

    fn plus(self, other: Self) -> Self {
        Self {
            runs: self.runs.saturating_add(other.runs),
            time: self.time.saturating_add(other.time),
            bytes: self
                .bytes
                .zip(other.bytes)
                .map(|(a, b)| a.saturating_add(b)),
        }
    }
}

/// Estimated cost of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimate {
    /// Every cell with all its repeats, in the order of the report.
    pub cells: Vec<(CellKey, Cost)>,
    /// All of it, with TCP tests and a refinement for every second payload; there may be none, or
    /// two for each.
    pub total: Cost,
}

/// Estimates a plan.
pub fn estimate(plan: &Plan, phases: Phases) -> Estimate {
    let test = if phases.has(0) {
        plan.tcp.duration.saturating_add(AROUND_A_TEST)
    } else {
        SHORT_TEST
    };
    let tests = cells::tests(plan, phases).into_iter();
    let tcp = tests
        .map(|_| Cost {
            runs: 1,
            time: test,
            bytes: None,
        })
        .fold(Cost::NOTHING, Cost::plus);

    let mut runs = cells::runs(plan, phases);
    // `chunk_by` groups neighbours alone.
    runs.sort_unstable();

    let cost = |runs: &[PlannedRun]| {
        runs.iter()
            .map(|run| run_cost(plan, &run.key))
            .fold(Cost::NOTHING, Cost::plus)
    };
    let cells = runs.chunk_by(|a, b| a.key == b.key);
    let cells: Vec<(CellKey, Cost)> = cells
        .filter_map(|runs| Some((runs.first()?.key, cost(runs))))
        .collect();
    // Without them the estimate missed up to a third of the default plan.
    let refined = refined(plan, phases);
    let total = cells
        .iter()
        .map(|(_, cost)| *cost)
        .chain(refined)
        .fold(tcp, Cost::plus);

    Estimate { cells, total }
}

/// A cell between others for every second payload of the matrix.
fn refined(plan: &Plan, phases: Phases) -> Vec<Cost> {
    let connections = plan
        .matrix
        .connections
        .iter()
        .max()
        .filter(|_| phases.has(2) && plan.matrix.refine_knee);
    let keys = connections.into_iter().flat_map(|connections| {
        let payloads = plan.matrix.payloads_bytes.iter().step_by(2);
        payloads.map(|payload| CellKey::new(Phase::Matrix, *payload, *connections / 2))
    });
    let cost = |key: CellKey| (0..plan.defaults.repeats).map(move |_| run_cost(plan, &key));

    keys.flat_map(cost).collect()
}

/// Estimated duration of a run of a cell.
pub fn run_time(plan: &Plan, key: &CellKey) -> Duration {
    run_cost(plan, key).time
}

fn run_cost(plan: &Plan, key: &CellKey) -> Cost {
    let warmup = match key.phase {
        Phase::Idle => Duration::ZERO,
        _ => plan.defaults.warmup,
    };
    let loaded = warmup.saturating_add(window(plan, key));
    Cost {
        runs: 1,
        time: ramp(plan, key.connections)
            .saturating_add(loaded)
            .saturating_add(AROUND_A_RUN)
            .saturating_add(plan.defaults.cooldown),
        bytes: bytes(plan, key, loaded),
    }
}

/// The measured window of a cell.
pub fn window(plan: &Plan, key: &CellKey) -> Duration {
    match key.phase {
        Phase::Idle => plan.c10k.idle.hold,
        Phase::LowRate => plan.c10k.low_rate.duration,
        Phase::Active => plan.c10k.active.duration,
        _ => plan.defaults.duration,
    }
}

fn ramp(plan: &Plan, connections: u32) -> Duration {
    let seconds = |rate: u32| f64::from(connections) / f64::from(rate.max(1));
    plan.defaults.ramp_per_s.map_or(Duration::ZERO, |rate| {
        Duration::from_secs_f64(seconds(rate))
    })
}

fn bytes(plan: &Plan, key: &CellKey, loaded: Duration) -> Option<u64> {
    let requests = match (key.phase, key.rate_per_s) {
        (Phase::Idle, _) => {
            let beats = plan
                .c10k
                .idle
                .heartbeat
                .map_or(0.0, |pause| loaded.as_secs_f64() / pause.as_secs_f64());
            f64::from(key.connections) * (beats + f64::from(u8::from(plan.c10k.idle.touch)))
        }
        (_, rate) => f64::from(rate?) * loaded.as_secs_f64(),
    };
    let response_bytes = key.payload_bytes + usual_header_bytes(key.payload_bytes);
    Some((requests * response_bytes as f64) as u64)
}

/// Bytes of the head our server sends by default for a body of this length: the status line,
/// `Date`, `Content-Type` and `Content-Length`.
pub(crate) fn usual_header_bytes(payload_bytes: u64) -> u64 {
    const WITHOUT_LENGTH_BYTES: u64 = 114;
    // 0 has one digit and no logarithm.
    let digits = payload_bytes
        .checked_ilog10()
        .map_or(1, |log| u64::from(log) + 1);
    WITHOUT_LENGTH_BYTES + digits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minutes(plan: &Plan, phases: &str) -> f64 {
        let phases = Phases::parse(phases).expect("phases");
        estimate(plan, phases).total.time.as_secs_f64() / 60.0
    }

    #[test]
    fn default_plan_takes_the_documented_minutes() {
        let plan = Plan::default();
        let tcp = minutes(&plan, "0");
        assert!((tcp - 44.8 / 60.0).abs() < 1e-9, "{tcp}");

        let matrix = minutes(&plan, "2");
        assert!((14.0..16.0).contains(&matrix), "{matrix}");
        assert!((minutes(&plan, "1-2") - matrix).abs() < 1e-9);

        let c10k = minutes(&plan, "3");
        assert!((4.0..5.5).contains(&c10k), "{c10k}");
        let quick = minutes(&plan.quick(), "0-3");
        assert!((2.0..3.5).contains(&quick), "{quick}");
    }

    #[test]
    fn bytes_are_known_of_rates_alone() {
        let matrix = estimate(&Plan::default(), Phases::parse("2").expect("phases"));
        assert_eq!(
            (
                matrix.cells.len(),
                matrix.cells[0].1.runs,
                matrix.total.bytes
            ),
            (18, 3, None)
        );
        let text = "[phase0]\nstreams = []\n[phase2]\npayloads = []\n[phase3.active]\nconnections \
                    = 0\n[phase1]\npayloads = []";
        let slow = Plan::parse(text).expect("plan");
        let bytes = estimate(&slow, Phases::ALL)
            .total
            .bytes
            .expect("rates are known");
        assert_eq!(bytes, 36_000 * 115 + 62_000 * 1142);
    }

    #[test]
    fn a_plan_without_anything_costs_nothing() {
        let phases = Phases::parse("0").expect("phases");
        let plan = Plan::parse("[phase0]\nstreams = []").expect("plan");
        let estimate = estimate(&plan, phases);
        assert_eq!(
            (
                estimate.total.runs,
                estimate.total.time,
                estimate.total.bytes
            ),
            (0, Duration::ZERO, Some(0))
        );
    }
}
