//! A plan and what follows from it: hash, tasks, time.

use std::collections::BTreeSet;
use std::time::Duration;

use linerate_model::fleet::{HostId, PlanHash, Task};

use super::fleet_plan::{FleetPlan, PlanHost};
use super::ladder::{self, Step};
use super::rounds::rounds;
use super::sample;
use crate::spec::Topology;

/// A plan with what follows from it before the first result, computed once.
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Tests.
    pub cells: usize,
    /// Rounds.
    pub rounds: usize,
    /// Time of all rounds.
    pub time: Duration,
}

impl PlannedRun {
    /// Computes the tasks of a plan.
    pub fn new(plan: FleetPlan) -> Self {
        let steps = ladder::steps(&plan);
        let tasks = match plan.topology.hub() {
            Some(_) => steps.iter().flat_map(|step| &step.tasks).cloned().collect(),
            None => {
                let pairs = pairs(&plan);
                (0..plan.repetitions.max(1))
                    .flat_map(|repetition| plan.tasks_of(&pairs, repetition))
                    .collect()
            }
        };

        Self {
            hash: plan.hash(),
            tasks,
            steps,
            plan,
        }
    }

    /// Tasks without a result.
    pub fn open(&self, finished: &BTreeSet<Task>) -> Vec<Task> {
        let is_open = |task: &&Task| !finished.contains(task);
        self.tasks.iter().filter(is_open).cloned().collect()
    }

    /// Estimates the tasks without a result, tests that depend on results not counted.
    pub fn estimate(&self, finished: &BTreeSet<Task>, alive: &BTreeSet<HostId>) -> Estimate {
        let plan = &self.plan;
        let planned = match plan.topology.hub() {
            Some(_) => ladder::rounds(
                &ladder::among(self.steps.clone(), alive, finished),
                finished,
            ),
            None => rounds(
                &self.open(finished),
                alive,
                &plan.caps(plan.mode),
                plan.seed,
            ),
        };

        Estimate {
            cells: planned.iter().map(|round| round.tasks.len()).sum(),
            rounds: planned.len(),
            time: plan
                .round_time
                // A product beyond the range of u32 saturates to a time that exceeds any budget.
                .saturating_mul(u32::try_from(planned.len()).unwrap_or(u32::MAX)),
        }
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
    let mut seen = BTreeSet::new();
    let ordered = pairs
        .iter()
        // The two orders of a pair are one pair: its tests run in both directions anyway.
        .map(|(a, b)| if a < b { (a, b) } else { (b, a) });
    let new = ordered
        .filter(|(a, b)| a != b && known.contains(a) && known.contains(b) && seen.insert((*a, *b)));
    new.map(|(a, b)| (a.clone(), b.clone())).collect()
}
