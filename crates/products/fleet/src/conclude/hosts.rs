//! Findings about hosts before the first round: ports, clocks, machines, MTU.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::finding::{Confidence, Finding, Severity};
use linerate_model::fleet::HostId;

use super::findings::{self, because, read};
use crate::protocol::message::{Address, Hello, ProbeReport};

/// Facts that a host reported about itself and its routes.
#[derive(Debug, Clone, Copy)]
pub struct HostFacts<'a> {
    /// The host.
    pub host: &'a HostId,
    /// Its machine, and the devices of its addresses.
    pub hello: &'a Hello,
    /// Its routes to the test addresses of the others.
    pub probes: &'a [ProbeReport],
    /// Uncertainty of its clock in ns; absent without an estimate.
    pub clock_uncertainty_ns: Option<u64>,
}

/// Findings about hosts, and the hosts that take no part.
#[derive(Debug, Default, PartialEq)]
pub struct HostFindings {
    /// The findings.
    pub findings: Vec<Finding>,
    /// Hosts that are not tested, with the id of the finding.
    pub excluded: BTreeMap<HostId, String>,
}

/// Applies all rules. With `is_separate` the inventory has a network of its own for control.
/// `clock_budget_ns` is how far starts may be apart.
pub fn findings(hosts: &[HostFacts<'_>], is_separate: bool, clock_budget_ns: u64) -> HostFindings {
    let mut found = HostFindings::default();
    for host in hosts.iter().filter(|_| is_separate) {
        let Some(finding) = shared_port(host) else {
            continue;
        };
        // A note, such as that of another VLAN, excludes no host.
        if finding.severity >= Severity::High {
            found.excluded.insert(host.host.clone(), finding.id.clone());
        }
        found.findings.push(finding);
    }

    let mut machines: BTreeMap<(&String, &String), &HostId> = BTreeMap::new();
    for HostFacts { host, hello, .. } in hosts {
        let Some(machine) = hello.host_key.as_ref().zip(hello.boot_hash.as_ref()) else {
            continue;
        };
        let first = *machines.entry(machine).or_insert(host);
        if first != *host {
            let finding = same_machine(first, host);
            let excluded = found.excluded.entry((*host).clone());
            // A host that is excluded by an earlier rule keeps that reason.
            excluded.or_insert_with(|| finding.id.clone());
            found.findings.push(finding);
        }
    }

    found.findings.extend(clocks(hosts, clock_budget_ns));
    found.findings.extend(path_mtu(hosts));
    found
}

/// Tests leave through the port of the control connection. Another VLAN of that port is a note.
fn shared_port(host: &HostFacts<'_>) -> Option<Finding> {
    let HostFacts { hello, probes, .. } = host;
    let mut own = hello.addresses.iter();
    let control = own.find(|own| Some(own.address) == hello.control_address)?;
    let mut shared: Option<(&ProbeReport, &Address, bool)> = None;

    for probe in *probes {
        let mut own = hello.addresses.iter();
        let Some(own) = own.find(|own| Some(&own.device) == probe.device.as_ref()) else {
            continue;
        };
        let has_vlan = own.has_vlan || control.has_vlan;
        let is_other_vlan = own.device != control.device && has_vlan;
        // Bonds and bridges have several ports, any of which may carry the connection.
        let is_shared = own.ports.iter().any(|port| control.ports.contains(port));
        // A route through the same VLAN is the stronger finding.
        if is_shared && shared.is_none_or(|(_, _, is_note)| is_note && !is_other_vlan) {
            shared = Some((probe, own, is_other_vlan));
        }
    }

    let (probe, own, is_other_vlan) = shared?;
    let to = probe.peer;
    let next = format!(
        "on {}: `ip route get {to}`; repair the route, or test through the shared port: \
         `linerate fleet run mesh --shared-path`",
        host.host
    );
    let mut finding = findings::SHARED_PORT.about(host.host.as_str(), Confidence::High, next);
    if is_other_vlan {
        finding.severity = Severity::Info;
        finding.title = "Tests use another VLAN of the port of the control connection".to_owned();
    }

    let mut ports = control.ports.clone();
    ports.retain(|port| own.ports.contains(port));
    let statement = format!(
        "route to {to} through {}, the control connection is on {}; both send through {}",
        own.device,
        control.device,
        ports.join(", ")
    );
    Some(because(finding, [statement]))
}

fn same_machine(first: &HostId, second: &HostId) -> Finding {
    let next = format!(
        "remove {second} from the inventory, or correct its destination, then `linerate fleet \
         check`"
    );
    let subject = format!("{first} and {second}");
    let finding = findings::SAME_MACHINE.about(subject, Confidence::High, next);
    let statement = format!(
        "{second} has the machine, boot and network namespace of {first}; {second} is not tested"
    );
    because(finding, [statement])
}

fn clocks(hosts: &[HostFacts<'_>], budget_ns: u64) -> Option<Finding> {
    let mut names = Vec::new();
    let mut shown = Vec::new();
    for host in hosts {
        let ns = host.clock_uncertainty_ns.unwrap_or(0);
        if ns > budget_ns {
            names.push(host.host.as_str());
            shown.push((host.host, format!("±{:.1} ms", ns as f64 / 1e6)));
        }
    }
    if names.is_empty() {
        return None;
    }

    let next = "run `linerate fleet run` on a host that is nearer to them, and compare their \
                clocks with chrony or PTP";
    let finding = findings::CLOCK.about(names.join(", "), Confidence::High, next);
    let threshold = format!("at most {:.0} ms", budget_ns as f64 / 1e6);
    Some(with_hosts(finding, "clock", shown, &threshold))
}

/// Adds a value of each host.
fn with_hosts(
    mut finding: Finding,
    fact: &str,
    hosts: Vec<(&HostId, String)>,
    threshold: &str,
) -> Finding {
    for (host, value) in hosts.into_iter().take(HOSTS_SHOWN) {
        let fact = format!("{fact} of {host}");
        finding = read(finding, &fact, value, threshold.to_owned());
    }

    finding
}

/// Hosts of a finding that have evidence of their own.
const HOSTS_SHOWN: usize = 10;

/// Hosts whose routes have another MTU than those of most hosts.
fn path_mtu(hosts: &[HostFacts<'_>]) -> Option<Finding> {
    // Hosts without a known MTU are not compared.
    let mut known: Vec<(&HostId, BTreeSet<u32>)> = Vec::new();
    let mut counts: BTreeMap<BTreeSet<u32>, usize> = BTreeMap::new();
    for host in hosts {
        let mtus: BTreeSet<u32> = host.probes.iter().filter_map(|of| of.mtu_bytes).collect();
        if !mtus.is_empty() {
            *counts.entry(mtus.clone()).or_default() += 1;
            known.push((host.host, mtus));
        }
    }

    // Of equally many hosts the larger MTU is the usual one.
    let usual = counts
        .into_iter()
        .max_by_key(|(mtus, count)| (*count, mtus.last().copied()));
    let (usual, _) = usual?;
    known.retain(|(_, mtus)| *mtus != usual);

    let names: Vec<&str> = known.iter().map(|(host, _)| host.as_str()).collect();
    let first = names.first()?;
    let next = format!(
        "on {first}: `linerate doctor` (MTU-01), and one MTU on all hosts and switches of the path"
    );
    let finding = findings::PATH_MTU.about(names.join(", "), Confidence::High, next);

    let text = |mtus: BTreeSet<u32>| {
        let mtus: Vec<String> = mtus.iter().map(u32::to_string).collect();
        mtus.join(" and ")
    };
    let threshold = format!("{} on most hosts", text(usual));
    let mut shown = Vec::new();
    for (host, mtus) in known {
        shown.push((host, format!("{} bytes", text(mtus))));
    }

    Some(with_hosts(finding, "path MTU", shown, &threshold))
}

#[cfg(test)]
#[path = "hosts_tests.rs"]
mod tests;
