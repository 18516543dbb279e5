//! Units of work of a schedule: the tests of one pair of hosts.

use std::collections::BTreeMap;

use linerate_model::fleet::{HostId, PairDirection, Task};

use super::fleet_plan::FleetPlan;
use super::tournament::Draw;

/// Tests of one pair of hosts, which use both at the same time.
pub(super) struct Unit<'a> {
    pub hosts: (&'a HostId, &'a HostId),
    /// Positions of the hosts in the draw.
    pub positions: (usize, usize),
    pub tasks: Vec<&'a Task>,
}

/// Units of these tasks.
pub(super) fn units<'a>(tasks: &[&'a Task], draw: &Draw, plan: &FleetPlan) -> Vec<Unit<'a>> {
    let targets = plan.targets();
    let mut units: BTreeMap<(&HostId, &HostId), Unit<'a>> = BTreeMap::new();
    for task in tasks {
        let mut hosts = (&task.source, &task.sink);
        let has_target = targets.contains(hosts.0) || targets.contains(hosts.1);
        // A server without an agent has one test at a time, so its directions follow each other.
        let is_both = plan.direction == PairDirection::Both && !has_target;
        // Both directions of a pair have one key, so that they become one unit.
        if is_both && hosts.1 < hosts.0 {
            hosts = (hosts.1, hosts.0);
        }
        let Some(positions) = draw.position(hosts.0).zip(draw.position(hosts.1)) else {
            continue;
        };

        let unit = units.entry(hosts).or_insert_with(|| Unit {
            hosts,
            positions,
            tasks: Vec::new(),
        });
        unit.tasks.push(task);
    }

    units.into_values().collect()
}
