//! What comes before the first round: HELLO, plans, paths between the hosts, clocks.

use std::collections::BTreeMap;
use std::net::IpAddr;

use linerate_carrier::Carrier;
use linerate_fleet::coordinator::{Action, Input, Step};
use linerate_fleet::inventory::{Control as ControlPath, Host, Inventory};
use linerate_fleet::message::{
    AddressRange, Caps, FactsDepth, Hello, PathAddress, Plan, Preflight, Preflighted, ProbeOutcome, ProbeReport,
    ProbeTarget,
};
use linerate_model::fleet::HostId;
use linerate_model::snapshot::{Snapshot, Value};

use super::connect::FleetHosts;
use super::control::{Control, Ended};

/// Name of the path of hosts without one in the inventory.
pub(super) const CONTROL_PATH: &str = "control";
/// Longest silence of the coordinator where tests share the network of the control path, in ms.
const LEASE_SHARED_MS: u64 = 10_000;
/// The same where they do not.
const LEASE_SEPARATE_MS: u64 = 3_000;
/// The same on a bus, whose broker may be away for a few seconds.
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

/// A host that can be tested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    /// Address of its tests.
    pub(super) address: IpAddr,
    /// Port of its server.
    pub(super) port: u16,
    /// Device that has the address.
    pub(super) device: Option<String>,
    /// Present speed of its link.
    pub(super) speed_bps: Option<u64>,
    /// Highest rate that its link supports, where that is known.
    pub(super) link_bps: Option<u64>,
    /// What its connections to the servers of the others found.
    pub(super) probes: Vec<ProbeReport>,
}

/// Hosts that can be tested, by their places in the inventory, and the longest round trip between them.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    pub(super) members: BTreeMap<usize, Member>,
    pub(super) data_rtt_ns: u64,
}

/// Tests share the network of the control path, or it is not known that they do not.
pub(super) fn is_shared(inventory: &Inventory) -> bool {
    inventory.control == ControlPath::Shared
}

/// Prepares all hosts that answer.
pub(super) fn prepare<C: Carrier>(
    control: &mut Control<'_, C>,
    hosts: &FleetHosts,
    path: &str,
    duration_ms: u64,
) -> Result<Prepared, Ended> {
    let inventory = &hosts.inventory;
    control.run_until(|action| *action == Action::StepDone(Step::Hello))?;
    let mut addresses = BTreeMap::new();
    for (index, host) in inventory.hosts.iter().enumerate() {
        let Some(hello) = control.coordinator.hello(index) else { continue };
        match test_address(host, hello, path) {
            Some(address) => drop(addresses.insert(index, address)),
            None => drop(control.reasons.insert(index, "its test address is not known; name it in paths".to_owned())),
        }
    }
    let plans = plans(hosts, &addresses, path, duration_ms);
    control.step(Input::Plan(plans), |action| *action == Action::StepDone(Step::Plan))?;
    let mut prepared = Prepared::default();
    for (index, address) in &addresses {
        let port = control.coordinator.ports(*index).and_then(<[u16]>::first).copied();
        if let Some(port) = port.filter(|_| control.coordinator.is_planned(*index)) {
            let hello = control.coordinator.hello(*index);
            let own = hello.and_then(|hello| hello.addresses.iter().find(|own| own.address == *address));
            let member = Member {
                address: *address,
                port,
                device: own.map(|own| own.device.clone()),
                speed_bps: own.and_then(|own| own.speed_bps),
                link_bps: None,
                probes: Vec::new(),
            };
            prepared.members.insert(*index, member);
        }
    }
    let preflights = preflights(&prepared.members);
    let reports = control.step(Input::Preflight(preflights), |action| *action == Action::StepDone(Step::Preflight))?;
    for action in reports {
        if let Action::Preflighted { host, report } = action {
            prepared.take(host, *report);
        }
    }
    let exchanges = if prepared.members.len() < LARGE { EXCHANGES } else { EXCHANGES_LARGE };
    let clocks = Input::Clocks { exchanges };
    control.step(clocks, |action| *action == Action::StepDone(Step::Clock))?;
    Ok(prepared)
}

/// The address of the path in the inventory, else that of the control connection.
fn test_address(host: &Host, hello: &Hello, path: &str) -> Option<IpAddr> {
    match host.paths.get(path) {
        Some(address) => Some(*address),
        None => hello.control_address.filter(|_| path == CONTROL_PATH),
    }
}

fn plans(hosts: &FleetHosts, addresses: &BTreeMap<usize, IpAddr>, path: &str, duration_ms: u64) -> Vec<(usize, Plan)> {
    let (lease_ms, beat_ms) = match &hosts.bus {
        Some(_) => (LEASE_BUS_MS, BEAT_BUS_MS),
        None if is_shared(&hosts.inventory) => (LEASE_SHARED_MS, BEAT_MS),
        None => (LEASE_SEPARATE_MS, BEAT_MS),
    };
    let ports = hosts.inventory.ports;
    let peers = AddressRange::of(addresses.values().copied());
    let plan = |(index, address): (&usize, &IpAddr)| {
        let plan = Plan {
            lease_ms,
            addresses: vec![PathAddress { path: path.to_owned(), address: *address }],
            peers: peers.clone(),
            ports,
            caps: Caps { time_ms: Some(duration_ms), ..Caps::default() },
            sample_ms: 0,
            beat_ms,
        };
        (*index, plan)
    };
    addresses.iter().map(plan).collect()
}

/// Every host probes the servers of all others, of a large fleet those of the next ones.
fn preflights(members: &BTreeMap<usize, Member>) -> Vec<(usize, Preflight)> {
    let facts = if members.len() <= SNAPSHOTS_MAX { FactsDepth::Full } else { FactsDepth::None };
    let probes = if members.len() <= SNAPSHOTS_MAX { members.len() } else { PROBES_MAX };
    let preflight = |index: &usize| {
        let next = members.range(index + 1..).chain(members.range(..index)).take(probes);
        let peers = next.map(|(_, member)| ProbeTarget { peer: member.address, port: member.port });
        (*index, Preflight { peers: peers.collect(), facts })
    };
    members.keys().map(preflight).collect()
}

impl Prepared {
    fn take(&mut self, index: usize, report: Preflighted) {
        let Some(member) = self.members.get_mut(&index) else { return };
        let facts = report.facts.as_ref().and_then(|facts| serde_json::from_str::<Snapshot>(facts.as_str()).ok());
        member.link_bps =
            member.device.as_ref().zip(facts).and_then(|(device, facts)| highest_speed_bps(&facts, device));
        let longest_ns = report.peers.iter().filter_map(|probe| probe.rtt_ns).max();
        self.data_rtt_ns = self.data_rtt_ns.max(longest_ns.unwrap_or(0));
        member.probes = report.peers;
    }

    /// Probes of the server of this host that failed, and how many were made.
    pub(super) fn failed_probes(&self, index: usize) -> (Vec<ProbeOutcome>, usize) {
        let Some(target) = self.members.get(&index) else { return (Vec::new(), 0) };
        let probes = self.members.values().flat_map(|member| &member.probes);
        let of_target: Vec<ProbeOutcome> = probes
            .filter(|probe| (probe.peer, probe.port) == (target.address, target.port))
            .map(|probe| probe.outcome)
            .collect();
        let failed = of_target.iter().copied().filter(|outcome| *outcome != ProbeOutcome::Ok).collect();
        (failed, of_target.len())
    }

    /// Which server cannot be reached by how many of the others, of all hosts.
    pub(super) fn unreached(&self, hosts: &[Host]) -> Vec<String> {
        let line = |index: &usize| Some(format!("{}: {}", hosts.get(*index)?.id, self.unreached_note(*index)?));
        self.members.keys().filter_map(line).collect()
    }

    /// `port 5201: 3 of 3 hosts get no answer`
    pub(super) fn unreached_note(&self, index: usize) -> Option<String> {
        let port = self.members.get(&index)?.port;
        let (failed, all) = self.failed_probes(index);
        let how = match failed.first()? {
            outcome if failed.iter().any(|other| other != outcome) => "do not reach it",
            ProbeOutcome::Refused => "are refused",
            ProbeOutcome::Timeout => "get no answer",
            ProbeOutcome::NoRoute => "have no route",
            _ => "do not reach it",
        };
        Some(format!("port {port}: {} of {all} hosts {how}", failed.len()))
    }

    /// Ids of the hosts that can be tested now.
    pub(super) fn ids<'a>(&'a self, hosts: &'a [Host]) -> impl Iterator<Item = (usize, &'a HostId)> {
        self.members.keys().filter_map(|index| Some((*index, &hosts.get(*index)?.id)))
    }
}

/// Highest speed of the link modes that a device supports; the present speed may be lower.
fn highest_speed_bps(facts: &Snapshot, device: &str) -> Option<u64> {
    let Value::List(modes) = facts.value(&format!("nic.{device}.link.modes.supported"))? else { return None };
    let mbps = |mode: &Value| match mode {
        Value::Text(name) => name.split("base").next()?.parse::<u64>().ok(),
        _ => None,
    };
    modes.iter().filter_map(mbps).max()?.checked_mul(1_000_000)
}
