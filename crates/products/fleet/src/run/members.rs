//! Hosts that can be tested, and what they reported before the first round.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::protocol::message::{Preflighted, ProbeOutcome, ProbeReport};
use crate::spec::inventory::Host;
use linerate_model::fleet::HostId;
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
#[derive(Debug, Default)]
pub(super) struct Prepared {
    pub(super) members: BTreeMap<usize, Member>,
    pub(super) data_rtt_ns: u64,
    places: BTreeMap<HostId, usize>,
}

impl Prepared {
    /// Hosts of an inventory, none of which can be tested yet.
    pub(super) fn new(hosts: &[Host]) -> Self {
        let places = hosts
            .iter()
            .enumerate()
            .map(|(index, host)| (host.id.clone(), index))
            .collect();
        Self {
            places,
            ..Self::default()
        }
    }

    /// Takes what a host found out.
    pub(super) fn take(&mut self, index: usize, report: Preflighted) {
        let Some(member) = self.members.get_mut(&index) else {
            return;
        };
        member.facts = report
            .facts
            .as_ref()
            .and_then(|facts| serde_json::from_str(facts.as_str()).ok());

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

    /// Which server cannot be reached by how many of the others, of all hosts.
    pub(super) fn unreached(&self, hosts: &[Host]) -> Vec<String> {
        self.hosts(hosts)
            .filter_map(|(index, id, _)| Some(format!("{id}: {}", self.unreached_note(index)?)))
            .collect()
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
    pub(super) fn hosts<'a>(
        &'a self,
        hosts: &'a [Host],
    ) -> impl Iterator<Item = (usize, &'a HostId, &'a Member)> {
        self.members
            .iter()
            .filter_map(|(index, member)| Some((*index, &hosts.get(*index)?.id, member)))
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
