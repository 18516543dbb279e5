//! Processes of earlier runs on the hosts of a fleet.

use linerate_model::fleet::HostId;
use linerate_model::record::RunId;
use serde::{Deserialize, Serialize};

use linerate_document::Style;
use linerate_document::blocks::{Block, Document};
use linerate_document::number::counted;
use linerate_document::table::Table;

/// A worker of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    /// Its process id.
    pub pid: u32,
    /// The run.
    pub run: RunId,
    /// TCP ports on which it listens.
    pub ports: Vec<u16>,
    /// Process id of its agent, which ends it with the run; absent where the agent has ended.
    pub agent: Option<u32>,
    /// It ended; absent where that was not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_ended: Option<bool>,
}

/// Processes that a host reports, or the reason why it reports none.
pub type HostLeftovers = Result<Vec<Leftover>, String>;

/// A row for each process and each host that did not answer.
pub fn leftovers_text(answers: &[(HostId, HostLeftovers)], style: Style) -> String {
    type Row<'a> = (&'a HostId, Result<&'a Leftover, &'a String>);

    let mut rows: Vec<Row<'_>> = Vec::new();
    for (host, answer) in answers {
        match answer {
            Ok(found) => rows.extend(found.iter().map(|found| (host, Ok(found)))),
            Err(reason) => rows.push((host, Err(reason))),
        }
    }

    let of_process = |row: &Row<'_>, text: fn(&Leftover) -> String| match row.1 {
        Ok(found) => text(found),
        Err(_) => "-".to_owned(),
    };
    let table = Table::of("", "", &rows)
        .text("host", |(host, _)| host.to_string())
        .text("process", |row| {
            of_process(row, |found| found.pid.to_string())
        })
        .text("run", |row| of_process(row, |found| found.run.to_string()))
        .text("listens on", |row| of_process(row, ports))
        .text("state", |row| row.1.map_or_else(String::clone, state))
        .non_empty();

    let hosts = counted(answers.len(), "host");
    let title = match rows.iter().filter(|(_, found)| found.is_ok()).count() {
        0 => format!("nothing is left of a run on {hosts}"),
        count => format!("{} of runs on {hosts}", counted(count, "worker")),
    };
    Document {
        name: "linerate fleet leftovers",
        blocks: std::iter::once(Block::Title(title))
            .chain(table.map(Block::Table))
            .collect(),
    }
    .text(style)
}

fn ports(found: &Leftover) -> String {
    let ports: Vec<String> = found.ports.iter().map(u16::to_string).collect();
    if ports.is_empty() {
        "-".to_owned()
    } else {
        ports.join(",")
    }
}

fn state(found: &Leftover) -> String {
    match (found.is_ended, found.agent) {
        (Some(true), _) => "ended".to_owned(),
        (Some(false), _) => "did not end".to_owned(),
        (None, Some(agent)) => format!("its agent {agent} runs"),
        (None, None) => "without an agent".to_owned(),
    }
}
