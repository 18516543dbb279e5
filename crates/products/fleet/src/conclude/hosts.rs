//! Findings about hosts before the first round: ports, clocks, machines, MTU.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use linerate_model::finding::{Confidence, Finding, Severity};
use linerate_model::fleet::HostId;

use super::findings::{self, because, read};

/// Facts that a host reported about itself and its routes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFacts {
    /// The host.
    pub host: HostId,
    /// Key of the machine, its boot and its network namespace; absent where one is not known.
    pub machine: Option<String>,
    /// Uncertainty of its clock in ns; absent without an estimate.
    pub clock_uncertainty_ns: Option<u64>,
    /// Where the control connection arrives; absent where that is not known.
    pub control: Option<Attachment>,
    /// Its routes to the test addresses of the others.
    pub routes: Vec<PathRoute>,
}

/// A device and the physical ports below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attachment {
    /// The device.
    pub device: String,
    /// Ports that it sends through.
    pub ports: BTreeSet<String>,
    /// A VLAN lies between.
    pub has_vlan: bool,
}

/// The route to a test address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathRoute {
    /// The address.
    pub to: IpAddr,
    /// Device of the route.
    pub through: Attachment,
    /// MTU of the route in bytes; absent where that is not known.
    pub mtu_bytes: Option<u32>,
}

/// Findings about hosts, and the hosts that take no part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostFindings {
    /// The findings.
    pub findings: Vec<Finding>,
    /// Hosts that are not tested, with the id of the finding.
    pub excluded: BTreeMap<HostId, String>,
}

/// Applies all rules. With `is_separate` the inventory has a network of its own for control.
/// `clock_budget_ns` is how far starts may be apart.
pub fn findings(hosts: &[HostFacts], is_separate: bool, clock_budget_ns: u64) -> HostFindings {
    let mut found = HostFindings::default();
    for (host, finding) in hosts
        .iter()
        .filter_map(|host| Some((host, shared_port(host)?)))
        .filter(|_| is_separate)
    {
        // A note, such as that of another VLAN, excludes no host.
        if finding.severity >= Severity::High {
            found.excluded.insert(host.host.clone(), finding.id.clone());
        }
        found.findings.push(finding);
    }

    for (first, second) in same_machines(hosts) {
        let finding = same_machine(first, second);
        found
            .excluded
            .entry(second.clone())
            // A host that is excluded by an earlier rule keeps that reason.
            .or_insert_with(|| finding.id.clone());
        found.findings.push(finding);
    }

    found.findings.extend(clocks(hosts, clock_budget_ns));
    found.findings.extend(path_mtu(hosts));
    found
}

/// Tests leave through the port of the control connection. Another VLAN of that port is a note.
fn shared_port(host: &HostFacts) -> Option<Finding> {
    let control = host.control.as_ref()?;
    // Bonds and bridges have several ports, any of which may carry the connection.
    let is_shared = |route: &&PathRoute| !control.ports.is_disjoint(&route.through.ports);
    let is_other_vlan = |through: &Attachment| {
        through.device != control.device && (through.has_vlan || control.has_vlan)
    };
    let shared: Vec<&PathRoute> = host.routes.iter().filter(is_shared).collect();
    let same = shared.iter().find(|route| !is_other_vlan(&route.through));
    // A route through the same VLAN is the stronger finding.
    let route = same.or_else(|| shared.first())?;
    let name = &host.host;

    let ports: Vec<&str> = control
        .ports
        .intersection(&route.through.ports)
        .map(String::as_str)
        .collect();
    let next = format!(
        "on {name}: `ip route get {}`; repair the route, or test through the shared port: \
         `linerate fleet run mesh --shared-path`",
        route.to
    );
    let mut finding = findings::SHARED_PORT.about(name.as_str(), Confidence::High, next);

    if same.is_none() {
        finding.severity = Severity::Info;
        finding.title = "Tests use another VLAN of the port of the control connection".to_owned();
    }

    let through = format!("route to {} through {}", route.to, route.through.device);
    let control = format!("the control connection is on {}", control.device);
    Some(because(
        finding,
        [format!(
            "{through}, {control}; both send through {}",
            ports.join(", ")
        )],
    ))
}

/// Pairs of entries with one machine: the first of them, and each other one.
fn same_machines(hosts: &[HostFacts]) -> Vec<(&HostId, &HostId)> {
    let mut first: BTreeMap<&str, &HostId> = BTreeMap::new();
    let mut pairs = Vec::new();

    for host in hosts {
        let Some(machine) = &host.machine else {
            continue;
        };
        match first.get(machine.as_str()) {
            Some(known) => pairs.push((*known, &host.host)),
            None => drop(first.insert(machine, &host.host)),
        }
    }

    pairs
}

fn same_machine(first: &HostId, second: &HostId) -> Finding {
    let next = format!(
        "remove {second} from the inventory, or correct its destination, then `linerate fleet \
         check`"
    );
    let finding =
        findings::SAME_MACHINE.about(format!("{first} and {second}"), Confidence::High, next);
    because(
        finding,
        [format!(
            "{second} has the machine, boot and network namespace of {first}; {second} is not \
             tested"
        )],
    )
}

fn clocks(hosts: &[HostFacts], budget_ns: u64) -> Option<Finding> {
    let uncertain = hosts
        .iter()
        .filter_map(|host| Some((&host.host, host.clock_uncertainty_ns?)));
    let late: Vec<(&HostId, u64)> = uncertain.filter(|(_, ns)| *ns > budget_ns).collect();
    let names: Vec<&str> = late.iter().map(|(host, _)| host.as_str()).collect();
    if names.is_empty() {
        return None;
    }

    let next = "run `linerate fleet run` on a host that is nearer to them, and compare their \
                clocks with chrony or PTP";
    let finding = findings::CLOCK.about(names.join(", "), Confidence::High, next);
    let ms = |ns: u64| ns as f64 / 1e6;
    let threshold = format!("at most {:.0} ms", ms(budget_ns));
    let shown = late.iter().take(HOSTS_SHOWN);

    Some(shown.fold(finding, |finding, (host, ns)| {
        read(
            finding,
            &format!("clock of {host}"),
            format!("±{:.1} ms", ms(*ns)),
            threshold.clone(),
        )
    }))
}

/// Hosts of a finding that have evidence of their own.
const HOSTS_SHOWN: usize = 10;

/// Hosts whose routes have another MTU than those of most hosts.
fn path_mtu(hosts: &[HostFacts]) -> Option<Finding> {
    let of_host = |host: &HostFacts| {
        host.routes
            .iter()
            .filter_map(|route| route.mtu_bytes)
            .collect::<BTreeSet<u32>>()
    };
    let mtus: Vec<(&HostId, BTreeSet<u32>)> = hosts
        .iter()
        .map(|host| (&host.host, of_host(host)))
        .collect();
    let mut counts: BTreeMap<&BTreeSet<u32>, usize> = BTreeMap::new();
    mtus.iter()
        .filter(|(_, mtus)| !mtus.is_empty())
        .for_each(|(_, mtus)| *counts.entry(mtus).or_default() += 1);

    // Of equally many hosts the larger MTU is the usual one.
    let (usual, _) = counts
        .iter()
        .max_by_key(|(mtus, count)| (**count, mtus.last().copied()))?;
    let other: Vec<&(&HostId, BTreeSet<u32>)> = mtus
        .iter()
        // Hosts without a known MTU are not compared.
        .filter(|(_, mtus)| !mtus.is_empty() && mtus != *usual)
        .collect();
    let names: Vec<&str> = other.iter().map(|(host, _)| host.as_str()).collect();
    let first = names.first()?;
    let next = format!(
        "on {first}: `linerate doctor` (MTU-01), and one MTU on all hosts and switches of the path"
    );
    let finding = findings::PATH_MTU.about(names.join(", "), Confidence::High, next);

    let text = |mtus: &BTreeSet<u32>| {
        mtus.iter()
            .map(u32::to_string)
            .collect::<Vec<_>>()
            .join(" and ")
    };
    let threshold = format!("{} on most hosts", text(usual));
    let shown = other.iter().take(HOSTS_SHOWN);

    Some(shown.fold(finding, |finding, (host, mtus)| {
        read(
            finding,
            &format!("path MTU of {host}"),
            format!("{} bytes", text(mtus)),
            threshold.clone(),
        )
    }))
}

#[cfg(test)]
#[path = "hosts_tests.rs"]
mod tests;
