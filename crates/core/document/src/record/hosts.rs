//! Facts of the hosts of a run.

use linerate_model::record::{HostPart, RunRecord};
use linerate_model::snapshot::Fact;

use crate::blocks::Block;
use crate::numbers::MISSING;
use crate::table::{Cell, Table};

/// Most facts of a page; a host with many interfaces has thousands.
const FACTS_MAX: usize = 1000;

/// One line for each host, and all facts side by side, those that differ marked.
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
    let facts =
        facts.map(|table| Block::Details("All facts".to_owned(), vec![Block::Table(table)]));
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
    let mut keys: Vec<&String> = known
        .iter()
        .flat_map(|(_, snapshot)| snapshot.facts.keys())
        .collect();
    // Hosts have most facts in common: each key is one row.
    keys.sort_unstable();
    keys.dedup();

    let left_out = keys.len().saturating_sub(FACTS_MAX);
    keys.truncate(FACTS_MAX);

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
    let differs = |key: &String| {
        // One host differs from no other.
        known.len() > 1 && (1..known.len()).any(|at| value(at, key) != value(0, key))
    };
    let mut table = Table::of("", "", &keys).text("fact", |key| key.as_str());

    for (at, (host, _)) in known.iter().enumerate() {
        table = table.text(&host.role, |key| Cell::marked(value(at, key), differs(key)));
    }

    let notes = (left_out > 0)
        .then(|| format!("{left_out} more facts are in the record"))
        .into_iter();
    let marks = (known.len() > 1).then(|| "*: differs between the hosts".to_owned());
    table.notes(notes.chain(marks)).non_empty()
}
