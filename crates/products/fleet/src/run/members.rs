//! Hosts that can be tested, and what they reported before the first round.
//!
//! A server of the inventory without an agent is stock iperf3, or `linerate serve`. The hosts with an
//! agent connect to it, and it sends to them by tests in reverse. It has one test at a time.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use crate::plan::Links;
use crate::protocol::message::{Preflighted, ProbeOutcome, ProbeReport};
use crate::spec::inventory::{Host, Inventory, Reach, host_port};
use linerate_model::fleet::HostId;
use linerate_model::record::HostPart;
use linerate_model::snapshot::{Snapshot, Value};

/// A host that can be tested.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Member {
    /// Where its tests end, by the name of the path.
    pub(super) ends: BTreeMap<String, TestEnd>,
    /// Results of its connections to the servers of the others.
    pub(super) probes: Vec<ProbeReport>,
    /// Results of the connections of the others to its servers.
    pub(super) reached: Reached,
    /// Its facts, where they were collected.
    pub(super) facts: Option<Snapshot>,
    /// It is a server without an agent.
    pub(super) is_target: bool,
}

/// Probes of the servers of a host.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Reached {
    failed: Vec<ProbeOutcome>,
    /// All, failed or not.
    count: usize,
}

/// The end of the tests of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TestEnd {
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
}

/// Hosts that can be tested, by their places in the inventory, and the longest round trip between
/// them.
#[derive(Debug)]
pub(super) struct Prepared<'a> {
    pub(super) members: BTreeMap<usize, Member>,
    pub(super) data_rtt_ns: u64,
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
            let known = end.device.as_ref().zip(member.facts.as_ref());
            end.link_bps = known.and_then(|(device, facts)| highest_speed_bps(facts, device));
        }

        let longest_ns = report.peers.iter().filter_map(|probe| probe.rtt_ns).max();
        self.data_rtt_ns = self.data_rtt_ns.max(longest_ns.unwrap_or(0));
        member.probes = report.peers;
    }

    /// Counts the probes of each host's servers, once all hosts have reported.
    pub(super) fn count_probes(&mut self) {
        let ends = |(index, member): (&usize, &Member)| {
            let index = *index;
            member
                .ends
                .values()
                .map(move |end| ((end.address, end.port), index))
                .collect::<Vec<_>>()
        };
        let owners: BTreeMap<(IpAddr, u16), usize> = self.members.iter().flat_map(ends).collect();
        let mut reached: BTreeMap<usize, Reached> = BTreeMap::new();

        for probe in self.members.values().flat_map(|member| &member.probes) {
            let Some(owner) = owners.get(&(probe.peer, probe.port)) else {
                continue;
            };
            let of_owner = reached.entry(*owner).or_default();
            of_owner.count += 1;
            of_owner
                .failed
                .extend(Some(probe.outcome).filter(|outcome| *outcome != ProbeOutcome::Ok));
        }

        for (index, member) in &mut self.members {
            member.reached = reached.remove(index).unwrap_or_default();
        }
    }

    /// Probes of the servers of this host that failed, and how many were made.
    pub(super) fn failed_probes(&self, index: usize) -> (&[ProbeOutcome], usize) {
        self.members.get(&index).map_or((&[], 0), |member| {
            (&member.reached.failed, member.reached.count)
        })
    }

    /// `port 5201: 3 of 3 hosts get no answer`
    pub(super) fn unreached_note(&self, index: usize) -> Option<String> {
        let port = self.members.get(&index)?.ends.values().next()?.port;
        let (failed, all) = self.failed_probes(index);
        let how = match failed.first()? {
            outcome if failed.iter().any(|other| other != outcome) => "do not reach it",
            ProbeOutcome::Refused => "are refused",
            ProbeOutcome::Timeout => "get no answer",
            ProbeOutcome::NoRoute => "have no route",
            _ => "do not reach it",
        };

        Some(format!(
            "port {port}: {} of {all} hosts {how}",
            failed.len()
        ))
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
        self.hosts()
            .filter_map(|(_, host, member)| Some((host.id.clone(), member.link_bps()?)))
            .collect()
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
        self.ends
            .values()
            .filter_map(|end| end.link_bps)
            .max()
            .map(|bps| bps as f64)
    }
}

/// Highest speed of the link modes that a device supports; the present speed may be lower.
fn highest_speed_bps(facts: &Snapshot, device: &str) -> Option<u64> {
    let Value::List(modes) = facts.value(&format!("nic.{device}.link.modes.supported"))? else {
        return None;
    };
    let mbps = |mode: &Value| match mode {
        // Names of link modes begin with the speed: `10000baseT/Full` (ethtool(8)).
        Value::Text(name) => name.split("base").next()?.parse::<u64>().ok(),
        _ => None,
    };
    modes.iter().filter_map(mbps).max()?.checked_mul(1_000_000)
}

/// Servers without an agent by their places in the inventory.
#[derive(Debug, Default)]
pub(super) struct Targets {
    /// Those that can be tested.
    pub(super) members: BTreeMap<usize, Member>,
    /// Why others take no part.
    pub(super) reasons: BTreeMap<usize, String>,
}

/// Resolves the names of the servers. The address of a path is that of the inventory, else that of
/// the server.
pub(super) fn targets(inventory: &Inventory, paths: &[String]) -> Targets {
    let tested = inventory
        .hosts
        .iter()
        .find_map(|host| host.paths.values().next())
        .copied();
    let mut targets = Targets::default();

    for (index, host) in inventory.hosts.iter().enumerate() {
        let Reach::Server(server) = &host.reach else {
            continue;
        };
        match resolved(server, tested) {
            Ok(address) => {
                let end = |path: &String| {
                    let own = host.paths.get(path).copied().unwrap_or(address.ip());
                    (
                        path.clone(),
                        TestEnd {
                            port: address.port(),
                            ..TestEnd::at(own)
                        },
                    )
                };
                let ends = paths.iter().map(end).collect();
                targets.members.insert(
                    index,
                    Member {
                        ends,
                        is_target: true,
                        ..Member::default()
                    },
                );
            }
            Err(reason) => drop(targets.reasons.insert(index, reason)),
        }
    }

    targets
}

/// The first address of the family of the tested paths, else the first one.
fn resolved(server: &str, tested: Option<IpAddr>) -> Result<SocketAddr, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("resolve {server}: {why}; write its address");
    let place = host_port(server).ok_or_else(|| wrong(&"no HOST:PORT"))?;
    let found: Vec<SocketAddr> = place
        .to_socket_addrs()
        .map_err(|error| wrong(&error))?
        .collect();
    // Both ends of a test need addresses of one family.
    let is_of_family =
        |address: &&SocketAddr| tested.is_none_or(|tested| tested.is_ipv4() == address.is_ipv4());
    let address = found.iter().find(is_of_family).or(found.first());

    address.copied().ok_or_else(|| wrong(&"no address"))
}

/// The server as a record has it.
pub(super) fn host_part(id: &HostId, member: &Member) -> HostPart {
    let end = member.ends.values().next();
    let place = end.map(|end| SocketAddr::new(end.address, end.port).to_string());
    HostPart::new(id.to_string(), place.unwrap_or_default())
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
