//! Steps before the first round: HELLO, plans, paths between the hosts, clocks.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::protocol::coordinator::{Action, DropReason, Input, Step};
use crate::protocol::message::{AddressRange, Hello, PathAddress, Plan, Preflight, ProbeTarget};
use crate::spec::inventory::Host;
use crate::spec::{CONTROL_PATH, FleetHosts};

use super::control::{Control, Ended};
use super::members::{Member, Prepared, Targets, TestEnd};

/// Longest wait for the first message of a host: several attempts to connect, and a copy of the
/// agent.
pub(super) const HELLO_TIMEOUT_NS: u64 = 30_000_000_000;
/// Longest wait on a bus, where agents are present: one that is busy is free once its lease has
/// expired.
const HELLO_TIMEOUT_BUS_NS: u64 = 15_000_000_000;
/// Longest silence of the coordinator where tests share the network of the control path, in ms.
const LEASE_SHARED_MS: u64 = 10_000;
/// Longest silence of the coordinator where they do not, in ms.
const LEASE_SEPARATE_MS: u64 = 3_000;
/// Longest silence of the coordinator on a bus, in ms: its broker may be away for a few seconds.
const LEASE_BUS_MS: u64 = LEASE_SHARED_MS;
/// Period of the agents' BEAT, and the same on a bus, where all of them arrive at one connection.
const BEAT_MS: u64 = 1_000;
const BEAT_BUS_MS: u64 = 3_000;
/// Exchanges of clock readings with each host, and the same of a large fleet.
const EXCHANGES: u32 = 20;
const EXCHANGES_LARGE: u32 = 8;
/// Hosts from which a fleet is large.
const LARGE: usize = 1_000;
/// Most hosts of which whole snapshots are collected, and of which each probes all others.
const SNAPSHOTS_MAX: usize = 200;
/// Hosts that each host of a larger fleet probes.
const PROBES_MAX: usize = 20;

/// Test addresses of a host by the name of the path.
type Addresses = BTreeMap<String, IpAddr>;

/// Longest wait for the first message of a host.
pub(super) fn hello_timeout_ns(hosts: &FleetHosts) -> u64 {
    if hosts.bus.is_some() {
        HELLO_TIMEOUT_BUS_NS
    } else {
        HELLO_TIMEOUT_NS
    }
}

/// Prepares all hosts that answer and have an address of every path, and the servers without an
/// agent if a host does.
pub(super) fn prepare<'a>(
    control: &mut Control<'_>,
    hosts: &'a FleetHosts,
    targets: Targets,
    paths: &[String],
) -> Result<Prepared<'a>, Ended> {
    let addresses = send_plans(control, hosts, paths)?;
    control.reasons.extend(targets.reasons);
    control.step(Input::PlansSent, Step::Plan)?;

    let mut prepared = Prepared::new(&hosts.inventory.hosts);
    for (index, of_paths) in addresses {
        if let Some(member) = member(control, index, of_paths) {
            prepared.members.insert(index, member);
        }
    }

    // Servers without an agent have no tests among themselves.
    if !prepared.members.is_empty() {
        prepared.members.extend(targets.members);
    }

    let preflights = preflights(&prepared.members);
    for action in control.step(Input::Preflight(preflights), Step::Preflight)? {
        if let Action::Preflighted { host, report } = action {
            prepared.take(host, *report);
        }
    }

    prepared.count_probes();
    let exchanges = match prepared.members.len() {
        0..LARGE => EXCHANGES,
        _ => EXCHANGES_LARGE,
    };
    control.step(Input::Clocks { exchanges }, Step::Clock)?;
    Ok(prepared)
}

/// Sends each host its plan when it arrives, until all have or their time has passed: an agent
/// waits for its plan, not for the other hosts. The test addresses of those that received one.
fn send_plans(
    control: &mut Control<'_>,
    hosts: &FleetHosts,
    paths: &[String],
) -> Result<BTreeMap<usize, Addresses>, Ended> {
    let with_agent: Vec<&Host> = hosts.with_agent().collect();
    let mut addresses = BTreeMap::new();

    loop {
        let actions = control.run_until(|action| {
            matches!(
                action,
                Action::Greeted { .. } | Action::StepDone(Step::Hello)
            )
        })?;
        for action in actions {
            match action {
                Action::Dropped {
                    host: index,
                    reason: DropReason::Late(Step::Hello),
                } => {
                    let reason = late(hosts, with_agent[index]);
                    control.reasons.insert(index, reason);
                }
                Action::Greeted { host: index } => {
                    let Some(hello) = control.coordinator.hello(index) else {
                        continue;
                    };
                    match test_addresses(with_agent[index], hello, paths) {
                        Ok(of_paths) => {
                            let plan = Box::new(plan(hosts, &of_paths));
                            control.pass(Input::Plan { host: index, plan })?;
                            addresses.insert(index, of_paths);
                        }
                        Err(reason) => drop(control.reasons.insert(index, reason)),
                    }
                }
                Action::StepDone(_) => return Ok(addresses),
                _ => {}
            }
        }
    }
}

/// Why a host whose agent has sent nothing takes no part, and what to try.
fn late(hosts: &FleetHosts, host: &Host) -> String {
    let id = &host.id;
    let seconds = hello_timeout_ns(hosts) / 1_000_000_000;
    let next = match hosts.bus {
        Some(_) => format!("is `linerate fleet agent` running on {id}?"),
        None => format!("`ssh {id} true` has to work without a prompt and without a pause"),
    };
    format!("its agent has sent nothing within {seconds} s, so it is left out; {next}")
}

/// The addresses of the paths in the inventory, else that of the control connection. The reason
/// where a path has none.
fn test_addresses(host: &Host, hello: &Hello, paths: &[String]) -> Result<Addresses, String> {
    let mut addresses = Addresses::new();
    for path in paths {
        let address = match host.paths.get(path) {
            Some(address) => Some(*address),
            None => hello.control_address.filter(|_| path == CONTROL_PATH),
        };
        let Some(address) = address else {
            return Err(format!(
                "its test address of path {path} is not known; name it in paths"
            ));
        };
        addresses.insert(path.clone(), address);
    }

    Ok(addresses)
}

/// A host whose servers listen.
fn member(control: &Control<'_>, index: usize, addresses: Addresses) -> Option<Member> {
    let coordinator = &control.coordinator;
    let hello = coordinator.hello(index)?;
    let ports = coordinator.ports(index)?;
    if !coordinator.is_planned(index) || ports.len() < addresses.len() {
        return None;
    }

    let mut member = Member::default();
    for ((path, address), port) in addresses.into_iter().zip(ports) {
        let mut end = TestEnd::at(address);
        end.port = *port;
        if let Some(own) = hello.addresses.iter().find(|own| own.address == address) {
            end.device = Some(own.device.clone());
            end.speed_bps = own.speed_bps;
        }
        member.ends.insert(path, end);
    }

    Some(member)
}

/// The plan of a host with these addresses.
fn plan(hosts: &FleetHosts, own: &Addresses) -> Plan {
    let (lease_ms, beat_ms) = match &hosts.bus {
        Some(_) => (LEASE_BUS_MS, BEAT_BUS_MS),
        None if hosts.inventory.is_control_shared() => (LEASE_SHARED_MS, BEAT_MS),
        None => (LEASE_SEPARATE_MS, BEAT_MS),
    };
    let mut addresses = Vec::new();
    for (path, address) in own {
        addresses.push(PathAddress {
            path: path.clone(),
            address: *address,
        });
    }

    Plan {
        lease_ms,
        addresses,
        ports: hosts.inventory.ports,
        beat_ms,
    }
}

/// Every host probes the servers of all others, of a large fleet those of the next ones.
fn preflights(members: &BTreeMap<usize, Member>) -> Vec<(usize, Preflight)> {
    let has_facts = members.len() <= SNAPSHOTS_MAX;
    let probes = if has_facts { members.len() } else { PROBES_MAX };
    let ends = members.values().flat_map(|member| member.ends.values());
    let partners = AddressRange::of(ends.map(|end| end.address));

    let mut preflights = Vec::new();
    for (index, member) in members {
        if member.is_target {
            continue;
        }

        // Each host begins after its own place, so that the probes of a large fleet reach all
        // servers.
        let next = members.range(index + 1..).chain(members.range(..index));
        let mut peers = Vec::new();
        for (_, other) in next.take(probes) {
            for end in other.ends.values() {
                let peer = end.address;
                let port = end.port;
                peers.push(ProbeTarget { peer, port });
            }
        }

        let preflight = Preflight {
            partners: partners.clone(),
            peers,
            has_facts,
        };
        preflights.push((*index, preflight));
    }

    preflights
}
