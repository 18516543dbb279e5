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
    let default = || (hosts.len() > HOSTS_UNSAMPLED_MAX).then_some(ROUNDS_SAMPLED);
    let rounds = rounds
        .or_else(default)
        // No limit: every round of the tournament counts.
        .map_or(usize::MAX, |rounds| rounds as usize);
    let draw = Draw::new(&hosts.iter().cloned().collect(), seed);
    let placed: Vec<(&HostId, usize)> = hosts
        .iter()
        .filter_map(|host| Some((host, draw.position(host)?)))
        .collect();
    let mut pairs = Vec::new();

    for (at, (a, position)) in placed.iter().enumerate() {
        let met = placed
            .iter()
            .skip(at + 1)
            .filter(|(_, other)| draw.round_of(*position, *other) < rounds);
        pairs.extend(met.map(|(b, _)| ((*a).clone(), (*b).clone())));
    }

    pairs
}

/// Tests of suspects with known good hosts, both ways, that are not among `known` tasks.
pub fn adaptive(
    plan: &FleetPlan,
    suspects: &[HostId],
    references: &[HostId],
    known: &BTreeSet<Task>,
) -> Vec<Task> {
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
        pairs.extend(
            partners
                .filter(is_fit)
                .take(REFERENCES)
                .map(|partner| (suspect.clone(), partner.clone())),
        );
    }

    // A suspect has the same partners in the second stage, whose tests are then known.
    let tasks =
        (0..plan.repetitions.max(1)).flat_map(|repetition| plan.tasks_of(&pairs, repetition));
    tasks
        .filter(|task| !known.contains(task))
        .collect::<BTreeSet<Task>>()
        .into_iter()
        .collect()
}
