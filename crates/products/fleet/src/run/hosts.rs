//! `linerate fleet hosts`: what an inventory resolves to.

use crate::inventory::{Host, Reach};
use crate::report::{HostRow, hosts_text};
use linerate_document::Style;
use linerate_model::printable::printable_json;

use super::connect::FleetHosts;

/// A row for each host.
#[must_use]
pub fn text(hosts: &FleetHosts, style: Style) -> String {
    let rows: Vec<HostRow> = hosts.inventory.hosts.iter().map(row).collect();
    hosts_text(&rows, style)
}

/// The hosts as one JSON array.
#[must_use]
pub fn json(hosts: &FleetHosts) -> String {
    printable_json(&serde_json::to_string(&hosts.inventory.hosts).unwrap_or_default()) + "\n"
}

fn row(host: &Host) -> HostRow {
    HostRow {
        host: host.id.clone(),
        reach: match &host.reach {
            Reach::Ssh(destination) => format!("ssh {destination}"),
            Reach::Server(address) => format!("server {address}"),
        },
        rack: host.rack.clone(),
        labels: host.labels.clone().into_iter().collect(),
        paths: host
            .paths
            .iter()
            .map(|(name, address)| (name.clone(), address.to_string()))
            .collect(),
    }
}
