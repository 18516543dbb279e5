//! T4: how close each end came to its limits.

use std::collections::BTreeMap;

use linerate_model::http::{CellKey, EndpointStats, Peak, Study};

use crate::document::table::{Cell, Column, Table, numbers};
use crate::http::numbers::{cell as cell_name, grouped, known, peak as peak_text, percent};
use crate::numbers::bytes;

type Figure = fn(&EndpointStats) -> Option<Peak>;

/// How a value is written.
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
pub(in crate::http) fn limits(study: &Study) -> Option<Table> {
    let client = sides(study, false);
    let server = sides(study, true);
    let heads = ["client peak of limit", "share"];
    (!client.is_empty()).then(|| Table {
        id: "T4",
        title: "limits: largest value of all runs, and what it may reach".to_owned(),
        columns: std::iter::once(Column::Text("figure"))
            .chain(numbers(heads))
            .chain([Column::Text("in cell")])
            .chain(numbers(["server peak of limit", "share"]))
            .chain([Column::Text("in cell")])
            .collect(),
        rows: RESOURCES
            .iter()
            .map(|(name, figure, words)| row(name, *words, top(&client, *figure), top(&server, *figure)))
            .collect(),
        notes: notes(&client, &server),
    })
}

fn notes(client: &[Found<'_>], server: &[Found<'_>]) -> Vec<String> {
    let mark = format!("*: {:.0} % of the limit or more", CLOSE * 100.0);
    let ends = [("client", client), ("server", server)];
    let states = ends.into_iter().filter_map(|(end, sides)| {
        let states = states(sides)?;
        Some(format!("most sockets of the test by state, {end}: {states}"))
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

fn sides(study: &Study, is_server: bool) -> Vec<Found<'_>> {
    let runs = study.cells.iter().flat_map(|cell| &cell.runs);
    let loaded = runs.filter(|run| run.load.is_some());
    loaded
        .filter_map(|run| {
            let side = if is_server { run.server.as_ref()? } else { &run.client };
            Some((&run.key, side))
        })
        .collect()
}

fn top<'a>(sides: &[Found<'a>], figure: Figure) -> Option<(&'a CellKey, Peak)> {
    let peaks = sides.iter().filter_map(|(key, side)| Some((*key, figure(side)?)));
    peaks.max_by(|(_, a), (_, b)| share(*a).total_cmp(&share(*b)).then(a.peak.cmp(&b.peak)))
}

fn share(peak: Peak) -> f64 {
    let limit = peak.limit.filter(|limit| *limit > 0);
    limit.map_or(0.0, |limit| peak.peak as f64 / limit as f64)
}

type Top<'a> = Option<(&'a CellKey, Peak)>;

fn row(name: &'static str, words: Words, client: Top<'_>, server: Top<'_>) -> Vec<Cell> {
    let end = |top: Top<'_>| {
        let part = top.filter(|(_, peak)| peak.limit.is_some_and(|limit| limit > 0));
        let is_close = part.is_some_and(|(_, peak)| share(peak) >= CLOSE);
        [
            known(top, |(_, peak)| words(peak)).into(),
            Cell::marked(known(part, |(_, peak)| percent(share(peak))), is_close),
            known(top, |(key, _)| cell_name(key)).into(),
        ]
    };
    std::iter::once(name.into())
        .chain(end(client))
        .chain(end(server))
        .collect()
}
