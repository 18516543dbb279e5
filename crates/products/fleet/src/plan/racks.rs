//! Uplinks of racks as resources of a schedule.

use std::collections::BTreeMap;

use linerate_model::fleet::FleetMode;

use super::colour::Resources;
use super::fleet_plan::FleetPlan;
use super::units::Unit;

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
        let (a, b) = (racks.get(unit.hosts.0), racks.get(unit.hosts.1));
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
