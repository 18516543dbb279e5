//! The hosts of an inventory.

use linerate_model::fleet::HostId;

use linerate_document::Style;
use linerate_document::blocks::{Block, Document};
use linerate_document::number::counted;
use linerate_document::table::Table;

/// A host of an inventory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRow {
    /// Its id.
    pub host: HostId,
    /// The way to it: `ssh admin@nas.mgmt`.
    pub reach: String,
    /// Its rack.
    pub rack: Option<String>,
    /// Names and values of the user.
    pub labels: Vec<(String, String)>,
    /// Test addresses by the name of the path.
    pub paths: Vec<(String, String)>,
}

/// A row for each host.
#[must_use]
pub fn hosts_text(rows: &[HostRow], style: Style) -> String {
    let pairs = |pairs: &[(String, String)]| {
        let pairs: Vec<String> = pairs
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        if pairs.is_empty() {
            "-".to_owned()
        } else {
            pairs.join(" ")
        }
    };
    let table = Table::of("", "", rows)
        .text("host", |row| row.host.to_string())
        .text("reached by", |row| row.reach.clone())
        .text("rack", |row| {
            row.rack.clone().unwrap_or_else(|| "-".to_owned())
        })
        .text("labels", |row| pairs(&row.labels))
        .text("paths", |row| pairs(&row.paths))
        .table();
    let blocks = vec![
        Block::Title(counted(rows.len(), "host")),
        Block::Table(table),
    ];

    Document {
        name: "linerate fleet hosts",
        blocks,
    }
    .text(style)
}
