//! The rules about hosts, over what they reported before the first round.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::conclude::hosts::{HostFacts, HostFindings, findings};
use crate::conclude::shared_slot::Forwarder;
use crate::protocol::message::BridgePort;
use linerate_model::fleet::HostId;
use linerate_sys::clock::monotonic_ns;

use super::control::Control;
use super::members::Prepared;
use super::prepare::CLOCK_BUDGET_NS;

/// Findings about the hosts that can be tested.
pub(super) fn host_findings(
    control: &Control<'_>,
    prepared: &Prepared<'_>,
    is_separate: bool,
) -> HostFindings {
    let coordinator = &control.coordinator;
    let mut hosts = Vec::new();
    for (index, host, member) in prepared.hosts() {
        let Some(hello) = coordinator.hello(index) else {
            continue;
        };
        let clock = coordinator.clock(index, monotonic_ns());
        hosts.push(HostFacts {
            host: &host.id,
            hello,
            probes: &member.probes,
            clock_uncertainty_ns: clock.map(|estimate| estimate.uncertainty_ns),
        });
    }

    findings(&hosts, is_separate, CLOCK_BUDGET_NS)
}

/// Hosts whose bridge leads to others, one entry for each path.
pub(super) fn forwarders(prepared: &Prepared<'_>) -> Vec<Forwarder> {
    let mut owners: BTreeMap<IpAddr, (&HostId, &String)> = BTreeMap::new();
    for (_, host, member) in prepared.hosts() {
        for (path, end) in &member.ends {
            owners.insert(end.address, (&host.id, path));
        }
    }

    let mut found: BTreeMap<(&HostId, &String), BTreeMap<HostId, BridgePort>> = BTreeMap::new();
    for (_, host, member) in prepared.hosts() {
        for probe in &member.probes {
            if let Some(port) = &probe.bridge_port
                && port.slot.is_some()
                && let Some((owner, path)) = owners.get(&probe.peer)
            {
                let ports = found.entry((&host.id, path)).or_default();
                ports.insert((*owner).clone(), port.clone());
            }
        }
    }

    let mut forwarders = Vec::new();
    for ((host, path), ports) in found {
        forwarders.push(Forwarder {
            host: host.clone(),
            path: path.clone(),
            ports,
        });
    }

    forwarders
}
