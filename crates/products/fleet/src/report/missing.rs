//! Hosts and pairs without a result: for the first line of a report, with a next step for each.

use linerate_model::fleet::{Cell, CellOutcome, NotRun, NotRunReason};

use super::not_run::{Places, places};
use linerate_document::number::counted;

/// Cells without a result, by what prevented it.
pub(super) struct Missing {
    /// Cells of the run.
    all: usize,
    /// Cells without a result.
    count: usize,
    /// Hosts without a control connection.
    unreachable: Places,
    /// Hosts and pairs whose tests could not connect.
    blocked: Places,
}

impl Missing {
    /// `None`: all cells have a result.
    pub(super) fn of(cells: &[Cell]) -> Option<Self> {
        let (mut without, mut unreachable, mut blocked) = (0, Vec::new(), Vec::new());
        for cell in cells {
            let CellOutcome::NotRun(not_run) = &cell.outcome else {
                continue;
            };
            without += 1;
            if not_run.reason == NotRunReason::Unreachable {
                unreachable.push(cell);
            } else if is_blocked(not_run) {
                blocked.push(cell);
            }
        }

        let all: Vec<&Cell> = cells.iter().collect();
        (without > 0).then(|| Self {
            all: all.len(),
            count: without,
            unreachable: both_ways(places(&unreachable, &all)),
            blocked: both_ways(places(&blocked, &all)),
        })
    }

    /// `31 of 56 cells without a result: h4 unreachable, h1 to h2 blocked`
    pub(super) fn summary(&self) -> String {
        let mut named = Vec::new();
        for (word, places) in self.kinds() {
            let mut names = places.names.clone();
            names.extend(places.more());
            if !names.is_empty() {
                named.push(format!("{} {word}", names.join(", ")));
            }
        }
        let named = named.join("; ");

        let all = counted(self.all, "cell");
        let count = format!("{} of {all} without a result", self.count);
        match named.is_empty() {
            true => count,
            // The line has that none was measured.
            false if self.count == self.all => named,
            false => format!("{count}: {named}"),
        }
    }

    fn kinds(&self) -> [(&'static str, &Places); 2] {
        [
            ("unreachable", &self.unreachable),
            ("blocked", &self.blocked),
        ]
    }

    /// One line of a terminal for each host or pair.
    pub(super) fn short_steps(&self) -> Vec<String> {
        let mut steps = Vec::new();
        for name in &self.unreachable.names {
            let first = hosts_of(name).next().unwrap_or(name);
            steps.push(format!(
                "{name} unreachable: `ssh {first} true` has to work; then `linerate fleet check`"
            ));
        }
        for name in &self.blocked.names {
            steps.push(format!(
                "{name} blocked: open the ports, TCP and UDP 5201 and above"
            ));
        }

        steps
    }

    /// A paragraph for each host or pair.
    pub(super) fn steps(&self) -> Vec<String> {
        let mut steps = Vec::new();
        for name in &self.unreachable.names {
            steps.push(log_in(name));
        }
        for name in &self.blocked.names {
            steps.push(format!(
                "{name} blocked: open the ports of the tests, TCP and UDP 5201 and above, from \
                 source to sink; `linerate fleet check` names what is closed"
            ));
        }
        for (word, places) in self.kinds() {
            if let Some(more) = places.more() {
                steps.push(format!("{more} {word}: `linerate fleet check` lists them"));
            }
        }

        steps
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

/// Pairs of both directions by one name: `h1 and h2`.
fn both_ways(mut places: Places) -> Places {
    let mut merged: Vec<String> = Vec::new();
    for name in places.names {
        let mut known = merged.iter_mut();
        let opposite = name
            .split_once(" to ")
            .map(|(source, sink)| format!("{sink} to {source}"));
        match known.find(|known| Some(&**known) == opposite.as_ref()) {
            Some(known) => *known = known.replacen(" to ", " and ", 1),
            None => merged.push(name),
        }
    }

    places.names = merged;
    places
}

/// The test of a pair could not connect.
fn is_blocked(not_run: &NotRun) -> bool {
    const MESSAGES: [&str; 4] = [
        "unable to connect",
        "connection refused",
        "timed out",
        "no route to host",
    ];

    let is_of_test = matches!(not_run.reason, NotRunReason::Failed | NotRunReason::Refused);
    let detail = not_run.detail.as_deref().unwrap_or_default();
    let detail = detail.to_ascii_lowercase();
    is_of_test && MESSAGES.iter().any(|message| detail.contains(message))
}
