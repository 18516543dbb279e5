//! Groups of hosts and of other groups.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// Most groups of an inventory.
pub(super) const GROUPS_MAX: usize = 4096;

/// A group.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Group {
    #[serde(default)]
    pub(super) hosts: Vec<String>,
    #[serde(default)]
    pub(super) children: Vec<String>,
}

/// Groups by name.
#[derive(Debug, Default)]
pub(super) struct Groups(pub(super) BTreeMap<String, Group>);

impl Groups {
    /// All groups of each host, those around its own included.
    pub(super) fn of_hosts(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut of_hosts: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for name in self.0.keys() {
            for host in self
                .within(name)
                .filter_map(|group| self.0.get(group))
                .flat_map(|group| &group.hosts)
            {
                of_hosts.entry(host).or_default().insert(name);
            }
        }

        of_hosts
    }

    /// The group and all groups in it, each once.
    fn within<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let mut seen = BTreeSet::from([name]);
        let mut open = vec![name];
        while let Some(children) = open
            .pop()
            .map(|group| self.0.get(group).map(|group| &group.children))
        {
            open.extend(
                children
                    .into_iter()
                    .flatten()
                    .map(String::as_str)
                    // Groups may contain each other, so each is visited once.
                    .filter(|child| seen.insert(child)),
            );
        }

        seen.into_iter()
    }
}
