//! Hosts and pairs without a result: for the first line of a report, with a next step for each.

use linerate_model::fleet::{Cell, CellOutcome, NotRun, NotRunReason};

use super::not_run::places;
use linerate_document::number::counted;

/// Cells without a result, by what prevented it.
pub(super) struct Missing {
    /// Cells of the run.
    all: usize,
    /// Cells without a result.
    count: usize,
    /// Hosts without a control connection; hosts and pairs whose tests could not connect.
    kinds: [(&'static str, Vec<String>); 2],
}

impl Missing {
    /// `None`: all cells have a result.
    pub(super) fn of(cells: &[Cell]) -> Option<Self> {
        let all: Vec<&Cell> = cells.iter().collect();
        let without = |is_it: fn(&NotRun) -> bool| {
            let is_it = |cell: &&&Cell| matches!(&cell.outcome, CellOutcome::NotRun(not_run) if is_it(not_run));
            all.iter().filter(is_it).copied().collect::<Vec<&Cell>>()
        };
        let named = |is_it| both_ways(places(&without(is_it), &all));
        let missing = Self {
            all: cells.len(),
            count: without(|_| true).len(),
            kinds: [
                (
                    "unreachable",
                    named(|not_run| not_run.reason == NotRunReason::Unreachable),
                ),
                ("blocked", named(is_blocked)),
            ],
        };

        (missing.count > 0).then_some(missing)
    }

    /// `31 of 56 cells without a result: h4 unreachable, h1 to h2 blocked`
    pub(super) fn summary(&self) -> String {
        let named = self.kinds.iter().filter(|(_, names)| !names.is_empty());
        let named: Vec<String> = named
            .map(|(word, names)| format!("{} {word}", names.join(", ")))
            .collect();
        let named = named.join("; ");

        let count = format!(
            "{} of {} without a result",
            self.count,
            counted(self.all, "cell")
        );
        match (named.is_empty(), self.count == self.all) {
            (true, _) => count,
            // The line has that none was measured.
            (_, true) => named,
            _ => format!("{count}: {named}"),
        }
    }

    /// One line of a terminal for each host or pair.
    pub(super) fn short_steps(&self) -> Vec<String> {
        let [(_, unreachable), (_, blocked)] = &self.kinds;
        let log_in = |name: &String| {
            let first = hosts_of(name).next().unwrap_or(name);
            format!(
                "{name} unreachable: `ssh {first} true` has to work; then `linerate fleet check`"
            )
        };
        let open =
            |name: &String| format!("{name} blocked: open the ports, TCP and UDP 5201 and above");
        let unreachable = unreachable.iter().filter(|name| !is_rest(name));
        let blocked = blocked.iter().filter(|name| !is_rest(name));
        unreachable.map(log_in).chain(blocked.map(open)).collect()
    }

    /// A paragraph for each host or pair.
    pub(super) fn steps(&self) -> Vec<String> {
        let [(_, unreachable), (_, blocked)] = &self.kinds;
        let unreachable = unreachable.iter().filter(|name| !is_rest(name));
        let blocked = blocked.iter().filter(|name| !is_rest(name));
        let rest = self.kinds.iter().filter_map(|(word, names)| {
            let rest = names.iter().find(|name| is_rest(name))?;
            Some(format!("{rest} {word}: `linerate fleet check` lists them"))
        });

        unreachable
            .map(|name| log_in(name))
            .chain(blocked.map(|name| {
                format!(
                    "{name} blocked: open the ports of the tests, TCP and UDP 5201 and above, from \
                     source to sink; `linerate fleet check` names what is closed"
                )
            }))
            .chain(rest)
            .collect()
    }
}

/// The host, or both of a pair: `h1` and `h2` of `h1 to h2`.
fn hosts_of(name: &str) -> impl Iterator<Item = &str> {
    name.split(' ').filter(|word| !["to", "and"].contains(word))
}

/// Next step of a host, or of both hosts of a pair, without a control connection.
fn log_in(name: &str) -> String {
    let logins: Vec<String> = hosts_of(name)
        .map(|host| format!("`ssh {host} true`"))
        .collect();
    let have = if logins.len() == 1 { "has" } else { "have" };
    format!(
        "{name} unreachable: {} {have} to work without a prompt (over a bus: `linerate fleet \
         agent` has to run there); then `linerate fleet check`",
        logins.join(" and ")
    )
}

/// `12 more`, of a long list.
fn is_rest(name: &str) -> bool {
    name.ends_with(" more")
}

/// Pairs of both directions by one name: `h1 and h2`.
fn both_ways(names: Vec<String>) -> Vec<String> {
    let opposite = |name: &str| {
        name.split_once(" to ")
            .map(|(source, sink)| format!("{sink} to {source}"))
    };
    let mut merged: Vec<String> = Vec::new();

    for name in names {
        match opposite(&name)
            .and_then(|opposite| merged.iter().position(|known| *known == opposite))
        {
            Some(place) => merged[place] = merged[place].replacen(" to ", " and ", 1),
            None => merged.push(name),
        }
    }

    merged
}

/// The test of a pair could not connect.
fn is_blocked(not_run: &NotRun) -> bool {
    const MESSAGES: [&str; 4] = [
        "unable to connect",
        "connection refused",
        "timed out",
        "no route to host",
    ];

    let detail = not_run
        .detail
        .as_deref()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let is_of_test = matches!(not_run.reason, NotRunReason::Failed | NotRunReason::Refused);
    is_of_test && MESSAGES.iter().any(|message| detail.contains(message))
}
