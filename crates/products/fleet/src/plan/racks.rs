//! Uplinks of racks as resources of a schedule.

use std::collections::BTreeMap;

use linerate_model::fleet::{FleetMode, HostId};

use super::colour::Resources;
use super::fleet_plan::FleetPlan;
use super::units::Unit;

/// Hosts, and in [`FleetMode::RackSafe`] uplinks, that each unit uses. A pair uses the uplink of
/// each rack with a limit that one of its hosts, and not the other, is in.
pub(super) fn resources(units: &[Unit<'_>], hosts: usize, plan: &FleetPlan) -> Resources {
    let racks = plan.racks();
    let mut capacity = vec![1; hosts];
    // Only this mode has limits of uplinks; other modes know hosts alone.
    let uplinks: BTreeMap<&str, usize> = match plan.mode {
        FleetMode::RackSafe => plan
            .crossing
            .keys()
            .enumerate()
            // Resources of uplinks follow those of the hosts.
            .map(|(at, rack)| (rack.as_str(), hosts + at))
            .collect(),
        _ => BTreeMap::new(),
    };
    capacity.extend(
        uplinks
            .keys()
            // An uplink of capacity 0 would leave its pairs without any round.
            .map(|rack| plan.crossing.get(*rack).map_or(1, |pairs| (*pairs).max(1))),
    );

    let rack = |host: &HostId| racks.get(host).map(String::as_str);
    let uses = units.iter().map(|unit| {
        let (a, b) = (rack(unit.hosts.0), rack(unit.hosts.1));
        // Pairs within one rack do not use its uplink.
        let crossed = [a, b].into_iter().filter(|_| a != b).flatten();
        let crossed = crossed.filter_map(|rack| uplinks.get(rack).copied());
        [unit.positions.0, unit.positions.1]
            .into_iter()
            .chain(crossed)
            .collect()
    });
    let uses = uses.collect();

    Resources {
        capacity,
        hosts,
        uses,
    }
}
