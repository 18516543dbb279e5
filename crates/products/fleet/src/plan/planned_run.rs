//! The plan of a run and what follows from it, computed once: hash, tasks, time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use linerate_model::fleet::{HostId, PlanHash, Task};
use linerate_model::outcome::Error;

use super::fleet_plan::{FleetPlan, PlanHost};
use super::ladder::{self, Step};
use super::rounds::rounds;
use super::sample;
use crate::spec::inventory::{Host, Rack, Reach};
use crate::spec::{RunSpec, Topology};

/// Time of a round beside its tests.
const ROUND_OVERHEAD: Duration = Duration::from_millis(1_000);
/// Most payload of all tests without an option, in bytes.
const BYTES_MAX: u64 = 1_000_000_000_000;

/// Rates of the links of the hosts in bit/s, where they are known.
pub type Links = BTreeMap<HostId, f64>;

/// A plan with what follows from it before the first result, computed once.
#[derive(Debug)]
pub struct PlannedRun {
    /// The plan.
    pub plan: FleetPlan,
    /// Its identity.
    pub hash: PlanHash,
    /// Every task that is known before the first result, each once.
    pub tasks: Vec<Task>,
    /// Steps of the ladders; empty for a mesh or pairs.
    pub steps: Vec<Step>,
}

/// Time and data of the known tasks of a plan.
#[derive(Debug, Clone, Copy)]
pub struct Estimate {
    /// Tests.
    pub cells: usize,
    /// Rounds.
    pub rounds: usize,
    /// Time of all rounds.
    pub time: Duration,
}

impl PlannedRun {
    /// The run of a specification.
    ///
    /// # Errors
    /// A path is not known, or the hub of a ladder is no host that can have several tests at a
    /// time.
    pub fn of(spec: &RunSpec) -> Result<Self, Error> {
        spec.check_hub()?;
        let inventory = &spec.hosts.inventory;
        let host = |host: &Host| PlanHost {
            id: host.id.clone(),
            rack: host.rack.clone(),
            is_target_only: matches!(host.reach, Reach::Server(_)),
        };
        let racks = inventory.racks.iter();
        let crossing = racks.filter_map(|(name, rack)| Some((name.clone(), rack.crossing?)));

        let test = spec.test;
        // The last of the staggered tests starts after the delays of all others.
        let hosts_staggered = u32::try_from(inventory.hosts.len()).unwrap_or(u32::MAX);
        Ok(Self::new(FleetPlan {
            hosts: inventory.hosts.iter().map(host).collect(),
            topology: spec.topology.clone(),
            mode: spec.mode,
            direction: spec.direction,
            paths: spec.hosts.path_names()?,
            variants: spec.variants.clone(),
            repetitions: spec.repetitions,
            crossing: crossing.collect(),
            sample_rounds: spec.sample_rounds,
            seed: spec.seed,
            test,
            round_time: test.length()
                + ROUND_OVERHEAD
                + test.stagger.saturating_mul(hosts_staggered),
            budget: spec.budget.unwrap_or(Duration::MAX),
            bytes_max: spec.bytes_max.unwrap_or(BYTES_MAX),
        }))
    }

    /// Limits the pairs over the uplinks whose racks name a rate alone: to that over the rate of
    /// the slowest link of the rack. The identity of the plan stays: it holds before the hosts
    /// report their links.
    pub fn limit_uplinks(&mut self, racks: &BTreeMap<String, Rack>, links_bps: &Links) {
        for (name, rack) in racks {
            let mut slowest_bps: Option<f64> = None;
            for host in &self.plan.hosts {
                if host.rack.as_ref() == Some(name) {
                    let bps = links_bps.get(&host.id).copied();
                    slowest_bps = slowest_bps.into_iter().chain(bps).reduce(f64::min);
                }
            }
            if let Some(uplink_bps) = rack.uplink_bps
                && let Some(slowest_bps) = slowest_bps
            {
                // An uplink slower than one link still carries one pair at a time.
                let pairs = (uplink_bps as f64 / slowest_bps).max(1.0) as u32;
                self.plan.crossing.entry(name.clone()).or_insert(pairs);
            }
        }
    }

    /// Computes the tasks of a plan.
    pub fn new(plan: FleetPlan) -> Self {
        let steps = ladder::steps(&plan);
        let mut tasks: Vec<Task> = Vec::new();
        for step in &steps {
            tasks.extend(step.tasks.iter().cloned());
        }
        if plan.topology.hub().is_none() {
            let pairs = pairs(&plan);
            for repetition in 0..plan.repetitions.max(1) {
                tasks.extend(plan.tasks_of(&pairs, repetition));
            }
        }

        Self {
            hash: plan.hash(),
            tasks,
            steps,
            plan,
        }
    }

    /// Tasks without a result.
    pub fn open(&self, finished: &BTreeSet<Task>) -> Vec<Task> {
        let mut open = self.tasks.clone();
        open.retain(|task| !finished.contains(task));
        open
    }

    /// Estimates the tasks without a result, tests that depend on results not counted.
    pub fn estimate(&self, finished: &BTreeSet<Task>, alive: &BTreeSet<HostId>) -> Estimate {
        let plan = &self.plan;
        let planned = if plan.topology.hub().is_some() {
            let steps = ladder::among(self.steps.clone(), alive, finished);
            ladder::rounds(&steps, finished)
        } else {
            rounds(&self.open(finished), alive, plan)
        };

        // A number beyond the range of u32 saturates to a time that exceeds any budget.
        let count = u32::try_from(planned.len()).unwrap_or(u32::MAX);
        Estimate {
            cells: planned.iter().map(|round| round.tasks.len()).sum(),
            rounds: planned.len(),
            time: plan.round_time.saturating_mul(count),
        }
    }

    /// Most payload of the tasks without a result in bytes; `None` where nothing bounds one of them.
    pub fn bytes_max(
        &self,
        finished: &BTreeSet<Task>,
        alive: &BTreeSet<HostId>,
        links_bps: &Links,
    ) -> Option<u64> {
        let test = self.plan.test;
        let limit = test.rate_bps.map(|bps| bps as f64);
        let mut all = 0.0;
        for task in self.open(finished) {
            if alive.contains(&task.source) && alive.contains(&task.sink) {
                let ends = [&task.source, &task.sink];
                let links = ends.into_iter().filter_map(|host| links_bps.get(host));
                let bps = links.copied().chain(limit).reduce(f64::min)?;
                all += bps * test.length().as_secs_f64() / 8.0;
            }
        }

        Some(all as u64)
    }
}

/// Pairs of a mesh or of a list, each once, without those that cannot be measured.
fn pairs(plan: &FleetPlan) -> Vec<(HostId, HostId)> {
    let mut hosts: Vec<&PlanHost> = plan.hosts.iter().collect();
    hosts.sort_unstable();
    // A plan takes any list of hosts; the sort places equal ids next to each other.
    hosts.dedup_by(|a, b| a.id == b.id);

    let ids: Vec<HostId> = hosts.iter().map(|host| host.id.clone()).collect();
    let targets = plan.targets();
    let mut pairs = match &plan.topology {
        Topology::Pairs(pairs) => ordered_pairs(pairs, &ids),
        _ => sample::pairs(&ids, plan.sample_rounds, plan.seed),
    };
    // Two servers without an agent have no end that can start a test.
    pairs.retain(|(a, b)| !(targets.contains(a) && targets.contains(b)));

    pairs
}

/// Each pair of known, different hosts once.
fn ordered_pairs(pairs: &[(HostId, HostId)], known: &[HostId]) -> Vec<(HostId, HostId)> {
    let mut ordered = Vec::new();
    for (a, b) in pairs {
        // The two orders of a pair are one pair: its tests run in both directions anyway.
        let pair = (a.min(b).clone(), a.max(b).clone());
        let is_pair = a != b && known.contains(a) && known.contains(b);
        if is_pair && !ordered.contains(&pair) {
            ordered.push(pair);
        }
    }

    ordered
}
