//! Plan of a fleet run: its hosts, what is measured between them, and the tasks that follow.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use linerate_model::fleet::{FleetMode, HostId, PairDirection, PlanHash, Task, TaskId};
use linerate_model::stored_name;

use crate::spec::{TestOptions, Topology};
use linerate_model::fnv::Fnv128;

/// A plan.
#[derive(Debug, Clone)]
pub struct FleetPlan {
    /// Its hosts; the order does not matter.
    pub hosts: Vec<PlanHost>,
    /// Which of them exchange data.
    pub topology: Topology,
    /// Which tests run at the same time.
    pub mode: FleetMode,
    /// The two directions of a pair: at the same time or one after the other.
    pub direction: PairDirection,
    /// Names of the paths; at least one.
    pub paths: Vec<String>,
    /// Varied settings; empty where nothing is.
    pub variants: Vec<String>,
    /// Tests of each pair, path and variant.
    pub repetitions: u32,
    /// Pairs that may use the uplink of a rack at the same time in [`FleetMode::RackSafe`]; a rack
    /// without an entry has no limit.
    pub crossing: BTreeMap<String, u32>,
    /// Rounds of a mesh that is sampled. Absent: all pairs up to 100 hosts, 20 rounds of more.
    pub sample_rounds: Option<u32>,
    /// Decides the order and the samples.
    pub seed: u64,
    /// Each test.
    pub test: TestOptions,
    /// Time of one round with its overhead.
    pub round_time: Duration,
    /// No round is started that would end later.
    pub budget: Duration,
    /// Most payload of all tests in bytes.
    pub bytes_max: u64,
}

/// A host of a plan.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlanHost {
    /// Its id.
    pub id: HostId,
    /// Its rack, where that is known.
    pub rack: Option<String>,
    /// It runs a server and nothing else, so that it is measured with other hosts only, one at a
    /// time.
    pub is_target_only: bool,
}

impl FleetPlan {
    /// Its identity. Bounds and the time of a round are no part of it.
    pub fn hash(&self) -> PlanHash {
        let mut hosts = self.hosts.clone();
        // The order of the hosts in the inventory is not part of the identity.
        hosts.sort_unstable();

        // The number of the hosts separates the list from the texts that follow it in the hash.
        let mut hash = Fnv128::default().number(hosts.len() as u128);
        for host in &hosts {
            let rack = host.rack.as_deref().unwrap_or_default();
            // The flag separates a host without a rack from one in a rack without a name.
            let kind = u128::from(host.is_target_only) << 1 | u128::from(host.rack.is_some());
            hash = hash.text(host.id.as_str()).text(rack).number(kind);
        }

        hash = texts(self.topology.hash(hash), &self.paths);
        hash = texts(hash, &self.variants)
            .text(&stored_name(self.mode))
            .text(&stored_name(self.direction))
            .number(self.crossing.len() as u128);
        for (rack, pairs) in &self.crossing {
            hash = hash.text(rack).number(u128::from(*pairs));
        }

        // No setting and a setting of 0 rounds have different hashes.
        let sampled = self.sample_rounds.map(|rounds| u128::from(rounds) + 1);
        let hash = hash
            .number(u128::from(self.repetitions))
            .number(sampled.unwrap_or(0))
            .number(u128::from(self.seed));
        PlanHash(hash.text(&format!("{:?}", self.test)).value())
    }

    /// Tasks of these pairs in both directions.
    pub fn tasks_of(&self, pairs: &[(HostId, HostId)], repetition: u32) -> Vec<Task> {
        // Each pair has two directions per path; variants make the list grow once more.
        let mut tasks = Vec::with_capacity(pairs.len() * 2 * self.paths.len());
        for (path, variant) in self.treatments() {
            for (a, b) in pairs {
                for (source, sink) in [(a, b), (b, a)] {
                    tasks.push(Task {
                        source: source.clone(),
                        sink: sink.clone(),
                        path: Arc::clone(&path),
                        variant: Arc::clone(&variant),
                        repetition,
                    });
                }
            }
        }

        tasks
    }

    /// Its hosts.
    pub(crate) fn ids(&self) -> BTreeSet<HostId> {
        self.hosts.iter().map(|host| host.id.clone()).collect()
    }

    /// Every combination of path and variant.
    pub fn treatments(&self) -> Vec<(Arc<str>, Arc<str>)> {
        let mut variants: Vec<Arc<str>> = Vec::new();
        for variant in &self.variants {
            variants.push(variant.as_str().into());
        }
        // A plan without variants has one treatment per path, with an empty name.
        if variants.is_empty() {
            variants.push("".into());
        }

        let mut treatments = Vec::new();
        for path in &self.paths {
            let path: Arc<str> = path.as_str().into();
            for variant in &variants {
                treatments.push((Arc::clone(&path), Arc::clone(variant)));
            }
        }

        treatments
    }

    /// Hosts that run a server and nothing else.
    pub fn targets(&self) -> BTreeSet<&HostId> {
        let targets = self.hosts.iter().filter(|host| host.is_target_only);
        targets.map(|host| &host.id).collect()
    }

    /// The rack of each host that has one.
    pub fn racks(&self) -> BTreeMap<HostId, String> {
        let mut racks = BTreeMap::new();
        for host in &self.hosts {
            racks.extend(host.rack.clone().map(|rack| (host.id.clone(), rack)));
        }

        racks
    }
}

/// Identity of a task of a plan.
pub fn task_id(plan: PlanHash, task: &Task) -> TaskId {
    let hash = Fnv128::default()
        .number(plan.0)
        .text(task.source.as_str())
        .text(task.sink.as_str())
        .text(&task.path)
        .text(&task.variant);
    TaskId(hash.number(u128::from(task.repetition)).value())
}

fn texts(hash: Fnv128, texts: &[String]) -> Fnv128 {
    let mut hash = hash.number(texts.len() as u128);
    for text in texts {
        hash = hash.text(text);
    }

    hash
}
