//! `linerate fleet hosts`: what an inventory resolves to.

use crate::report::hosts_text;
use linerate_document::Style;
use linerate_model::printable::printable_json;

use crate::spec::FleetHosts;

/// A row for each host.
pub fn text(hosts: &FleetHosts, style: Style) -> String {
    hosts_text(&hosts.inventory.hosts, style)
}

/// The hosts as one JSON array.
pub fn json(hosts: &FleetHosts) -> String {
    printable_json(&serde_json::to_string(&hosts.inventory.hosts).unwrap_or_default()) + "\n"
}
