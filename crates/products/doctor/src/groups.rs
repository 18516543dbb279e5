//! Facts that separate two groups of hosts.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::snapshot::Snapshot;

use crate::diff::{impact, normalised};

/// Facts that are listed.
const SHOWN_MAX: usize = 10;
/// Part of the hosts that have the value of their group, at least.
const PURITY_MIN: f64 = 0.8;

/// A fact with the usual value of each group.
struct Separation {
    key: String,
    fast: String,
    slow: String,
    /// Part of the hosts that have the value of their group.
    purity: f64,
    impact: u8,
}

/// Facts that most hosts of each group share and that differ between the groups, those with the
/// largest effect on the rate first, as statements; then how many do not. Empty where a group has
/// no facts.
pub fn separating(fast: &[Snapshot], slow: &[Snapshot]) -> Vec<String> {
    if fast.is_empty() || slow.is_empty() {
        return Vec::new();
    }

    let fast = values(fast);
    let slow = values(slow);
    let keys: BTreeSet<&String> = fast.keys().filter(|key| slow.contains_key(*key)).collect();
    let of_key = |key: &&String| separation(key, fast.get(*key)?, slow.get(*key)?);
    let mut found: Vec<Separation> = keys.iter().filter_map(of_key).collect();
    let weight = |of: &Separation| of.purity * f64::from(of.impact);
    found.sort_by(|a, b| {
        weight(b)
            .total_cmp(&weight(a))
            .then_with(|| a.key.cmp(&b.key))
    });

    if found.is_empty() {
        return vec![format!("none of {} facts separates them", keys.len())];
    }

    let others = keys.len() - found.len();
    let text = |of: &Separation| {
        format!(
            "{}: {} on the faster, {} on the slower",
            of.key, of.fast, of.slow
        )
    };
    let mut lines: Vec<String> = found.iter().take(SHOWN_MAX).map(text).collect();
    let more = found.len() - lines.len();
    let more = if more > 0 {
        format!("{more} other facts separate them as well, ")
    } else {
        String::new()
    };
    lines.push(format!("{more}{others} facts do not separate them"));

    lines
}

/// The values of each fact, one for each host that has it.
fn values(hosts: &[Snapshot]) -> BTreeMap<String, Vec<String>> {
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (key, value) in hosts.iter().flat_map(normalised) {
        let words: Vec<String> = value
            .to_string()
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        values.entry(key).or_default().push(words.join(" "));
    }

    values
}

fn separation(key: &str, fast: &[String], slow: &[String]) -> Option<Separation> {
    let ((fast_value, fast_count), (slow_value, slow_count)) = (usual(fast)?, usual(slow)?);
    let purity = (fast_count + slow_count) as f64 / (fast.len() + slow.len()) as f64;
    (fast_value != slow_value && purity >= PURITY_MIN).then(|| Separation {
        key: key.to_owned(),
        fast: fast_value.to_owned(),
        slow: slow_value.to_owned(),
        purity,
        impact: impact(key).0,
    })
}

/// The most frequent value and how many hosts have it.
fn usual(values: &[String]) -> Option<(&str, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    values
        .iter()
        .for_each(|value| *counts.entry(value).or_default() += 1);
    counts.into_iter().max_by_key(|(_, count)| *count)
}

#[cfg(test)]
mod tests {
    use linerate_model::snapshot::Source;

    use super::*;

    fn host(name: &str, facts: &[(&str, &str)]) -> Snapshot {
        let mut snapshot = Snapshot::new(name, Source::Live);
        snapshot.set("nic.eth0.drv.bus", name, "test");
        facts
            .iter()
            .for_each(|(key, value)| snapshot.set(*key, *value, "test"));
        snapshot
    }

    /// Kernel, MTU and number of queues of a host.
    fn like(name: &str, kernel: &str, mtu: &str, queues: &str) -> Snapshot {
        let facts = [
            ("host.kernel", kernel),
            ("nic.eth0.net.mtu", mtu),
            ("nic.eth0.chan.combined.cur", queues),
        ];
        host(
            name,
            &[
                &facts[..],
                &[("cpu.model", "same"), ("limits.nofile", name)],
            ]
            .concat(),
        )
    }

    #[test]
    fn facts_that_differ_between_the_groups_are_listed_by_their_effect() {
        let fast = [
            like("h1", "6.5", "9000", "28"),
            like("h3", "6.5", "9000", "28"),
        ];
        let slow = [
            like("h2", "6.1", "1500", "28"),
            like("h4", "6.1", "1500", "28"),
            like("h5", "6.1", "1500", "28"),
        ];

        let expected = [
            "nic.*.net.mtu: 9000 on the faster, 1500 on the slower",
            "host.kernel: 6.5 on the faster, 6.1 on the slower",
            "3 facts do not separate them",
        ];
        assert_eq!(separating(&fast, &slow), expected);
    }

    #[test]
    fn one_exception_among_many_hosts_is_allowed_and_no_separation_is_an_answer() {
        let hosts = |count: u8, mtu: &str| {
            (0..count)
                .map(|at| like(&format!("{mtu}{at}"), "6.1", mtu, "8"))
                .collect::<Vec<_>>()
        };
        let (fast, mut slow) = (hosts(6, "9000"), hosts(4, "1500"));
        slow[0] = like("x", "6.1", "9000", "8");
        assert_eq!(
            separating(&fast, &slow)[0],
            "nic.*.net.mtu: 9000 on the faster, 1500 on the slower"
        );
        slow[1] = like("y", "6.1", "9000", "8");
        slow[2] = like("z", "6.1", "9000", "8");
        assert_eq!(separating(&fast, &slow), ["none of 5 facts separates them"]);
        assert_eq!(separating(&fast, &[]), [""; 0]);
    }
}
