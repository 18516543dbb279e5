//! Two studies side by side. A cell is marked where its runs show that it became worse or better.

use std::collections::BTreeSet;

use linerate_lab::http::compare::{ComparedCell, compare};
use linerate_model::http::{CellKey, Phase, Study};
use linerate_model::two_sample::{Judged, TRIALS_MIN, Verdict};
use serde_json::json;

use super::labels;
use super::numbers::{MISSING, grouped, known, moment, payload};
use super::tables::environment_numbers;
use crate::blocks::{Block, Document};
use crate::style::Style;
use crate::table::{Cell as Entry, Table};

/// Cells that differ by their connections alone.
type RowKey = (Phase, u64, Option<u32>);

/// Both studies as text in lines of at most 120 columns.
#[must_use]
pub fn comparison_text(before: &Study, after: &Study, style: Style) -> String {
    document(before, after).text(style)
}

/// Both studies as one HTML file without script.
#[must_use]
pub fn comparison_html(before: &Study, after: &Study) -> String {
    document(before, after).html()
}

fn document(before: &Study, after: &Study) -> Document {
    let title = Block::Title("Two studies side by side".to_owned());
    let lines = head(before, after).into_iter().map(Block::Remark);
    let tables = tables(before, after).into_iter().map(Block::Table);
    Document {
        name: "linerate http compare",
        blocks: std::iter::once(title).chain(lines).chain(tables).collect(),
    }
}

/// Both studies as one JSON object.
#[must_use]
pub fn comparison_json(before: &Study, after: &Study) -> String {
    let comparison = compare(before, after);
    let end =
        |study: &Study| json!({ "target": study.target, "started_unix_ms": study.started_unix_ms });
    let object = json!({
        "schema": "linerate.http-compare/1",
        "before": end(before),
        "after": end(after),
        "cells": comparison.cells,
        "notes": comparison.notes,
    });

    crate::pretty_json(&object)
}

fn head(before: &Study, after: &Study) -> Vec<String> {
    let line = |name: &str, study: &Study| {
        format!(
            "{name} {} of {}",
            study.target,
            moment(study.started_unix_ms)
        )
    };
    let mut lines = vec![line("before:", before), line("after: ", after)];
    lines.extend(compare(before, after).notes);

    lines
}

fn tables(before: &Study, after: &Study) -> Vec<Table> {
    let has = |study: &Study, key: CellKey| study.cells.iter().any(|cell| cell.key == key);
    let (both, alone): (Vec<ComparedCell>, Vec<ComparedCell>) = compare(before, after)
        .cells
        .into_iter()
        .partition(|cell| has(before, cell.key) && has(after, cell.key));
    let mut notes = vec![
        "*: worse or better beyond the noise of both studies, significant over all cells"
            .to_owned(),
    ];

    let is_short = |cell: &&ComparedCell| {
        cell.ok_per_s
            .as_ref()
            .is_some_and(|judged| judged.verdict == Verdict::TooFew)
    };
    let short = both.iter().filter(is_short).count();
    if short > 0 {
        notes.push(format!(
            "{short} cells have fewer than {TRIALS_MIN} runs on a side and no verdict"
        ));
    }

    if !alone.is_empty() {
        notes.push(format!(
            "{} cells are in one of the studies only",
            alone.len()
        ));
    }

    let mut tables = vec![
        matrix(
            &both,
            "C1",
            "2xx per second, after over before",
            |cell| cell.ok_per_s.as_ref(),
            notes,
        ),
        matrix(
            &both,
            "C2",
            "99th percentile of the latency, after over before",
            |cell| cell.p99.as_ref(),
            Vec::new(),
        ),
    ];
    tables.extend(hosts(before, after));
    tables
}

/// Ratios by payload and connections, a row for each phase and payload.
fn matrix(
    both: &[ComparedCell],
    id: &'static str,
    title: &str,
    judged: fn(&ComparedCell) -> Option<&Judged>,
    notes: Vec<String>,
) -> Table {
    let connections: BTreeSet<u32> = both.iter().map(|cell| cell.key.connections).collect();
    let row_of = |key: &CellKey| (key.phase, key.payload_bytes, key.rate_per_s);
    let rows: BTreeSet<RowKey> = both.iter().map(|cell| row_of(&cell.key)).collect();
    let rows: Vec<RowKey> = rows.into_iter().collect();
    let table = Table::of(id, title, &rows).text("cells", |(phase, bytes, rate)| {
        let rate = rate.map_or_else(String::new, |rate| {
            format!(" at {}/s", grouped(u64::from(rate)))
        });
        format!("{} {}{rate}", labels::phase(*phase), payload(*bytes))
    });

    let cell = |row: &RowKey, c: u32| {
        let is_it = |cell: &&ComparedCell| row_of(&cell.key) == *row && cell.key.connections == c;
        let cell = both.iter().rfind(is_it);
        cell.map_or_else(Entry::default, |cell| entry(judged(cell)))
    };
    let table = table.numbers(connections, |c| format!("c{c}"), cell);
    table.notes(notes).table()
}

fn entry(judged: Option<&Judged>) -> Entry {
    let is_marked =
        judged.is_some_and(|judged| matches!(judged.verdict, Verdict::Worse | Verdict::Better));
    Entry::marked(
        known(judged, |judged| format!("{:.3}", judged.estimate)),
        is_marked,
    )
}

/// What differs between the hosts of both; none without differences.
fn hosts(before: &Study, after: &Study) -> Option<Table> {
    let client = |study: &Study| Some(environment_numbers(&study.client));
    let server = |study: &Study| study.server.as_ref().map(environment_numbers);
    let mut rows = differing("client", client(before), client(after));
    rows.extend(differing("server", server(before), server(after)));

    let heads = ["end", "figure", "before", "after"];
    (!rows.is_empty())
        .then(|| Table::of_words("C3", "what is not the same on the hosts", heads, &rows))
}

type Numbers = Vec<(&'static str, String)>;

fn differing(end: &str, before: Option<Numbers>, after: Option<Numbers>) -> Vec<[String; 4]> {
    let row = |name: &str, before: String, after: String| {
        [end.to_owned(), name.to_owned(), before, after]
    };
    let (before, after) = match (before, after) {
        (Some(before), Some(after)) => (before, after),
        (None, None) => return Vec::new(),
        (before, after) => {
            let word = |numbers: Option<Numbers>| numbers.map_or(MISSING, |_| "known").to_owned();
            return vec![row("all", word(before), word(after))];
        }
    };
    let pairs = before
        .into_iter()
        .zip(after)
        .filter(|(before, after)| before != after);

    pairs
        .map(|((name, before), (_, after))| row(name, before, after))
        .collect()
}
