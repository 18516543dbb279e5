//! Which runs a plan means and in which order.
//!
//! The repeats of phase 2 are interleaved: a first round over all cells in a random order, then a
//! second one. What drifts over the minutes so falls on all cells and not on one. Phase 3 comes
//! last, because it leaves ports and sockets behind.

use std::collections::BTreeSet;

use fastrand::Rng;
use linerate_model::Flow;
use linerate_model::http::units::{nanoseconds, shown};
use linerate_model::http::{CellKey, Mode, Phase};
use thiserror::Error;

use crate::plan::Plan;

/// Selected phases of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phases {
    wanted: [bool; 4],
}

/// A text that names no phases.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}`: expected phases from 0 to 3, for instance 0-3 or 0,2")]
pub struct PhasesError(String);

impl Phases {
    /// All of them.
    pub const ALL: Self = Self { wanted: [true; 4] };

    /// From words like `0-3` or `0,2`.
    ///
    /// # Errors
    /// [`PhasesError`].
    pub fn parse(text: &str) -> Result<Self, PhasesError> {
        let wrong = || PhasesError(shown(text));
        let phase = |word: &str| {
            word.trim()
                .parse::<usize>()
                .ok()
                .filter(|phase| *phase < 4)
                .ok_or_else(wrong)
        };

        let mut wanted = [false; 4];
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first = phase(first)?;
            let last = phase(last)?;
            if first > last {
                return Err(wrong());
            }

            wanted
                .iter_mut()
                .take(last + 1)
                .skip(first)
                .for_each(|wanted| *wanted = true);
        }

        Ok(Self { wanted })
    }

    /// True if the phase with this number is selected.
    pub fn has(self, phase: usize) -> bool {
        self.wanted.get(phase).copied().unwrap_or(false)
    }
}

/// One test of phase 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedTest {
    /// Who sends.
    pub direction: Flow,
    /// Streams in parallel.
    pub streams: u32,
}

/// One run of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlannedRun {
    /// The cell.
    pub key: CellKey,
    /// Which of its repeats, from 1.
    pub repeat: u32,
}

impl PlannedRun {
    /// Name of the file it is kept in.
    pub fn file_name(&self) -> String {
        format!("{}-r{}.json", self.key.name(), self.repeat)
    }
}

/// Tests of phase 0 in their order; without it, one in the direction of the responses, for the
/// ceiling.
pub fn tests(plan: &Plan, phases: Phases) -> Vec<PlannedTest> {
    if !phases.has(0) {
        return vec![PlannedTest {
            direction: Flow::Reverse,
            streams: SHORT_STREAMS,
        }];
    }

    let mut tests = Vec::new();
    for direction in &plan.tcp.directions {
        tests.extend(plan.tcp.streams.iter().map(|streams| PlannedTest {
            direction: *direction,
            streams: *streams,
        }));
    }

    tests
}

/// One stream may be limited by its window.
const SHORT_STREAMS: u32 = 4;

/// Runs of phases 1 to 3 in their order.
pub fn runs(plan: &Plan, phases: Phases) -> Vec<PlannedRun> {
    let mut rng = Rng::with_seed(plan.seed);
    let mut runs = interleaved(&payload_keys(plan, phases), plan.defaults.repeats, &mut rng);
    runs.extend(interleaved(
        &matrix_keys(plan, phases),
        plan.defaults.repeats,
        &mut rng,
    ));
    runs.extend(
        c10k_keys(plan, phases)
            .into_iter()
            .map(|key| PlannedRun { key, repeat: 1 }),
    );

    runs
}

/// Runs of cells that are added around a knee, in a random order.
pub fn refinement_runs(plan: &Plan, keys: &[CellKey]) -> Vec<PlannedRun> {
    interleaved(keys, plan.defaults.repeats, &mut Rng::with_seed(plan.seed))
}

/// The cells of some runs, each once.
pub fn keys(runs: &[PlannedRun]) -> Vec<CellKey> {
    let keys: BTreeSet<CellKey> = runs.iter().map(|run| run.key).collect();
    keys.into_iter().collect()
}

/// The cell of phase 2 that replaces a cell of phase 1; `None` where phase 1 makes runs of its own.
pub fn by_product(plan: &Plan, phases: Phases, payload_bytes: u64) -> Option<CellKey> {
    let is_in_matrix = phases.has(2)
        && plan.matrix.payloads_bytes.contains(&payload_bytes)
        && plan.matrix.connections.contains(&plan.payloads.connections);
    is_in_matrix.then_some(CellKey::new(
        Phase::Matrix,
        payload_bytes,
        plan.payloads.connections,
    ))
}

/// When the requests of a cell are sent.
pub fn mode(plan: &Plan, key: &CellKey) -> Mode {
    match (key.phase, key.rate_per_s) {
        (Phase::Idle, _) => Mode::Idle {
            heartbeat_ns: plan.c10k.idle.heartbeat.map(nanoseconds),
        },
        (_, Some(rate)) => Mode::Open {
            rate_per_s: f64::from(rate),
            arrivals: plan.c10k.low_rate.arrivals,
        },
        _ => Mode::Closed {
            // A stream is a place for one request.
            pipeline: plan.protocol.streams,
            think_ns: 0,
        },
    }
}

fn payload_keys(plan: &Plan, phases: Phases) -> Vec<CellKey> {
    let mut payloads = plan.payloads.payloads_bytes.clone();
    payloads.retain(|bytes| phases.has(1) && by_product(plan, phases, *bytes).is_none());
    let key = |bytes| CellKey::new(Phase::Payload, bytes, plan.payloads.connections);
    payloads.into_iter().map(key).collect()
}

fn matrix_keys(plan: &Plan, phases: Phases) -> Vec<CellKey> {
    let mut keys = Vec::new();
    if !phases.has(2) {
        return keys;
    }

    for bytes in &plan.matrix.payloads_bytes {
        let connections = plan.matrix.connections.iter();
        keys.extend(connections.map(|many| CellKey::new(Phase::Matrix, *bytes, *many)));
    }

    keys
}

/// Idle connections from few to many, then those with few requests, then the busy ones: each leaves
/// more behind.
fn c10k_keys(plan: &Plan, phases: Phases) -> Vec<CellKey> {
    if !phases.has(3) {
        return Vec::new();
    }

    let low_rate = &plan.c10k.low_rate;
    let active = &plan.c10k.active;
    let mut steps = plan.c10k.idle.steps.clone();
    // Each step leaves more sockets and ports behind than the one before.
    steps.sort_unstable();
    let steps = steps.into_iter();
    let mut keys: Vec<CellKey> = steps
        .map(|step| CellKey::new(Phase::Idle, 0, step))
        .collect();

    if low_rate.connections > 0 {
        keys.push(CellKey {
            rate_per_s: Some(low_rate.rate_per_s),
            ..CellKey::new(Phase::LowRate, low_rate.payload_bytes, low_rate.connections)
        });
    }

    if active.connections > 0 {
        let payloads = active.payloads_bytes.iter();
        keys.extend(payloads.map(|bytes| CellKey::new(Phase::Active, *bytes, active.connections)));
    }

    keys
}

fn interleaved(keys: &[CellKey], repeats: u32, rng: &mut Rng) -> Vec<PlannedRun> {
    let mut round = keys.to_vec();
    let mut runs = Vec::with_capacity(keys.len() * repeats as usize);

    for repeat in 1..=repeats {
        rng.shuffle(&mut round);
        runs.extend(round.iter().map(|key| PlannedRun { key: *key, repeat }));
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::http::Arrivals;

    fn plan(text: &str) -> Plan {
        Plan::parse(text).expect(text)
    }

    fn phases(text: &str) -> Phases {
        Phases::parse(text).expect(text)
    }

    #[test]
    fn phases_are_numbers_and_ranges() {
        assert_eq!(phases("0-3"), Phases::ALL);
        let some = phases("0,2");
        assert_eq!(
            [0, 1, 2, 3, 4].map(|phase| some.has(phase)),
            [true, false, true, false, false]
        );

        for wrong in ["", "4", "3-1", "0-", "-1", "a", "0,,1"] {
            assert!(Phases::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_round_of_phase_2_holds_every_cell_once_and_the_orders_differ() {
        let runs = runs(&Plan::default(), phases("2"));
        assert_eq!(runs.len(), 54);

        let rounds: Vec<Vec<CellKey>> = runs
            .chunks(18)
            .map(|round| round.iter().map(|run| run.key).collect())
            .collect();
        for (index, round) in rounds.iter().enumerate() {
            let repeats = runs[index * 18..][..18]
                .iter()
                .map(|run| run.repeat as usize);
            assert!(repeats.eq([index + 1; 18]));
            assert_eq!(round.iter().collect::<BTreeSet<_>>().len(), 18);
        }

        assert!(rounds[0] != rounds[1] && rounds[1] != rounds[2]);
        let names: BTreeSet<String> = runs.iter().map(PlannedRun::file_name).collect();
        assert!(names.len() == runs.len() && names.contains("matrix-10k-c1024-r3.json"));
    }

    #[test]
    fn the_seed_decides_the_order_and_nothing_else() {
        let (one, again, two) = (plan("seed = 1"), plan("seed = 1"), plan("seed = 2"));
        assert_eq!(runs(&one, Phases::ALL), runs(&again, Phases::ALL));
        assert_ne!(runs(&one, Phases::ALL), runs(&two, Phases::ALL));
        let set = |plan| runs(plan, Phases::ALL).into_iter().collect::<BTreeSet<_>>();
        assert_eq!(set(&one), set(&two));
    }

    #[test]
    fn phase_1_makes_runs_of_its_own_only_where_phase_2_does_not_make_them() {
        let own = |text: &str, selected: &str| {
            let runs = runs(&plan(text), phases(selected));
            runs.into_iter()
                .filter(|run| run.key.phase == Phase::Payload)
                .count()
        };
        assert_eq!(own("", "0-3"), 0);
        assert_eq!(own("", "1"), 9);
        assert_eq!(own("[phase1]\nconnections = 65", "0-3"), 9);
        assert_eq!(own("[phase1]\npayloads = [\"1k\", \"2k\"]", "0-3"), 3);

        let by_product = by_product(&Plan::default(), Phases::ALL, 1024).expect("in the matrix");
        assert_eq!(by_product.name(), "matrix-1k-c64");
    }

    #[test]
    fn phase_3_comes_last_and_from_few_connections_to_many() {
        let plan = plan("[phase3.idle]\nsteps = [5000, 1000]");
        let names: Vec<String> = runs(&plan, Phases::ALL)
            .iter()
            .skip(54)
            .map(PlannedRun::file_name)
            .collect();

        let expected = [
            "idle-0-c1000-r1.json",
            "idle-0-c5000-r1.json",
            "low_rate-1k-c10000-r1.json",
            "active-1k-c10000-r1.json",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_part_without_connections_or_payloads_is_left_out() {
        let plan = plan(
            "[phase0]\ndirections = []\n[phase2]\npayloads = []\n[phase3.idle]\nsteps = \
             []\n[phase3.lowrate]\nconnections = 0\n[phase3.active]\npayloads = []",
        );
        assert!(tests(&plan, Phases::ALL).is_empty());
        assert!(
            keys(&runs(&plan, Phases::ALL))
                .iter()
                .all(|key| key.phase == Phase::Payload)
        );
        assert_eq!(tests(&Plan::default(), Phases::ALL).len(), 4);

        let short = PlannedTest {
            direction: Flow::Reverse,
            streams: SHORT_STREAMS,
        };
        assert_eq!(tests(&Plan::default(), phases("1")), [short]);
    }

    #[test]
    fn requests_are_sent_as_the_part_demands() {
        let plan = plan("[phase3.idle]\nheartbeat = \"10s\"");
        let modes: Vec<Mode> = c10k_keys(&plan, Phases::ALL)
            .iter()
            .map(|key| mode(&plan, key))
            .collect();
        let heartbeat_ns = Some(10_000_000_000);
        assert_eq!(modes[0], Mode::Idle { heartbeat_ns });
        assert!(
            matches!(modes[4], Mode::Open { rate_per_s, arrivals: Arrivals::Poisson } if rate_per_s == 1000.0)
        );
        assert_eq!(
            modes[5],
            Mode::Closed {
                pipeline: 1,
                think_ns: 0
            }
        );

        // A closed loop keeps every stream busy.
        let plan = self::plan("[protocol]\nversion = \"2\"\nstreams = 8");
        assert!(matches!(
            mode(&plan, &CellKey::new(Phase::Matrix, 1024, 64)),
            Mode::Closed { pipeline: 8, .. }
        ));
    }
}
