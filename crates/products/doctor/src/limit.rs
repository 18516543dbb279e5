//! Limits of a test: the names of verdicts, the rules that explain each, and the measurement that
//! distinguishes it from others.

use std::sync::LazyLock;

use crate::table::{Columns, rows};

pub(crate) const CONFIGURED_RATE: &str = "configured-rate";
pub(crate) const QUOTA: &str = "cpu-quota";
pub(crate) const STEAL: &str = "cpu-steal";
pub(crate) const RECEIVER_WINDOW: &str = "receiver-window";
pub(crate) const SENDER_WINDOW: &str = "sender-window";
pub(crate) const OTHER_PROGRAMS: &str = "other-programs";
pub(crate) const OFFLOAD: &str = "offload";
pub(crate) const HOST_CPU: &str = "host-cpu";
pub(crate) const SENDER_CPU: &str = "sender-cpu";
pub(crate) const RECEIVER_CPU: &str = "receiver-cpu-app";
pub(crate) const RECEIVER_SOFTIRQ: &str = "receiver-cpu-softirq";
pub(crate) const RECEIVER_KERNEL: &str = "receiver-kernel";
pub(crate) const APPLICATION: &str = "application-limited";
pub(crate) const FIREWALL: &str = "firewall";
pub(crate) const PATH_RATE: &str = "path-rate";
pub(crate) const PATH: &str = "path";
pub(crate) const PATH_OR_RECEIVER: &str = "path-or-receiver";
pub(crate) const NIC_QUEUE_RX: &str = "nic-queue-rx";
pub(crate) const SENDER_QUEUE: &str = "nic-queue-tx";
pub(crate) const REORDERING: &str = "reordering";
pub(crate) const LINE_RATE: &str = "line-rate";

/// Measurement that distinguishes limits that have no measurement of their own.
pub(crate) const LONGER: &str = "measure for longer (-t 30)";

/// One line of `limits.txt`.
#[derive(Debug)]
pub(crate) struct Limit {
    pub name: &'static str,
    /// The limit in words.
    words: &'static str,
    /// Sentence that concludes it.
    pub sentence: &'static str,
    /// Rules that explain it, the strongest first.
    pub rules: Vec<&'static str>,
    /// Its own counters or settings prove it; the others are concluded by elimination.
    pub is_certain: bool,
    /// It holds during slow start as well.
    pub holds_in_slow_start: bool,
    /// Part of a host in the test, `sender` or `receiver`, whose findings explain it.
    pub part: Option<&'static str>,
    /// The measurement that shows whether this is the limit.
    pub experiment: &'static str,
}

/// In the order in which limits explain: the first that was found wins, the next is runner-up.
pub(crate) static ALL: LazyLock<Vec<Limit>> =
    LazyLock::new(|| rows(include_str!("limits.txt"), Limit::new));

impl Limit {
    fn new(mut columns: Columns) -> Option<Self> {
        let mut next = || columns.next();
        let name = next()?;
        let words = next()?;
        let sentence = next()?;
        let rules = next()?;
        let flags = next()?;

        Some(Self {
            name,
            words,
            sentence,
            rules: rules.split(' ').collect(),
            is_certain: flags.contains("certain"),
            holds_in_slow_start: flags.contains("starting"),
            part: ["sender", "receiver"]
                .into_iter()
                .find(|part| flags.contains(part)),
            experiment: next().filter(|text| *text != "-").unwrap_or(LONGER),
        })
    }

    /// `None` for a verdict that names no limit.
    pub(crate) fn of(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|limit| limit.name == name)
    }
}

/// The limit that a verdict names, in words; a verdict that names none by its own name.
pub(crate) fn limit_name(verdict: &str) -> String {
    Limit::of(verdict).map_or_else(|| verdict.replace('-', " "), |limit| limit.words.to_owned())
}

/// The sentence of a verdict; empty for one that names no limit.
pub(crate) fn limit_sentence(verdict: &str) -> &'static str {
    Limit::of(verdict).map_or("", |limit| limit.sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_its_columns() {
        let lines = include_str!("limits.txt").lines();
        let rows = lines.filter(|line| !line.starts_with('#')).count();
        assert_eq!(ALL.len(), rows);
        assert!(ALL.iter().all(|limit| !limit.sentence.is_empty()));
    }
}
