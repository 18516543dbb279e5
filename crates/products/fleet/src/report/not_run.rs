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
    let detail = not_run
        .detail
        .as_ref()
        .map_or_else(String::new, |detail| format!(" ({detail})"));
    format!("{}{detail}", word(not_run.reason))
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
        NotRunReason::Budget => "the time of the run was over",
    }
}

/// One line for each reason: `// no control connection: h8 (14 cells)`.
pub(super) fn lines(cells: &[&Cell]) -> Vec<String> {
    let mut reasons: BTreeMap<(NotRunReason, &str), Vec<&Cell>> = BTreeMap::new();
    for cell in cells {
        if let CellOutcome::NotRun(not_run) = &cell.outcome {
            let detail = not_run.detail.as_deref().unwrap_or_default();
            reasons
                .entry((not_run.reason, detail))
                .or_default()
                .push(cell);
        }
    }

    let hidden = reasons.len().saturating_sub(REASONS_SHOWN);
    let line = |((reason, detail), without): ((NotRunReason, &str), Vec<&Cell>)| {
        let detail = if detail.is_empty() {
            String::new()
        } else {
            format!(" ({detail})")
        };
        let count = counted(without.len(), "cell");
        format!(
            "// {}{detail}: {} ({count})",
            word(reason),
            places(&without, cells).join(", ")
        )
    };
    let mut lines: Vec<String> = reasons.into_iter().take(REASONS_SHOWN).map(line).collect();

    if hidden > 0 {
        lines.push(format!("// {}", counted(hidden, "other reason")));
    }

    lines
}

/// Hosts none of whose cells with several others has a result, and the pairs of the others.
pub(super) fn places<'a>(without: &[&'a Cell], all: &[&'a Cell]) -> Vec<String> {
    let with: BTreeSet<&HostId> = all
        .iter()
        .filter(|cell| cell.measurement().is_some())
        .flat_map(|c| ends(c))
        .collect();
    let mut partners: BTreeMap<&HostId, BTreeSet<&HostId>> = BTreeMap::new();

    for [source, sink] in without.iter().map(|cell| ends(cell)) {
        partners.entry(source).or_default().insert(sink);
        partners.entry(sink).or_default().insert(source);
    }

    let are_many = |(host, others): (&'a HostId, BTreeSet<&HostId>)| {
        (others.len() > 1 && !with.contains(host)).then_some(host)
    };
    let mut hosts: Vec<&HostId> = partners.into_iter().filter_map(are_many).collect();
    hosts.sort_by(|a, b| by_name(a.as_str(), b.as_str()));

    let pairs: BTreeSet<(&HostId, &HostId)> = without
        .iter()
        .map(|cell| (&cell.task.source, &cell.task.sink))
        .filter(|(source, sink)| !hosts.contains(source) && !hosts.contains(sink))
        .collect();
    let named = pairs
        .iter()
        .take(PAIRS_SHOWN)
        .map(|(source, sink)| format!("{source} to {sink}"));

    let mut names: Vec<String> = hosts
        .iter()
        .take(HOSTS_SHOWN)
        .map(ToString::to_string)
        .chain(named)
        .collect();
    let hidden = hosts.len().saturating_sub(HOSTS_SHOWN) + pairs.len().saturating_sub(PAIRS_SHOWN);
    if hidden > 0 {
        names.push(format!("{hidden} more"));
    }

    names
}

const fn ends(cell: &Cell) -> [&HostId; 2] {
    [&cell.task.source, &cell.task.sink]
}
