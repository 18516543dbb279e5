//! The hosts of an inventory.

use std::collections::BTreeMap;
use std::fmt::Display;

use crate::spec::inventory::{Host, Reach};
use linerate_document::Style;
use linerate_document::blocks::{Block, Document};
use linerate_document::number::counted;
use linerate_document::table::Table;

/// A row for each host.
pub fn hosts_text(hosts: &[Host], style: Style) -> String {
    let table = Table::of("", "", hosts)
        .text("host", |host| host.id.to_string())
        .text("reached by", |host| match &host.reach {
            Reach::Ssh(destination) => format!("ssh {destination}"),
            Reach::Server(address) => format!("server {address}"),
        })
        .text("rack", |host| {
            host.rack.clone().unwrap_or_else(|| "-".to_owned())
        })
        .text("labels", |host| pairs(&host.labels))
        .text("paths", |host| pairs(&host.paths))
        .table();
    let blocks = vec![
        Block::Title(counted(hosts.len(), "host")),
        Block::Table(table),
    ];

    Document {
        name: "linerate fleet hosts",
        blocks,
    }
    .text(style)
}

/// `name=value` of each entry.
fn pairs(entries: &BTreeMap<String, impl Display>) -> String {
    let pairs: Vec<String> = entries
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    if pairs.is_empty() {
        "-".to_owned()
    } else {
        pairs.join(" ")
    }
}
