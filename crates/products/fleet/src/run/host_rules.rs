//! The rules about hosts, over what they reported before the first round.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::conclude::hosts::{Attachment, HostFacts, HostFindings, PathRoute, findings};
use crate::conclude::shared_slot::{Forwarder, Port};
use crate::protocol::message::{Hello, ProbeReport};
use crate::spec::inventory::Host;
use linerate_model::finding::Finding;
use linerate_model::fleet::HostId;
use linerate_sys::clock::monotonic_ns;

use super::control::Control;
use super::members::{Member, Prepared};
use super::prepare::CLOCK_BUDGET_NS;

/// Findings about the hosts that can be tested.
pub(super) fn host_findings(
    control: &Control<'_>,
    prepared: &Prepared<'_>,
    is_separate: bool,
) -> HostFindings {
    let coordinator = &control.coordinator;
    let facts = |(index, host, member): (usize, &Host, &Member)| {
        let hello = coordinator.hello(index)?;
        let machine = hello.host_key.as_ref().zip(hello.boot_hash.as_ref());
        let routes = member.probes.iter();
        Some(HostFacts {
            host: host.id.clone(),
            machine: machine.map(|(key, boot)| format!("{key} {boot}")),
            clock_uncertainty_ns: coordinator
                .clock(index, monotonic_ns())
                .map(|estimate| estimate.uncertainty_ns),
            control: control_attachment(hello),
            routes: routes.filter_map(|probe| route(hello, probe)).collect(),
        })
    };
    let hosts: Vec<HostFacts> = prepared.hosts().filter_map(facts).collect();
    findings(&hosts, is_separate, CLOCK_BUDGET_NS)
}

/// Hosts whose bridge leads to others, one entry for each path.
pub(super) fn forwarders(prepared: &Prepared<'_>) -> Vec<Forwarder> {
    let mut owners: BTreeMap<IpAddr, (&HostId, &str)> = BTreeMap::new();
    for (_, host, member) in prepared.hosts() {
        let ends = member.ends.iter();
        owners.extend(ends.map(|(path, end)| (end.address, (&host.id, path.as_str()))));
    }

    let mut found: BTreeMap<(&HostId, &str), BTreeMap<HostId, Port>> = BTreeMap::new();
    for (_, host, member) in prepared.hosts() {
        for probe in &member.probes {
            let port = probe
                .bridge_port
                .as_ref()
                .and_then(|port| Some((&port.name, port.slot.as_ref()?)));
            if let Some(((owner, path), (name, slot))) = owners.get(&probe.peer).copied().zip(port)
            {
                let port = Port {
                    name: name.clone(),
                    slot: slot.clone(),
                };
                found
                    .entry((&host.id, path))
                    .or_default()
                    .insert(owner.clone(), port);
            }
        }
    }

    let forwarder = |((host, path), ports): ((&HostId, &str), _)| Forwarder {
        host: host.clone(),
        path: path.to_owned(),
        ports,
    };
    found.into_iter().map(forwarder).collect()
}

/// Evidence of a finding on one line.
pub(super) fn seen(finding: &Finding) -> String {
    let seen: Vec<String> = finding.evidence.iter().map(ToString::to_string).collect();
    seen.join("; ")
}

fn control_attachment(hello: &Hello) -> Option<Attachment> {
    let own = hello
        .addresses
        .iter()
        .find(|own| Some(own.address) == hello.control_address)?;
    Some(attachment(hello, &own.device))
}

/// The device with its ports as HELLO has them; without ports for a device that has no address.
fn attachment(hello: &Hello, device: &str) -> Attachment {
    let own = hello.addresses.iter().find(|own| own.device == device);
    Attachment {
        device: device.to_owned(),
        ports: own
            .map(|own| own.ports.iter().cloned().collect())
            .unwrap_or_default(),
        has_vlan: own.is_some_and(|own| own.has_vlan),
    }
}

fn route(hello: &Hello, probe: &ProbeReport) -> Option<PathRoute> {
    let through = attachment(hello, probe.device.as_ref()?);
    Some(PathRoute {
        to: probe.peer,
        through,
        mtu_bytes: probe.mtu_bytes,
    })
}
