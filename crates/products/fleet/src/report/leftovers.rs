//! Processes of earlier runs on the hosts of a fleet.

use linerate_model::fleet::HostId;

use linerate_document::Style;
use linerate_document::blocks::{Block, Document};
use linerate_document::number::counted;
use linerate_document::table::Table;

/// A process, or a host that did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftoverRow {
    /// Its host.
    pub host: HostId,
    /// Its process id and its run; `None` of a host that did not answer.
    pub process: Option<(u32, String)>,
    /// TCP ports on which it listens.
    pub ports: Vec<u16>,
    /// State: ended, or the reason why it has not; the reason of a missing answer.
    pub state: String,
}

/// A row for each process and each host that did not answer.
#[must_use]
pub fn leftovers_text(hosts: usize, rows: &[LeftoverRow], style: Style) -> String {
    let processes = rows.iter().filter(|row| row.process.is_some()).count();
    let absent = || "-".to_owned();
    let hosts = counted(hosts, "host");
    let title = match processes {
        0 => format!("nothing is left of a run on {hosts}"),
        count => format!("{} of runs on {hosts}", counted(count, "worker")),
    };

    let ports = |row: &LeftoverRow| match row.ports.as_slice() {
        [] => absent(),
        ports => ports
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(","),
    };
    let table = Table::of("", "", rows)
        .text("host", |row| row.host.to_string())
        .text("process", |row| {
            row.process
                .as_ref()
                .map_or_else(absent, |(pid, _)| pid.to_string())
        })
        .text("run", |row| {
            row.process
                .as_ref()
                .map_or_else(absent, |(_, run)| run.clone())
        })
        .text("listens on", ports)
        .text("state", |row| row.state.clone())
        .non_empty();
    let blocks = std::iter::once(Block::Title(title))
        .chain(table.map(Block::Table))
        .collect();

    Document {
        name: "linerate fleet leftovers",
        blocks,
    }
    .text(style)
}
