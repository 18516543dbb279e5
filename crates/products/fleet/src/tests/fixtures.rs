//! Plans, cells and a network for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fastrand::Rng;
use linerate_model::fleet::{
    Cell, CellOutcome, FleetMode, HostId, Measurement, NotRun, NotRunReason, PairDirection, Round,
    Task,
};

use crate::conclude::{FleetProgress, RoundError, RoundRunner};
use crate::plan::{FleetPlan, PlanHost};
use crate::spec::{TestOptions, Topology};

pub(crate) fn host(name: &str) -> HostId {
    name.parse().expect("a host id")
}

/// `h1` to `hN`.
pub(crate) fn hosts(count: usize) -> Vec<HostId> {
    (1..=count).map(|at| host(&format!("h{at}"))).collect()
}

/// A mesh of `h1` to `hN`, both ways at once.
pub(crate) fn mesh(count: usize) -> FleetPlan {
    let plan_host = |id: HostId| PlanHost {
        id,
        rack: None,
        is_target_only: false,
    };
    FleetPlan {
        hosts: hosts(count).into_iter().map(plan_host).collect(),
        topology: Topology::Mesh,
        mode: FleetMode::Rounds,
        direction: PairDirection::Both,
        paths: vec!["phys".to_owned()],
        variants: Vec::new(),
        repetitions: 1,
        crossing: BTreeMap::new(),
        sample_rounds: None,
        seed: 1,
        test: TestOptions {
            time: Duration::from_secs(2),
            omit: Duration::ZERO,
            streams: 1,
            rate_bps: None,
            stagger: Duration::ZERO,
        },
        round_time: Duration::from_secs(3),
        budget: Duration::MAX,
        bytes_max: u64::MAX,
    }
}

/// As [`mesh`], with racks of `size` hosts, `r0`, `r1` …, each with an uplink of `crossing` pairs.
pub(crate) fn racked(count: usize, size: usize, crossing: u32) -> FleetPlan {
    let mut plan = mesh(count);
    for (at, host) in plan.hosts.iter_mut().enumerate() {
        let rack = format!("r{}", at / size);
        plan.crossing.insert(rack.clone(), crossing);
        host.rack = Some(rack);
    }

    plan.mode = FleetMode::RackSafe;
    plan
}

/// A cell of one path with a rate, without a nominal rate.
pub(crate) fn cell(source: &str, sink: &str, goodput_bps: f64) -> Cell {
    let task = Task::new(host(source), host(sink), "phys");
    let measurement = Measurement {
        goodput_bps,
        ..Measurement::default()
    };
    Cell::new(task, FleetMode::Rounds, CellOutcome::Measured(measurement))
}

/// Cells of pairs that were measured both ways at once.
pub(crate) fn pair_cells(pairs: &[(&str, &str, f64)]) -> Vec<Cell> {
    pairs
        .iter()
        .flat_map(|(a, b, rate)| [cell(a, b, *rate), cell(b, a, *rate)])
        .collect()
}

pub(crate) const GIGABIT: f64 = 953e6;

/// A network whose tests take as long as the plan has it.
pub(crate) struct FakeNetwork {
    rng: Rng,
    /// Standard deviation of a rate, as a share of it.
    pub noise: f64,
    /// Rate that each host can send and receive, in bit/s; others one gigabit.
    pub sends: BTreeMap<HostId, f64>,
    pub receives: BTreeMap<HostId, f64>,
    /// Rate that the link of each host can carry, in bit/s; others unknown.
    pub links_bps: BTreeMap<HostId, f64>,
    /// Rate that each source and sink can exchange, in bit/s; others any rate.
    pub pairs: BTreeMap<(HostId, HostId), f64>,
    /// Rack of each host, and the rate of each uplink in bit/s.
    pub racks: BTreeMap<HostId, String>,
    pub uplink_bps: f64,
    /// While this host has a test, no other has more than 100 Mbit/s.
    pub poison: Option<HostId>,
    /// Beside others this host sends 50 Mbit/s.
    pub starved: Option<HostId>,
    /// Transmit queues of every host, to which the flows of a round are assigned by lot.
    pub queues: Option<u32>,
    /// Hosts, by the number of rounds after which each leaves.
    pub alive: BTreeMap<HostId, usize>,
    /// Numbers of rounds that this host does not confirm in time.
    pub slow_control: Option<(HostId, Vec<usize>)>,
    /// The number of the round in which the user cancels.
    pub cancelled_at: Option<usize>,
    pub rounds: Vec<Round>,
    /// Tasks without a cell before each round.
    pub cells_left: Vec<usize>,
    round_time: Duration,
}

impl FakeNetwork {
    pub(crate) fn new(plan: &FleetPlan, seed: u64) -> Self {
        Self {
            rng: Rng::with_seed(seed),
            noise: 0.003,
            sends: BTreeMap::new(),
            receives: BTreeMap::new(),
            links_bps: BTreeMap::new(),
            pairs: BTreeMap::new(),
            racks: BTreeMap::new(),
            uplink_bps: f64::INFINITY,
            poison: None,
            starved: None,
            queues: None,
            alive: plan
                .hosts
                .iter()
                .map(|host| (host.id.clone(), usize::MAX))
                .collect(),
            slow_control: None,
            cancelled_at: None,
            rounds: Vec::new(),
            cells_left: Vec::new(),
            round_time: plan.round_time,
        }
    }

    fn rate(&mut self, task: &Task, round: &Round, on_queue: u32) -> f64 {
        let of = |caps: &BTreeMap<HostId, f64>, host| caps.get(host).copied().unwrap_or(GIGABIT);
        let sharers =
            |is_one: &dyn Fn(&&Task) -> bool| round.tasks.iter().filter(is_one).count() as f64;
        let sends = of(&self.sends, &task.source) / sharers(&|other| other.source == task.source);
        let receives = of(&self.receives, &task.sink) / sharers(&|other| other.sink == task.sink);
        let pair = (task.source.clone(), task.sink.clone());
        let pair = self.pairs.get(&pair).copied().unwrap_or(f64::INFINITY);

        let racks = |task: &Task| {
            (
                self.racks.get(&task.source).cloned(),
                self.racks.get(&task.sink).cloned(),
            )
        };
        let (from, to) = racks(task);
        let crossing = sharers(&|other| racks(other).0 == from && racks(other).1 != from);
        let uplink = if from == to {
            f64::INFINITY
        } else {
            self.uplink_bps / crossing
        };

        let is_poisoned = |poison: &HostId| round.tasks.iter().any(|task| task.source == *poison);
        let poisoned = if self.poison.as_ref().is_some_and(is_poisoned) {
            100e6
        } else {
            f64::INFINITY
        };

        let is_starved = self.starved.as_ref() == Some(&task.source) && round.tasks.len() > 1;
        let queued = if is_starved {
            50e6
        } else {
            GIGABIT / f64::from(on_queue)
        };

        // The sum of twelve uniform values is close to normal.
        let normal = (0..12).map(|_| self.rng.f64()).sum::<f64>() - 6.0;
        let rate = [receives, pair, uplink, poisoned, queued]
            .into_iter()
            .fold(sends, f64::min);

        rate * (1.0 + self.noise * normal)
    }
}

impl RoundRunner for FakeNetwork {
    fn run(&mut self, round: &Round) -> Result<Vec<Cell>, RoundError> {
        let number = self.rounds.len();
        if self.cancelled_at == Some(number) {
            return Err(RoundError::Cancelled);
        }

        self.rounds.push(round.clone());
        let is_slow = |task: &Task| {
            let is_late = |(host, rounds): &(HostId, Vec<usize>)| {
                rounds.contains(&number) && (task.source == *host || task.sink == *host)
            };
            self.slow_control.as_ref().is_some_and(is_late)
        };
        let (slow, run): (Vec<Task>, Vec<Task>) = round.tasks.iter().cloned().partition(is_slow);
        let mut cells = Vec::new();

        let queues: Vec<u32> = run
            .iter()
            .map(|_| self.queues.map_or(0, |queues| self.rng.u32(0..queues)))
            .collect();
        for (task, queue) in run.into_iter().zip(&queues) {
            let sharers = queues.iter().filter(|other| *other == queue).count() as u32;
            let on_queue = if self.queues.is_some() { sharers } else { 1 };
            let measurement = Measurement {
                goodput_bps: self.rate(&task, round, on_queue),
                nominal_bps: Some(1e9),
                ..Measurement::default()
            };
            cells.push(Cell::new(
                task,
                round.mode,
                CellOutcome::Measured(measurement),
            ));
        }

        let not_run = || CellOutcome::NotRun(NotRun::new(NotRunReason::SlowControl));
        cells.extend(
            slow.into_iter()
                .map(|task| Cell::new(task, round.mode, not_run())),
        );
        Ok(cells)
    }

    fn alive(&self) -> BTreeSet<HostId> {
        self.alive
            .iter()
            .filter(|(_, leaves)| self.rounds.len() < **leaves)
            .map(|(host, _)| host.clone())
            .collect()
    }

    fn now(&self) -> Duration {
        self.round_time
            .saturating_mul(u32::try_from(self.rounds.len()).unwrap_or(u32::MAX))
    }

    fn progress(&mut self, progress: &FleetProgress) {
        assert!(
            progress.rounds_planned > progress.rounds_done,
            "{progress:?}"
        );
        self.cells_left.push(progress.cells_left);
    }

    fn link_bps(&self, host: &HostId) -> Option<f64> {
        self.links_bps.get(host).copied()
    }

    fn separating(&self, fast: &[HostId], slow: &[HostId]) -> Vec<String> {
        vec![format!("{} against {}", fast.len(), slow.len())]
    }
}
