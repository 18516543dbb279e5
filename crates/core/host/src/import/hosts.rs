//! Which host a text is about.

use std::collections::BTreeSet;

use linerate_model::runs;

use super::draft::{Draft, read_block};
use super::lines::*;
use super::reports::ReadTests;
use crate::prelude::*;

/// The host of the lines of each text that name none; a text is the name of a file and its blocks.
pub(super) fn of(texts: &[(&str, Vec<Block<'_>>)], read_tests: ReadTests<'_>) -> Vec<String> {
    let named: Vec<Option<&str>> = texts
        .iter()
        .map(|(name, blocks)| only_host(blocks).or_else(|| role(name)))
        .collect();
    if let ([(name, _)], [host]) = (texts, named.as_slice()) {
        return vec![host.unwrap_or(name).to_owned()];
    }

    let in_blocks = texts
        .iter()
        .flat_map(|(_, blocks)| blocks)
        .filter_map(|block| block.host);
    let hosts: BTreeSet<&str> = in_blocks
        .filter(|host| *host != "note")
        .chain(named.iter().flatten().copied())
        .collect();
    let mut groups = Groups {
        joins: hosts.len() < 2,
        ..Groups::default()
    };

    // A text that names its host comes first, so that the others are compared with it.
    let mut order: Vec<usize> = (0..texts.len()).collect();
    order.sort_by_key(|index| named[*index].is_none());
    let mut group_of = vec![0; texts.len()];

    for index in order {
        let (name, blocks) = &texts[index];
        group_of[index] = groups.add(named[index], name, facts_of(name, blocks, read_tests));
    }

    if let ([host], true) = (groups.names.as_mut_slice(), hosts.is_empty()) {
        *host = "host".to_owned();
    }

    group_of
        .into_iter()
        .map(|group| groups.names[group].clone())
        .collect()
}

/// Texts of one host each.
#[derive(Default)]
struct Groups {
    names: Vec<String>,
    facts: Vec<Vec<Snapshot>>,
    /// A text without a name may join a group: at most one host is named.
    joins: bool,
}

impl Groups {
    /// Adds a text to the group it fits; returns the group's index.
    fn add(&mut self, named: Option<&str>, file: &str, facts: Snapshot) -> usize {
        let fits = |index: &usize| match named {
            Some(named) => self.names[*index] == named,
            None => {
                self.joins
                    && self.facts[*index]
                        .iter()
                        .all(|member| !contradict(member, &facts))
            }
        };
        if let Some(index) = (0..self.names.len()).find(fits) {
            self.facts[index].push(facts);
            return index;
        }

        let name = named.unwrap_or(file);
        let is_taken = self.names.iter().any(|known| known == name);
        self.names.push(if is_taken {
            format!("{name}-{}", self.names.len() + 1)
        } else {
            name.to_owned()
        });
        self.facts.push(vec![facts]);

        self.names.len() - 1
    }
}

/// The host the observations of a text belong to: the only one it names.
fn only_host<'a>(blocks: &[Block<'a>]) -> Option<&'a str> {
    let mut named = blocks
        .iter()
        .filter_map(|block| block.host)
        .filter(|host| *host != "note");
    let first = named.next()?;
    named.all(|host| host == first).then_some(first)
}

fn facts_of(name: &str, blocks: &[Block<'_>], read_tests: ReadTests<'_>) -> Snapshot {
    let mut draft = Draft::new(name);
    for block in blocks {
        read_block(&mut draft, block, read_tests, &mut |_, _| {});
    }
    draft.finish()
}

/// The end of a test a file is named after, as in `server-ethtool.txt`.
fn role(name: &str) -> Option<&str> {
    let word = name.split(|c: char| !c.is_ascii_alphabetic()).next()?;
    matches!(
        word.to_ascii_lowercase().as_str(),
        "server" | "client" | "sender" | "receiver"
    )
    .then_some(word)
}

/// True if two sets of facts cannot be of one host: a setting differs, or each has another end of
/// one path.
fn contradict(a: &Snapshot, b: &Snapshot) -> bool {
    let is_setting = |key: &str| {
        ["nic.", "sysctl.", "cpu.", "numa."]
            .iter()
            .any(|tree| key.starts_with(tree))
            && !key.ends_with("cur_khz")
    };
    let differs = a
        .facts
        .iter()
        .filter(|(key, _)| is_setting(key))
        .any(|(key, fact)| match (fact, b.facts.get(key)) {
            (Fact::Known { v: a, .. }, Some(Fact::Known { v: b, .. })) => a != b,
            _ => false,
        });

    let ends = |snapshot: &Snapshot| -> Vec<[Option<String>; 2]> {
        let fact = |index: usize, name: &str| {
            snapshot
                .text(&format!("run.{index}.{name}"))
                .map(str::to_owned)
        };
        (0..runs::count(snapshot))
            .map(|index| ["path", "local"].map(|name| fact(index, name)))
            .collect()
    };
    let others = ends(b);
    let opposite = |[path, local]: &[Option<String>; 2]| {
        path.is_some()
            && others
                .iter()
                .any(|[other, end]| other == path && end != local)
    };

    differs
        || (a.kernel.is_some() && b.kernel.is_some() && a.kernel != b.kernel)
        || ends(a).iter().any(opposite)
}
