//! Differences in the configuration of two runs, and those of them that forbid a comparison.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use linerate_doctor::Observed;
use linerate_model::finding::Difference;
use linerate_model::http::Study;
use linerate_model::path::Hop;
use linerate_model::record::{Body, Detail, RunRecord, Trial};
use linerate_model::snapshot::Snapshot;
use linerate_model::stored_name;
use serde::Serialize;
use serde_json::Value;

/// Reasons that make two experiments of the HTTP lab hard to compare, one sentence each.
pub type ExperimentNotes = fn(&Study, &Study) -> Vec<String>;

/// A difference of configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Owner of the setting: `test`, `tool`, `path`, or the role of a host.
    pub of: String,
    /// Its key, both values, and why it can matter.
    #[serde(flatten)]
    pub difference: Difference,
}

/// Members of a specification without which two results are no results of the same thing.
const ESSENTIAL: [&str; 7] = [
    "transport",
    "direction",
    "streams",
    "payload",
    "payload_bytes",
    "connections",
    "datagram_bytes",
];
/// Members that have no effect.
const WITHOUT_EFFECT: [&str; 2] = ["title", "extra_data"];

/// Differences of two runs by their first trials, strongest effect first.
pub fn configuration(a: &RunRecord, b: &RunRecord) -> Vec<Change> {
    let mut changes = changes(a, b, [a.trials.first(), b.trials.first()]);
    changes.sort_by_key(|change| std::cmp::Reverse(change.difference.impact));
    changes
}

/// Differences of two runs: of the test, of the programs, and of the hosts.
pub(super) fn changes(a: &RunRecord, b: &RunRecord, trials: [Option<&Trial>; 2]) -> Vec<Change> {
    let [spec_a, spec_b] = trials.map(specification);
    let mut changes = differing("test", &spec_a, &spec_b, (3, "another test"));
    changes.extend(differing("path", &path(a), &path(b), (3, "another path")));
    if let [Some(a), Some(b)] = trials.map(hops) {
        changes.extend(other_hops(a, b));
    }
    changes.extend(differing(
        "tool",
        &tool(a),
        &tool(b),
        (2, "another program"),
    ));

    for (host, other) in a
        .hosts
        .iter()
        .filter_map(|host| Some((host, b.hosts.iter().find(|b| b.role == host.role)?)))
    {
        if let Some(before) = &host.snapshot
            && let Some(after) = &other.snapshot
        {
            changes.extend(settings(before, after).map(|difference| Change {
                of: host.role.clone(),
                difference,
            }));
        }
    }

    changes
}

/// Differences of the settings of a host, strongest effect first. Counters that grew are none.
fn settings(a: &Snapshot, b: &Snapshot) -> impl Iterator<Item = Difference> {
    let [a, b] = [a, b].map(|snapshot| Observed::once(snapshot.clone()));
    let comparison = linerate_doctor::compare(&a, &b, &[]).comparison;
    comparison
        .unwrap_or_default()
        .changed
        .into_iter()
        .filter(|difference| difference.a.is_some())
}

/// Both values of a difference.
pub(crate) fn values(difference: &Difference) -> [&str; 2] {
    [&difference.a, &difference.b].map(|value| value.as_deref().unwrap_or("not set"))
}

/// Differences between two experiments of the HTTP lab.
pub(super) fn notes(a: &RunRecord, b: &RunRecord, of: ExperimentNotes) -> Vec<String> {
    match (&a.body, &b.body) {
        (Body::HttpLab(Some(a)), Body::HttpLab(Some(b))) => of(a, b),
        _ => Vec::new(),
    }
}

/// Why the changes forbid a comparison: `streams 4, now 8`.
pub(super) fn obstacles(changes: &[Change]) -> Vec<String> {
    // The first part of a key is the member of the specification.
    let is_essential = |key: &str| ESSENTIAL.contains(&key.split('.').next().unwrap_or(key));
    let essential = changes
        .iter()
        .filter(|change| change.of == "test" && is_essential(&change.difference.key));
    essential
        .map(|Change { difference, .. }| {
            let [a, b] = values(difference);
            format!("{}: {a}, now {b}", difference.key)
        })
        .collect()
}

type Members = BTreeMap<String, String>;

fn specification(trial: Option<&Trial>) -> Members {
    let mut members = Members::new();
    match trial.and_then(|trial| trial.detail.as_ref()) {
        Some(Detail::Test(test)) => {
            let spec = &test.header.spec;
            flatten(
                &mut members,
                "",
                serde_json::to_value(spec).unwrap_or_default(),
            );

            // The block of UDP is the size of its datagrams; with TCP it is only that of a write.
            if spec.transport == linerate_model::Transport::Udp {
                members.insert(
                    "datagram_bytes".to_owned(),
                    spec.block_len_bytes.to_string(),
                );
            }

            WITHOUT_EFFECT
                .iter()
                .for_each(|name| drop(members.remove(*name)));
        }
        Some(Detail::Cell(run)) => {
            flatten(
                &mut members,
                "",
                serde_json::to_value(run.key).unwrap_or_default(),
            );
            if let Some(protocol) = run.load.as_ref().and_then(|load| load.protocol.as_ref()) {
                members.insert("protocol".to_owned(), protocol.to_string());
            }
        }
        Some(Detail::Path(report)) => {
            members.insert("profile".to_owned(), stored_name(report.profile));
            members.insert("dialect".to_owned(), stored_name(report.target.dialect));
        }
        Some(Detail::FleetCell(cell)) => {
            drop(members.insert("mode".to_owned(), stored_name(cell.mode)));
        }
        _ => {}
    }

    members
}

fn flatten(members: &mut Members, name: &str, value: Value) {
    match value {
        // An option that is not set equals one that the record does not have.
        Value::Null => {}
        Value::Object(object) => {
            let prefix = if name.is_empty() {
                String::new()
            } else {
                format!("{name}.")
            };
            object
                .into_iter()
                .for_each(|(key, value)| flatten(members, &format!("{prefix}{key}"), value));
        }
        Value::String(text) => drop(members.insert(name.to_owned(), text)),
        other => drop(members.insert(name.to_owned(), other.to_string())),
    }
}

fn path(run: &RunRecord) -> Members {
    let ends = [("client", &run.path.client), ("server", &run.path.server)];
    ends.into_iter()
        .filter_map(|(end, name)| Some((end.to_owned(), name.clone()?)))
        .collect()
}

/// Hops of a test of a path.
fn hops(trial: Option<&Trial>) -> Option<&[Hop]> {
    match trial?.detail.as_ref()? {
        Detail::Path(report) => Some(&report.path.from_client),
        _ => None,
    }
}

/// The hops of two tests of a path, where they are not those of one path. A hop that did not answer
/// in one of them differs from none.
fn other_hops(a: &[Hop], b: &[Hop]) -> Option<Change> {
    let is_other = |(a, b): (&Hop, &Hop)| {
        let of = |hop: &Hop| hop.other_flows.iter().copied().chain(hop.address).collect();
        let [a, b]: [BTreeSet<IpAddr>; 2] = [of(a), of(b)];
        !a.is_empty() && !b.is_empty() && a.is_disjoint(&b)
    };
    let ends = |hops: &[Hop]| hops.iter().any(|hop| hop.is_end);
    let is_longer = ends(a) && ends(b) && a.len() != b.len();
    if !is_longer && !a.iter().zip(b).any(is_other) {
        return None;
    }

    let text = |hops: &[Hop]| {
        let addresses = hops.iter().map(|hop| {
            let address = hop.address.map(|address| address.to_string());
            address.unwrap_or_else(|| "no answer".to_owned())
        });
        Some(addresses.collect::<Vec<_>>().join(", "))
    };
    Some(Change {
        of: "path".to_owned(),
        difference: Difference {
            a: text(a),
            b: text(b),
            ..Difference::new("hops", 3, "another path")
        },
    })
}

fn tool(run: &RunRecord) -> Members {
    let version = run.origin.version.as_deref().unwrap_or_default();
    Members::from([(
        "version".to_owned(),
        format!("{} {version}", run.origin.tool)
            .trim_end()
            .to_owned(),
    )])
}

/// Members of `a` and `b` with different values. Nothing differs from what is unknown altogether.
fn differing(of: &str, a: &Members, b: &Members, (impact, why): (u8, &str)) -> Vec<Change> {
    if a.is_empty() || b.is_empty() {
        return Vec::new();
    }

    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let differing = keys.into_iter().filter(|key| a.get(*key) != b.get(*key));

    let difference = |key: &String| Difference {
        a: a.get(key).cloned(),
        b: b.get(key).cloned(),
        ..Difference::new(key, impact, why)
    };
    differing
        .map(|key| Change {
            of: of.to_owned(),
            difference: difference(key),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_another_one_where_a_hop_that_answers_is() {
        let of = |addresses: &[u8]| {
            let hop = |(number, last): (u8, &u8)| Hop {
                hop: number,
                address: (*last > 0).then(|| [192, 0, 2, *last].into()),
                is_end: usize::from(number) == addresses.len(),
                ..Hop::default()
            };
            (1..).zip(addresses).map(hop).collect::<Vec<Hop>>()
        };
        for (a, b, is_changed) in [
            (&[1, 2, 9][..], &[1, 2, 9][..], false),
            (&[1, 2, 9], &[1, 0, 9], false),
            (&[1, 2, 9], &[1, 3, 9], true),
            (&[1, 2, 9], &[1, 2, 5, 9], true),
        ] {
            let change = other_hops(&of(a), &of(b));
            assert_eq!(change.is_some(), is_changed, "{a:?} {b:?}");
        }
    }
}
