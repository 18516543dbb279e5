//! Fleets whose rates are known, run through the analysis.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::conclude::{FleetProgress, RoundError, RoundRunner, explore};
use crate::plan::{FleetPlan, PlanHost, PlannedRun};
use crate::spec::Topology;
use linerate_model::fleet::{
    Cell, CellOutcome, FleetReport, HostId, Measurement, Round, StartTimes, Task,
};

use crate::fixtures::{self, host};

/// A plan and a network without noise.
pub(super) struct Fleet {
    pub plan: FleetPlan,
    pub nominal_bps: Option<f64>,
    /// Rate of a test that nothing slows down.
    pub line_bps: f64,
    slow: BTreeMap<HostId, f64>,
    dead: BTreeSet<HostId>,
    uplink_bps: f64,
    rounds: usize,
}

pub(super) fn mesh(count: usize) -> Fleet {
    let plan = FleetPlan {
        round_time: Duration::from_millis(2600),
        ..fixtures::mesh(count)
    };
    Fleet {
        plan,
        nominal_bps: Some(1e9),
        line_bps: 953e6,
        slow: BTreeMap::new(),
        dead: BTreeSet::new(),
        uplink_bps: f64::INFINITY,
        rounds: 0,
    }
}

/// Racks of `size` hosts, whose uplinks all pairs of a round share.
pub(super) fn racked(count: usize, size: usize, uplink_bps: f64) -> Fleet {
    let mut fleet = Fleet {
        uplink_bps,
        ..mesh(count)
    };
    for (at, host) in fleet.plan.hosts.iter_mut().enumerate() {
        host.rack = Some(format!("r{}", at / size + 1));
    }

    fleet
}

/// All send to `nas`, which has ten times their rate.
pub(super) fn incast(count: usize) -> Fleet {
    let mut fleet = mesh(count);
    fleet.plan.hosts.push(PlanHost {
        id: host("nas"),
        rack: None,
        is_target_only: false,
    });
    fleet.plan.topology = Topology::Incast(host("nas"));

    fleet
}

impl Fleet {
    pub(super) fn slow(mut self, name: &str, bps: f64) -> Self {
        self.slow.insert(host(name), bps);
        self
    }

    pub(super) fn without(mut self, name: &str) -> Self {
        self.dead.insert(host(name));
        self
    }

    pub(super) fn run(mut self) -> FleetReport {
        let planned = PlannedRun::new(self.plan.clone());
        let mut report = explore(&planned, Vec::new(), &mut self);
        report.header.elapsed_ns = self.now().as_nanos() as u64;
        for host in &mut report.header.hosts {
            if planned.plan.topology.hub() == Some(&host.id) {
                host.link_bps = Some(10e9);
            }
        }

        report
    }

    fn rate(&self, task: &Task, round: &Round) -> f64 {
        let of = |host: &HostId| self.slow.get(host).copied().unwrap_or(self.line_bps);
        let racks = self.plan.racks();
        let ends = |task: &Task| {
            (
                racks.get(&task.source).cloned(),
                racks.get(&task.sink).cloned(),
            )
        };
        let own = ends(task);
        let crossing = round.tasks.iter().filter(|task| ends(task) == own).count() as f64;
        let uplink = if own.0 == own.1 {
            f64::INFINITY
        } else {
            self.uplink_bps / crossing
        };

        of(&task.source).min(of(&task.sink)).min(uplink).round()
    }
}

impl RoundRunner for Fleet {
    fn run(&mut self, round: &Round) -> Result<Vec<Cell>, RoundError> {
        self.rounds += 1;
        let planned_ns = self.rounds as u64 * 1_000_000_000;

        let cell = |(at, task): (u64, &Task)| {
            let measurement = Measurement {
                goodput_bps: self.rate(task, round),
                nominal_bps: self.nominal_bps,
                retransmits: Some(0),
                rtt_us: Some(210),
                start: Some(StartTimes {
                    planned_ns,
                    actual_ns: planned_ns + 100_000 * (at + 1),
                }),
                ..Measurement::default()
            };
            Cell::new(task.clone(), round.mode, CellOutcome::Measured(measurement))
        };
        Ok((0..).zip(&round.tasks).map(cell).collect())
    }

    fn alive(&self) -> BTreeSet<HostId> {
        self.plan
            .hosts
            .iter()
            .map(|host| host.id.clone())
            .filter(|id| !self.dead.contains(id))
            .collect()
    }

    fn now(&self) -> Duration {
        self.plan.round_time * u32::try_from(self.rounds).expect("few rounds")
    }

    fn progress(&mut self, _: &FleetProgress) {}
}
