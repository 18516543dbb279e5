//! Servers of an inventory without an agent: stock iperf3, or `linerate serve`.
//!
//! The hosts with an agent connect to such a server, and it sends to them by tests in reverse. It
//! has one test at a time.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use crate::spec::inventory::{Inventory, Reach, host_port};
use linerate_model::fleet::HostId;
use linerate_model::record::HostPart;

use super::members::{Member, TestEnd};

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
