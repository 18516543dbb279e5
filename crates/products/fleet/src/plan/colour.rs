//! Greedy edge colouring: units of work into rounds, so that no resource is used beyond its
//! capacity.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::fleet_plan::FleetPlan;
use fastrand::Rng;
use linerate_model::fleet::{FleetMode, HostId, Task};

/// Tests of one pair of hosts, which use both at the same time.
pub(super) struct Unit<'a> {
    pub hosts: (&'a HostId, &'a HostId),
    /// Positions of the hosts in the draw.
    pub positions: (usize, usize),
    pub tasks: Vec<&'a Task>,
}

/// Resources that the units of a schedule share. A host has a capacity of one unit, an uplink that
/// of the pairs it carries.
pub(super) struct Resources {
    /// Units that may use each resource in one round; at least 1.
    pub capacity: Vec<u32>,
    /// Number of them, the first ones, that are hosts. The others are uplinks.
    pub hosts: usize,
    /// The resources that each unit uses: two hosts, and up to two uplinks.
    pub uses: Vec<Vec<usize>>,
}

impl Resources {
    /// Units that use each resource.
    fn load(&self) -> Vec<u32> {
        let mut load = vec![0; self.capacity.len()];
        for resource in self.uses.iter().flatten() {
            load[*resource] += 1;
        }

        load
    }

    /// No round uses a resource beyond its capacity.
    pub(super) fn allow(&self, rounds: &[Vec<usize>]) -> bool {
        for round in rounds {
            let mut free = self.capacity.clone();
            for resource in round.iter().flat_map(|unit| &self.uses[*unit]) {
                if free[*resource] == 0 {
                    return false;
                }
                free[*resource] -= 1;
            }
        }

        true
    }

    /// Copies the resources with one unit less of each capacity above 1.
    pub(super) fn reduced(&self) -> Self {
        let mut capacity = self.capacity.clone();
        for capacity in &mut capacity {
            // A capacity of 1 stays, since a resource without capacity would never run its units.
            *capacity = capacity.saturating_sub(1).max(1);
        }

        Self {
            capacity,
            hosts: self.hosts,
            uses: self.uses.clone(),
        }
    }

    /// No schedule has fewer rounds: the busiest resource needs as many, and so do all hosts, or
    /// all uplinks, of which each unit takes two at a time.
    pub(super) fn rounds_min(&self) -> usize {
        let load = self.load();
        let mut most = 0;
        for (load, capacity) in load.iter().zip(&self.capacity) {
            most = most.max(load.div_ceil(*capacity) as usize);
        }

        for kind in [0..self.hosts, self.hosts..load.len()] {
            let mut capacity: u32 = 0;
            for at in kind.clone() {
                if load[at] > 0 {
                    capacity = capacity.saturating_add(self.capacity[at]);
                }
            }
            // Only units with two resources of the kind count; one with a single uplink takes half
            // as much.
            let two = |uses: &&Vec<usize>| uses.iter().filter(|at| kind.contains(at)).count() == 2;
            let units = self.uses.iter().filter(two).count();
            most = most.max(units.div_ceil((capacity as usize / 2).max(1)));
        }

        most
    }
}

/// Orders of equal units that are tried.
const ATTEMPTS: u32 = 16;

/// Rounds of units: the shortest of a few greedy schedules.
pub(super) fn colour(resources: &Resources, rng: &mut Rng) -> Vec<Vec<usize>> {
    let rounds_min = resources.rounds_min();
    let mut best = attempt(resources, rng);

    for _ in 1..ATTEMPTS {
        // No schedule is shorter than the lower bound, so further attempts cannot improve it.
        if best.len() <= rounds_min {
            break;
        }

        let other = attempt(resources, rng);
        if other.len() < best.len() {
            best = other;
        }
    }

    best
}

/// One schedule: in each round first the units whose resources have most left to do, equal ones in
/// an order by lot.
fn attempt(resources: &Resources, rng: &mut Rng) -> Vec<Vec<usize>> {
    let mut load = resources.load();
    let mut open: Vec<usize> = (0..resources.uses.len()).collect();
    let mut rounds = Vec::new();

    while !open.is_empty() {
        rng.shuffle(&mut open);
        // The sort is stable, so the shuffled order decides among units of equal pressure.
        open.sort_by_cached_key(|unit| {
            Reverse(pressure(&resources.uses[*unit], &load, &resources.capacity))
        });
        let mut free = resources.capacity.clone();
        let (round, rest): (Vec<usize>, Vec<usize>) = open.into_iter().partition(|unit| {
            let uses = &resources.uses[*unit];
            let fits = uses.iter().all(|resource| free[*resource] > 0);
            if fits {
                uses.iter().for_each(|resource| free[*resource] -= 1);
            }
            fits
        });
        for resource in round.iter().flat_map(|unit| &resources.uses[*unit]) {
            load[*resource] -= 1;
        }
        rounds.push(round);
        open = rest;
    }

    rounds
}

/// Rounds that the busiest resource of a unit needs, in thousandths, and the sum over all of its
/// resources.
fn pressure(uses: &[usize], load: &[u32], capacity: &[u32]) -> (u64, u64) {
    let mut most = 0;
    let mut sum = 0;
    for resource in uses {
        let needed = u64::from(load[*resource]) * 1000 / u64::from(capacity[*resource]);
        most = needed.max(most);
        sum += needed;
    }

    (most, sum)
}

/// Hosts, and in [`FleetMode::RackSafe`] uplinks, that each unit uses. A pair uses the uplink of
/// each rack with a limit that one of its hosts, and not the other, is in.
pub(super) fn resources(units: &[Unit<'_>], hosts: usize, plan: &FleetPlan) -> Resources {
    let racks = plan.racks();
    let mut capacity = vec![1; hosts];
    let mut uplinks: BTreeMap<&String, usize> = BTreeMap::new();
    // Only this mode has limits of uplinks; other modes know hosts alone.
    if plan.mode == FleetMode::RackSafe {
        for (rack, pairs) in &plan.crossing {
            // Resources of uplinks follow those of the hosts.
            uplinks.insert(rack, capacity.len());
            // An uplink of capacity 0 would leave its pairs without any round.
            capacity.push((*pairs).max(1));
        }
    }

    let mut uses = Vec::new();
    for unit in units {
        let mut of_unit = vec![unit.positions.0, unit.positions.1];
        let a = racks.get(unit.hosts.0);
        let b = racks.get(unit.hosts.1);
        // Pairs within one rack do not use its uplink.
        if a != b {
            for rack in a.into_iter().chain(b) {
                of_unit.extend(uplinks.get(rack));
            }
        }
        uses.push(of_unit);
    }

    Resources {
        capacity,
        hosts,
        uses,
    }
}
