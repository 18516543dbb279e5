//! Ladders: 1, 2, 4 … all senders to one sink, or one source to as many sinks.

use std::collections::BTreeSet;
use std::sync::Arc;

use fastrand::Rng;
use linerate_model::fleet::{FleetMode, HostId, LadderDirection, Round, Task};

use super::fleet_plan::FleetPlan;
use super::variants::order;

/// Most hosts of which each is measured alone.
pub const ALONE_ALL_MAX: usize = 32;
/// Hosts of a larger fleet that are measured alone.
const ALONE_SAMPLED: usize = 16;

/// Tests of a ladder that start together and are compared with each other.
#[derive(Debug, Clone)]
pub struct Step {
    /// Its tests.
    pub tasks: Vec<Task>,
    /// Who sends.
    pub direction: LadderDirection,
    /// Number of hosts that send, or receive, at the same time.
    pub level: usize,
    /// Name of the path.
    pub path: String,
    /// Variant of the plan, without the level.
    pub variant: String,
}

/// Steps of the ladders of an incast or fanout plan: for each repetition every host alone, then 2,
/// 4 … hosts, each step with all hosts of the one before. The order of the hosts is by lot, another
/// one for each repetition. Empty for another plan.
pub fn steps(plan: &FleetPlan) -> Vec<Step> {
    let Some(hub) = plan.topology.hub() else {
        return Vec::new();
    };
    let treatments = plan.treatments();
    let mut steps = Vec::new();

    for repetition in 0..plan.repetitions.max(1) {
        // Another order per repetition, so that the hosts of a level are not always the same ones.
        let hosts = permutation(plan, hub, repetition);
        // Steps of one host grow with the number of hosts, the others with its logarithm.
        let alone = match hosts.len() {
            all @ 0..=ALONE_ALL_MAX => all,
            _ => ALONE_SAMPLED,
        };
        for direction in plan.topology.directions() {
            let alone = hosts.iter().take(alone).map(std::slice::from_ref);
            for group in alone.chain(prefixes(&hosts)) {
                let level = format!("{}={}", counted(*direction), group.len());
                // Variants rotate within a group, so a drift of the network affects all of them
                // alike.
                for place in order(treatments.len(), repetition) {
                    let (path, variant) = &treatments[place];
                    let treatment = (&**path, &**variant);
                    let of_hub = (hub, *direction);
                    steps.push(step(of_hub, group, treatment, &level, repetition));
                }
            }
        }
    }

    steps
}

/// Steps that show what a suspect does to the others: all with it, all without it twice, and all
/// with it again.
pub fn poison(plan: &FleetPlan, direction: LadderDirection, suspect: &HostId) -> Vec<Step> {
    let Some(hub) = plan.topology.hub() else {
        return Vec::new();
    };
    let all = permutation(plan, hub, 0);
    let mut others = all.clone();
    others.retain(|host| host != suspect);

    let mut steps = Vec::new();
    for (path, variant) in plan.treatments() {
        // In balanced order: a drift of the network over time affects both sides alike.
        for (group, name, repetition) in [
            (&all, "with", 0),
            (&others, "without", 0),
            (&others, "without", 1),
            (&all, "with", 1),
        ] {
            let level = format!("{name}={suspect}");
            let treatment = (&*path, &*variant);
            steps.push(step((hub, direction), group, treatment, &level, repetition));
        }
    }

    steps
}

/// Steps without the hosts that are not alive; finished steps stay as they were run. Steps of which
/// no host is left are left out.
pub fn among(steps: Vec<Step>, alive: &BTreeSet<HostId>, finished: &BTreeSet<Task>) -> Vec<Step> {
    let mut left = Vec::new();
    for mut step in steps {
        if !step.tasks.iter().all(|task| finished.contains(task)) {
            step.tasks
                .retain(|task| alive.contains(&task.source) && alive.contains(&task.sink));
            step.level = step.tasks.len();
        }
        if step.level > 0 {
            left.push(step);
        }
    }

    left
}

/// Rounds of the steps in which a task has no result, with all of their tasks: a part of a step is
/// compared with nothing.
pub fn rounds(steps: &[Step], finished: &BTreeSet<Task>) -> Vec<Round> {
    let mut rounds = Vec::new();
    for step in steps {
        if step.tasks.iter().any(|task| !finished.contains(task)) {
            rounds.push(Round::new(step.tasks.clone(), FleetMode::Ladder));
        }
    }

    rounds
}

/// Unit that a step of a ladder counts.
const fn counted(direction: LadderDirection) -> &'static str {
    match direction {
        LadderDirection::Incast => "senders",
        LadderDirection::Fanout => "sinks",
    }
}

/// The hosts at the many ends, in the order of a repetition.
fn permutation(plan: &FleetPlan, hub: &HostId, repetition: u32) -> Vec<HostId> {
    let targets = plan.targets();
    let mut ids = plan.ids();
    ids.remove(hub);
    // Two servers without an agent have no test with each other.
    if targets.contains(hub) {
        ids.retain(|id| !targets.contains(id));
    }

    let mut hosts: Vec<HostId> = ids.into_iter().collect();
    // Wrapping keeps repetitions apart for a seed at the end of the range.
    Rng::with_seed(plan.seed.wrapping_add(u64::from(repetition))).shuffle(&mut hosts);
    hosts
}

/// The first 2, 4, 8 … hosts, and all.
fn prefixes(hosts: &[HostId]) -> Vec<&[HostId]> {
    let mut prefixes = Vec::new();
    let mut level = 2;
    while level < hosts.len() {
        prefixes.push(&hosts[..level]);
        level *= 2;
    }
    // One host is the step alone already.
    if hosts.len() > 1 {
        prefixes.push(hosts);
    }

    prefixes
}

fn step(
    (hub, direction): (&HostId, LadderDirection),
    hosts: &[HostId],
    (path, variant): (&str, &str),
    level: &str,
    repetition: u32,
) -> Step {
    // The level is part of the variant, so tasks of different steps have different identities.
    let full: Arc<str> = match variant {
        "" => level.into(),
        variant => format!("{variant},{level}").into(),
    };
    let shared_path: Arc<str> = path.into();

    let mut tasks = Vec::new();
    for host in hosts {
        let (source, sink) = match direction {
            LadderDirection::Incast => (host, hub),
            LadderDirection::Fanout => (hub, host),
        };
        tasks.push(Task {
            source: source.clone(),
            sink: sink.clone(),
            path: Arc::clone(&shared_path),
            variant: Arc::clone(&full),
            repetition,
        });
    }

    Step {
        tasks,
        direction,
        level: hosts.len(),
        path: path.to_owned(),
        variant: variant.to_owned(),
    }
}
