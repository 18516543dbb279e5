//! Facts of the hosts of a run.

use linerate_model::record::{HostPart, RunRecord};
use linerate_model::snapshot::Fact;

use crate::blocks::Block;
use crate::numbers::MISSING;
use crate::table::Table;

/// Most facts of a page; a host with many interfaces has thousands.
const FACTS_MAX: usize = 100;

/// One line for each host, and the facts that differ between them.
pub(super) fn hosts(record: &RunRecord) -> Vec<Block> {
    let mut lines: Vec<String> = record.hosts.iter().map(line).collect();
    if record.path.addresses.len() == 2 {
        lines.push(format!(
            "data between {} and {}",
            record.path.addresses[0], record.path.addresses[1]
        ));
    }

    if lines.is_empty() {
        lines.push("Nothing was recorded of the hosts.".to_owned());
    }

    let facts = facts(&record.hosts);
    let facts = facts.map(|table| {
        Block::Details(
            "Facts that differ between the hosts".to_owned(),
            vec![Block::Table(table)],
        )
    });
    [Block::Heading("Hosts".to_owned()), Block::List(lines)]
        .into_iter()
        .chain(facts)
        .collect()
}

/// `client: lab1, Linux 6.1.0`
fn line(host: &HostPart) -> String {
    let kernel = host
        .snapshot
        .as_ref()
        .and_then(|snapshot| snapshot.kernel.as_ref());
    let kernel = kernel.map_or_else(String::new, |kernel| format!(", Linux {kernel}"));

    let same = if host.is_same_host {
        ", the other end is on the same host"
    } else {
        ""
    };
    format!("{}: {}{kernel}{same}", host.role, host.name)
}

fn facts(hosts: &[HostPart]) -> Option<Table> {
    let known: Vec<_> = hosts
        .iter()
        .filter_map(|host| Some((host, host.snapshot.as_ref()?)))
        .collect();
    let value = |at: usize, key: &String| match known[at].1.facts.get(key) {
        Some(Fact::Known { v, u, .. }) => {
            format!(
                "{v}{}",
                u.as_ref()
                    .map_or_else(String::new, |unit| format!(" {unit}"))
            )
        }
        _ => MISSING.to_owned(),
    };
    let mut keys: Vec<&String> = known
        .iter()
        .flat_map(|(_, snapshot)| snapshot.facts.keys())
        // What they have in common is in the record alone.
        .filter(|key| (1..known.len()).any(|at| value(at, key) != value(0, key)))
        .collect();
    keys.sort_unstable();
    keys.dedup();

    let left_out = keys.len().saturating_sub(FACTS_MAX);
    keys.truncate(FACTS_MAX);

    let mut table = Table::of("", "", &keys).text("fact", |key| key.as_str());

    for (at, (host, _)) in known.iter().enumerate() {
        table = table.text(&host.role, |key| value(at, key));
    }

    let notes = (left_out > 0)
        .then(|| format!("{left_out} more facts are in the record"))
        .into_iter();
    table.notes(notes).non_empty()
}
