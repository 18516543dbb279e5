//! Cells without a result, by their reasons.

use std::collections::{BTreeMap, BTreeSet};

use super::matrix::by_name;
use linerate_document::number::counted;
use linerate_model::fleet::{Cell, CellOutcome, HostId, NotRun, NotRunReason};

/// Pairs of one reason that are named.
const PAIRS_SHOWN: usize = 4;
/// Hosts of one reason that are named.
const HOSTS_SHOWN: usize = 12;
/// Reasons that are listed.
const REASONS_SHOWN: usize = 12;

/// Why a task has no result, in words: `a host refused it (no free port)`.
pub(super) fn reason(not_run: &NotRun) -> String {
    let detail = not_run.detail.as_deref().unwrap_or_default();
    text(not_run.reason, detail)
}

fn text(reason: NotRunReason, detail: &str) -> String {
    match (word(reason), detail) {
        (word, "") => word.to_owned(),
        (word, detail) => format!("{word} ({detail})"),
    }
}

const fn word(reason: NotRunReason) -> &'static str {
    match reason {
        NotRunReason::Unreachable => "no control connection",
        NotRunReason::PeerLost => "the other host left during the test",
        NotRunReason::SlowControl => "a host did not confirm its part in time",
        NotRunReason::Late => "the start had passed when the command arrived",
        NotRunReason::Lease => "the lease of a host expired",
        NotRunReason::Deadline => "the test did not end before its deadline",
        NotRunReason::Refused => "a host refused it",
        NotRunReason::Failed => "failed",
        NotRunReason::Cancelled => "cancelled",
        NotRunReason::Budget => "the time of the run had passed",
    }
}

/// One line for each reason: `// no control connection: h8 (14 cells)`.
pub(super) fn lines(cells: &[&Cell]) -> Vec<String> {
    let mut reasons: BTreeMap<(NotRunReason, &str), Vec<&Cell>> = BTreeMap::new();
    for cell in cells {
        if let CellOutcome::NotRun(not_run) = &cell.outcome {
            let detail = not_run.detail.as_deref().unwrap_or_default();
            let of_reason = reasons.entry((not_run.reason, detail)).or_default();
            of_reason.push(cell);
        }
    }

    let mut lines = Vec::new();
    for ((reason, detail), without) in reasons.iter().take(REASONS_SHOWN) {
        let mut places = places(without, cells);
        let more = places.more();
        places.names.extend(more);
        let reason = text(*reason, detail);
        let count = counted(without.len(), "cell");
        lines.push(format!(
            "// {reason}: {} ({count})",
            places.names.join(", ")
        ));
    }

    let hidden = reasons.len() - lines.len();
    if hidden > 0 {
        lines.push(format!("// {}", counted(hidden, "other reason")));
    }

    lines
}

/// Hosts and pairs by their names.
pub(super) struct Places {
    pub names: Vec<String>,
    hidden: usize,
}

impl Places {
    /// `12 more`, of a long list.
    pub(super) fn more(&self) -> Option<String> {
        (self.hidden > 0).then(|| format!("{} more", self.hidden))
    }
}

/// Hosts none of whose cells with several others has a result, and the pairs of the others.
pub(super) fn places(without: &[&Cell], all: &[&Cell]) -> Places {
    let mut with: BTreeSet<&HostId> = BTreeSet::new();
    for Cell { task, .. } in all.iter().filter(|cell| cell.measurement().is_some()) {
        with.extend([&task.source, &task.sink]);
    }

    let mut partners: BTreeMap<&HostId, BTreeSet<&HostId>> = BTreeMap::new();
    for Cell { task, .. } in without {
        let source = &task.source;
        let sink = &task.sink;
        partners.entry(source).or_default().insert(sink);
        partners.entry(sink).or_default().insert(source);
    }
    partners.retain(|host, others| others.len() > 1 && !with.contains(host));
    let mut hosts: Vec<&HostId> = partners.into_keys().collect();
    hosts.sort_by(|a, b| by_name(a.as_str(), b.as_str()));

    let mut pairs: BTreeSet<(&HostId, &HostId)> = BTreeSet::new();
    for Cell { task, .. } in without {
        if !hosts.contains(&&task.source) && !hosts.contains(&&task.sink) {
            pairs.insert((&task.source, &task.sink));
        }
    }

    let mut names = Vec::new();
    for host in hosts.iter().take(HOSTS_SHOWN) {
        names.push(host.to_string());
    }
    for (source, sink) in pairs.iter().take(PAIRS_SHOWN) {
        names.push(format!("{source} to {sink}"));
    }

    let hidden = hosts.len() + pairs.len() - names.len();
    Places { names, hidden }
}

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
        let mut without = 0;
        let mut unreachable = Vec::new();
        let mut blocked = Vec::new();
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
