//! Processes of earlier runs on the hosts of a fleet.

use linerate_model::fleet::HostId;
use linerate_model::record::RunId;
use serde::{Deserialize, Serialize};

use linerate_document::Style;
use linerate_document::blocks::{Block, Document};
use linerate_document::number::counted;
use linerate_document::table::Table;

/// A worker of a run.
#[derive(Debug, Serialize, Deserialize)]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_ended: Option<bool>,
}

/// Processes that a host reports, or the reason why it reports none.
pub type HostLeftovers = Result<Vec<Leftover>, String>;

/// A row for each process and each host that did not answer.
pub fn leftovers_text(answers: &[(HostId, HostLeftovers)], style: Style) -> String {
    // Host, process, run, ports, state.
    let mut rows: Vec<[String; 5]> = Vec::new();
    let mut count = 0;
    for (host, answer) in answers {
        let absent = || "-".to_owned();
        match answer {
            Ok(found) => {
                count += found.len();
                for of in found {
                    let pid = of.pid.to_string();
                    let run = of.run.to_string();
                    rows.push([host.to_string(), pid, run, ports(of), state(of)]);
                }
            }
            Err(reason) => rows.push([
                host.to_string(),
                absent(),
                absent(),
                absent(),
                reason.clone(),
            ]),
        }
    }

    let table = Table::of("", "", &rows)
        .text("host", |row| row[0].clone())
        .text("process", |row| row[1].clone())
        .text("run", |row| row[2].clone())
        .text("listens on", |row| row[3].clone())
        .text("state", |row| row[4].clone())
        .non_empty();
    let hosts = counted(answers.len(), "host");
    let title = match count {
        0 => format!("nothing is left of a run on {hosts}"),
        count => format!("{} of runs on {hosts}", counted(count, "worker")),
    };
    let mut blocks = vec![Block::Title(title)];
    blocks.extend(table.map(Block::Table));
    let name = "linerate fleet leftovers";
    Document { name, blocks }.text(style)
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
