//! Cells without a result, by their reasons.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::fleet::{Cell, CellOutcome, HostId, NotRun, NotRunReason};

use super::matrix::by_name;
use linerate_document::number::counted;

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
        let (reason, count) = (text(*reason, detail), counted(without.len(), "cell"));
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
        let (source, sink) = (&task.source, &task.sink);
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
