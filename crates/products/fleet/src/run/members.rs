//! Hosts that can be tested, and what they reported before the first round.
//!
//! A server of the inventory without an agent is stock iperf3, or `linerate serve`. The hosts with an
//! agent connect to it, and it sends to them by tests in reverse. It has one test at a time.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use super::control::Control;
use crate::conclude::hosts::{HostFacts, HostFindings, findings};
use crate::conclude::shared_slot::Forwarder;
use crate::plan::Links;
use crate::protocol::message::{BridgePort, Preflighted, ProbeOutcome, ProbeReport};
use crate::spec::inventory::{Host, Inventory, Reach, host_port};
use linerate_model::fleet::HostId;
use linerate_model::snapshot::{Snapshot, Value};
use linerate_sys::clock::monotonic_ns;

/// Longest distance of the starts.
pub(super) const CLOCK_BUDGET_NS: u64 = 10_000_000;

/// A host that can be tested.
#[derive(Default)]
pub(super) struct Member {
    /// Where its tests end, by the name of the path.
    pub ends: BTreeMap<String, TestEnd>,
    /// Results of its connections to the servers of the others.
    pub probes: Vec<ProbeReport>,
    /// Results of the connections of the others to its servers.
    pub reached: Reached,
    /// Its facts, where they were collected.
    pub facts: Option<Snapshot>,
    /// It is a server without an agent.
    pub is_target: bool,
}

/// Probes of the servers of a host.
#[derive(Default)]
pub(super) struct Reached {
    failed: Vec<ProbeOutcome>,
    /// All, failed or not.
    pub count: usize,
}

impl Reached {
    /// No host reaches the servers. One that does shows that they listen.
    pub(super) fn is_closed(&self) -> bool {
        self.count > 0 && self.failed.len() == self.count
    }
}

/// The end of the tests of a path.
pub(super) struct TestEnd {
    /// Address of its tests.
    pub address: IpAddr,
    /// Port of its server.
    pub port: u16,
    /// Device that has the address.
    pub device: Option<String>,
    /// Present speed of its link.
    pub speed_bps: Option<u64>,
    /// Highest rate that its link supports, where that is known.
    pub link_bps: Option<u64>,
}

/// Hosts that can be tested, by their places in the inventory, and the longest round trip between
/// them.
pub(super) struct Prepared<'a> {
    pub members: BTreeMap<usize, Member>,
    pub data_rtt_ns: u64,
    inventory: &'a [Host],
    places: BTreeMap<&'a HostId, usize>,
}

impl<'a> Prepared<'a> {
    /// Hosts of an inventory, none of which can be tested yet.
    pub(super) fn new(inventory: &'a [Host]) -> Self {
        Self {
            members: BTreeMap::new(),
            data_rtt_ns: 0,
            inventory,
            places: inventory.iter().map(|host| &host.id).zip(0..).collect(),
        }
    }

    /// Takes what a host found out.
    pub(super) fn take(&mut self, index: usize, report: Preflighted) {
        let Some(member) = self.members.get_mut(&index) else {
            return;
        };
        member.facts = report.facts.map(|facts| *facts);
        for end in member.ends.values_mut() {
            if let Some(device) = &end.device
                && let Some(facts) = &member.facts
            {
                end.link_bps = highest_speed_bps(facts, device);
            }
        }

        for probe in &report.peers {
            self.data_rtt_ns = self.data_rtt_ns.max(probe.rtt_ns.unwrap_or(0));
        }
        member.probes = report.peers;
    }

    /// Counts the probes of each host's servers, once all hosts have reported.
    pub(super) fn count_probes(&mut self) {
        let mut owners: BTreeMap<(IpAddr, u16), usize> = BTreeMap::new();
        for (index, member) in &self.members {
            for end in member.ends.values() {
                owners.insert((end.address, end.port), *index);
            }
        }

        let mut reached: BTreeMap<usize, Reached> = BTreeMap::new();
        for probe in self.members.values().flat_map(|member| &member.probes) {
            let Some(owner) = owners.get(&(probe.peer, probe.port)) else {
                continue;
            };
            let of_owner = reached.entry(*owner).or_default();
            of_owner.count += 1;
            if probe.outcome != ProbeOutcome::Ok {
                of_owner.failed.push(probe.outcome);
            }
        }

        for (index, reached) in reached {
            if let Some(member) = self.members.get_mut(&index) {
                member.reached = reached;
            }
        }
    }

    /// `port 5201: 3 of 3 hosts get no answer`
    pub(super) fn unreached_note(&self, index: usize) -> Option<String> {
        let member = self.members.get(&index)?;
        let port = member.ends.values().next()?.port;
        let Reached { failed, count } = &member.reached;
        let first = failed.first()?;
        let how = match first {
            _ if failed.iter().any(|other| other != first) => "do not reach it",
            ProbeOutcome::Refused => "are refused",
            ProbeOutcome::Timeout => "get no answer",
            ProbeOutcome::NoRoute => "have no route",
            _ => "do not reach it",
        };

        let failed = failed.len();
        Some(format!("port {port}: {failed} of {count} hosts {how}"))
    }

    /// The hosts that can be tested, with their places.
    pub(super) fn hosts(&self) -> impl Iterator<Item = (usize, &'a Host, &Member)> {
        self.members
            .iter()
            .filter_map(|(index, member)| Some((*index, self.inventory.get(*index)?, member)))
    }

    /// A host by its place in the inventory, whether it can be tested or not.
    pub(super) fn host(&self, index: usize) -> Option<&'a Host> {
        self.inventory.get(index)
    }

    /// Rates of the links, where they are known.
    pub(super) fn links_bps(&self) -> Links {
        let mut links = Links::new();
        for (_, host, member) in self.hosts() {
            links.extend(member.link_bps().map(|bps| (host.id.clone(), bps)));
        }

        links
    }

    /// A host by its id, with its place in the inventory.
    pub(super) fn member(&self, id: &HostId) -> Option<(usize, &Member)> {
        let index = *self.places.get(id)?;
        Some((index, self.members.get(&index)?))
    }
}

impl TestEnd {
    /// The end at an address of which nothing more is known.
    pub(super) fn at(address: IpAddr) -> Self {
        Self {
            address,
            port: 0,
            device: None,
            speed_bps: None,
            link_bps: None,
        }
    }
}

impl Member {
    /// The fastest link that its tests use, in bit/s, where one is known.
    pub(super) fn link_bps(&self) -> Option<f64> {
        let links = self.ends.values().filter_map(|end| end.link_bps);
        links.max().map(|bps| bps as f64)
    }

    /// Address and port of its first end.
    pub(super) fn place(&self) -> String {
        let end = self.ends.values().next();
        end.map_or_else(String::new, |end| {
            SocketAddr::new(end.address, end.port).to_string()
        })
    }
}

/// Highest speed of the link modes that a device supports; the present speed may be lower.
fn highest_speed_bps(facts: &Snapshot, device: &str) -> Option<u64> {
    let Value::List(modes) = facts.value(&format!("nic.{device}.link.modes.supported"))? else {
        return None;
    };
    let mut most: Option<u64> = None;
    for mode in modes {
        // Names of link modes begin with the speed: `10000baseT/Full` (ethtool(8)).
        if let Value::Text(name) = mode
            && let Some((mbps, _)) = name.split_once("base")
        {
            most = most.max(mbps.parse().ok());
        }
    }

    most?.checked_mul(1_000_000)
}

/// Servers without an agent by their places in the inventory.
#[derive(Default)]
pub(super) struct Targets {
    /// Those that can be tested.
    pub members: BTreeMap<usize, Member>,
    /// Why others take no part.
    pub reasons: BTreeMap<usize, String>,
}

/// Resolves the names of the servers. The address of a path is that of the inventory, else that of
/// the server.
pub(super) fn targets(inventory: &Inventory, paths: &[String]) -> Targets {
    let mut tested = inventory.hosts.iter().flat_map(|host| host.paths.values());
    let tested = tested.next().copied();
    let mut targets = Targets::default();

    for (index, host) in inventory.hosts.iter().enumerate() {
        let Reach::Server(server) = &host.reach else {
            continue;
        };
        let address = match resolved(server, tested) {
            Ok(address) => address,
            Err(reason) => {
                targets.reasons.insert(index, reason);
                continue;
            }
        };
        let mut member = Member {
            is_target: true,
            ..Member::default()
        };
        for path in paths {
            let own = host.paths.get(path).copied();
            let mut end = TestEnd::at(own.unwrap_or(address.ip()));
            end.port = address.port();
            member.ends.insert(path.clone(), end);
        }
        targets.members.insert(index, member);
    }

    targets
}

/// The first address of the family of the tested paths, else the first one.
fn resolved(server: &str, tested: Option<IpAddr>) -> Result<SocketAddr, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("resolve {server}: {why}; write its address");
    let place = host_port(server).ok_or_else(|| wrong(&"no HOST:PORT"))?;
    let found = place.to_socket_addrs().map_err(|error| wrong(&error))?;
    let found: Vec<SocketAddr> = found.collect();
    // Both ends of a test need addresses of one family.
    let mut of_family = found
        .iter()
        .filter(|address| tested.is_none_or(|tested| tested.is_ipv4() == address.is_ipv4()));
    let address = of_family.next().or(found.first());

    address.copied().ok_or_else(|| wrong(&"no address"))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_has_its_own_address_on_paths_without_one() {
        let text = "[[host]]\nname = \"a\"\npaths = \
                    { phys = \"10.0.0.7\", vf = \"10.0.1.7\" }\n[[host]]\nname = \"core\"\n\
                    server = \"10.0.0.250:5299\"\npaths = { vf = \"10.0.1.250\" }";
        let inventory = crate::spec::inventory::parse(text).expect("an inventory");
        let targets = targets(&inventory, &["phys".to_owned(), "vf".to_owned()]);
        let core = &targets.members[&1];
        let ends: Vec<String> = core
            .ends
            .values()
            .map(|end| format!("{}:{}", end.address, end.port))
            .collect();
        assert_eq!(ends, ["10.0.0.250:5299", "10.0.1.250:5299"]);
        assert!(core.is_target && targets.reasons.is_empty());
    }

    #[test]
    fn address_of_the_tested_family_is_preferred() {
        // localhost is 127.0.0.1, and on most hosts ::1 as well.
        let tested = Some("10.0.0.1".parse().expect("an address"));
        let found = resolved("localhost:5201", tested).expect("an address");
        assert!(found.is_ipv4(), "{found}");

        let error = resolved("no.such.name.invalid:1", tested).expect_err("no address");
        assert!(
            error.starts_with("resolve no.such.name.invalid:1: "),
            "{error}"
        );
    }
}
