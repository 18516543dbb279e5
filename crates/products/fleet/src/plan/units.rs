//! Units of work of a schedule: the tests of one pair of hosts.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::fleet::{FleetMode, HostId, PairDirection, Task};

use super::tournament::Draw;

/// Limits of a round.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caps {
    /// Which tests run at the same time.
    pub mode: FleetMode,
    /// The two directions of a pair: at the same time or one after the other.
    pub direction: PairDirection,
    /// The rack of each host that has one.
    pub racks: BTreeMap<HostId, String>,
    /// Pairs that may use the uplink of a rack at the same time.
    pub crossing: BTreeMap<String, u32>,
    /// Servers without an agent: each runs one test at a time.
    pub targets: BTreeSet<HostId>,
}

/// Tests of one pair of hosts, which use both at the same time.
pub(super) struct Unit<'a> {
    pub(super) hosts: (&'a HostId, &'a HostId),
    /// Positions of the hosts in the draw.
    pub(super) positions: (usize, usize),
    pub(super) tasks: Vec<&'a Task>,
}

/// Units of these tasks.
pub(super) fn units<'a>(tasks: &[&'a Task], draw: &Draw, caps: &Caps) -> Vec<Unit<'a>> {
    let mut units: BTreeMap<(&HostId, &HostId), Unit<'a>> = BTreeMap::new();
    for task in tasks {
        let has_target = caps.targets.contains(&task.source) || caps.targets.contains(&task.sink);
        // A server without an agent has one test at a time, so its directions follow each other.
        let is_both = caps.direction == PairDirection::Both && !has_target;
        // Both directions of a pair have one key, so that they become one unit.
        let is_swapped = is_both && task.sink < task.source;
        let hosts = if is_swapped {
            (&task.sink, &task.source)
        } else {
            (&task.source, &task.sink)
        };
        let Some(positions) = draw.position(hosts.0).zip(draw.position(hosts.1)) else {
            continue;
        };

        units
            .entry(hosts)
            .or_insert_with(|| Unit {
                hosts,
                positions,
                tasks: Vec::new(),
            })
            .tasks
            .push(task);
    }

    units.into_values().collect()
}
