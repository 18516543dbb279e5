//! Pairs of a large fleet: some rounds of its tournament first, then more tests of hosts that stand
//! out.

use std::collections::BTreeSet;

use linerate_model::fleet::{HostId, Task};

use super::fleet_plan::FleetPlan;
use super::tournament::Draw;

/// Largest fleet of which all pairs are measured unless a number of rounds is set.
pub const HOSTS_UNSAMPLED_MAX: usize = 100;
/// Rounds of larger fleets: 20 partners of each host, of which nine slow ones do not move a median.
pub const ROUNDS_SAMPLED: u32 = 20;
/// Stages of more tests.
pub const STAGES_MAX: usize = 2;
/// Known good hosts that each suspect is tested with.
pub const REFERENCES: usize = 3;

/// Pairs of a mesh, each once: all, or those of the first `rounds` rounds of its tournament.
pub(super) fn pairs(hosts: &[HostId], rounds: Option<u32>, seed: u64) -> Vec<(HostId, HostId)> {
    let rounds = match rounds {
        Some(rounds) => rounds as usize,
        None if hosts.len() > HOSTS_UNSAMPLED_MAX => ROUNDS_SAMPLED as usize,
        // No limit: every round of the tournament counts.
        None => usize::MAX,
    };
    let draw = Draw::new(&hosts.iter().cloned().collect(), seed);
    let mut placed: Vec<(&HostId, usize)> = Vec::new();
    for host in hosts {
        placed.extend(draw.position(host).map(|position| (host, position)));
    }

    let mut pairs = Vec::new();
    for (at, (a, of_a)) in placed.iter().enumerate() {
        for (b, of_b) in placed.iter().skip(at + 1) {
            if draw.round_of(*of_a, *of_b) < rounds {
                pairs.push(((*a).clone(), (*b).clone()));
            }
        }
    }

    pairs
}

/// Tests of suspects with known good hosts, both ways.
pub fn adaptive(
    plan: &FleetPlan,
    suspects: &BTreeSet<HostId>,
    references: &[HostId],
) -> BTreeSet<Task> {
    let targets = plan.targets();
    let mut ids: Vec<&HostId> = plan.hosts.iter().map(|host| &host.id).collect();
    ids.sort_unstable();

    let mut pairs = Vec::new();
    for suspect in suspects {
        let is_fit = |other: &&HostId| {
            *other != suspect && !(targets.contains(*other) && targets.contains(suspect))
        };
        // Each suspect begins at other references, so that many suspects do not wait for three
        // hosts.
        let first = ids.binary_search(&suspect).unwrap_or(0) * REFERENCES % references.len().max(1);
        let partners = references.iter().cycle().skip(first).take(references.len());
        for partner in partners.filter(is_fit).take(REFERENCES) {
            pairs.push((suspect.clone(), partner.clone()));
        }
    }

    let mut tasks = BTreeSet::new();
    for repetition in 0..plan.repetitions.max(1) {
        tasks.extend(plan.tasks_of(&pairs, repetition));
    }

    tasks
}
