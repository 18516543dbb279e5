//! T4: how close each end came to its limits.

use std::collections::BTreeMap;

use linerate_document::table::{Cell, Table};
use linerate_model::http::{CellKey, CellRun, EndpointStats, Peak, Study};
use linerate_model::numbers::bytes;

use crate::report::numbers::{cell as cell_name, grouped, known, peak as peak_text, percent};

type Figure = fn(&EndpointStats) -> Option<Peak>;

/// Formatter of a value.
type Words = fn(Peak) -> String;

const RESOURCES: [(&str, Figure, Words); 7] = [
    ("descriptors", |side| side.fds, peak_text),
    ("local ports", |side| side.ports, peak_text),
    ("TIME_WAIT", |side| side.time_wait, peak_text),
    ("conntrack", |side| side.conntrack, peak_text),
    ("accept queue", |side| side.accept_queue, peak_text),
    ("group memory", |side| side.group_memory, memory),
    ("group tasks", |side| side.group_tasks, peak_text),
];
/// Share of a limit that is worth a mark.
const CLOSE: f64 = 0.9;
/// TCP knows no more states.
const STATES_MAX: usize = 13;

/// The largest of all runs, with the cell in which it was; none without any run.
pub(in crate::report) fn limits(study: &Study) -> Option<Table> {
    let client = ends(study, |run| Some(&run.client));
    let server = ends(study, |run| run.server.as_ref());
    let rows = RESOURCES
        .map(|(name, figure, words)| (name, words, top(&client, figure), top(&server, figure)));
    let cell = |top: Top<'_>| known(top, |(key, _)| cell_name(key));
    let title = "limits: largest value of all runs, and what it may reach";
    let table = Table::of("", title, &rows)
        .text("figure", |(name, ..)| *name)
        .number("client peak of limit", |(_, words, top, _)| {
            known(*top, |(_, peak)| words(peak))
        })
        .number("share", |(.., top, _)| share_of(*top))
        .text("in cell", |(.., top, _)| cell(*top))
        .number("server peak of limit", |(_, words, _, top)| {
            known(*top, |(_, peak)| words(peak))
        })
        .number("share", |(.., top)| share_of(*top))
        .text("in cell", |(.., top)| cell(*top))
        .notes(notes(&client, &server))
        .table();

    (!client.is_empty()).then_some(table)
}

fn notes(client: &[Found<'_>], server: &[Found<'_>]) -> Vec<String> {
    let mark = format!("*: {:.0} % of the limit or more", CLOSE * 100.0);
    let ends = [("client", client), ("server", server)];
    let states = ends.into_iter().filter_map(|(end, sides)| {
        let states = states(sides)?;
        Some(format!(
            "most sockets of the test by state, {end}: {states}"
        ))
    });

    std::iter::once(mark).chain(states).collect()
}

/// `established 1,024, time-wait 13`
fn states(sides: &[Found<'_>]) -> Option<String> {
    let mut most: BTreeMap<&str, u64> = BTreeMap::new();
    for (state, count) in sides
        .iter()
        .filter_map(|(_, side)| side.sockets_by_state.as_ref())
        .flatten()
    {
        let peak = most.entry(state).or_default();
        *peak = (*peak).max(*count);
    }

    let words: Vec<String> = most
        .into_iter()
        .take(STATES_MAX)
        .map(|(state, count)| format!("{state} {}", grouped(count)))
        .collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn memory(peak: Peak) -> String {
    let text = |value: u64| bytes(value as f64);
    match peak.limit {
        Some(limit) => format!("{} of {}", text(peak.peak), text(limit)),
        None => text(peak.peak),
    }
}

type Found<'a> = (&'a CellKey, &'a EndpointStats);

fn ends(study: &Study, end: fn(&CellRun) -> Option<&EndpointStats>) -> Vec<Found<'_>> {
    let runs = study.cells.iter().flat_map(|cell| &cell.runs);
    let loaded = runs.filter(|run| run.load.is_some());
    loaded
        .filter_map(|run| Some((&run.key, end(run)?)))
        .collect()
}

fn top<'a>(sides: &[Found<'a>], figure: Figure) -> Option<(&'a CellKey, Peak)> {
    let peaks = sides
        .iter()
        .filter_map(|(key, side)| Some((*key, figure(side)?)));
    // Without a limit all shares are 0, and the peaks decide.
    peaks.max_by(|(_, a), (_, b)| share(*a).total_cmp(&share(*b)).then(a.peak.cmp(&b.peak)))
}

fn share(peak: Peak) -> f64 {
    let limit = peak.limit.filter(|limit| *limit > 0);
    limit.map_or(0.0, |limit| peak.peak as f64 / limit as f64)
}

type Top<'a> = Option<(&'a CellKey, Peak)>;

fn share_of(top: Top<'_>) -> Cell {
    let part = top.filter(|(_, peak)| peak.limit.is_some_and(|limit| limit > 0));
    let share = part.map(|(_, peak)| share(peak));
    Cell::marked(
        known(share, percent),
        share.is_some_and(|share| share >= CLOSE),
    )
}
