//! Two studies side by side. What differs by less than either of them can tell is not called different.

use std::collections::BTreeMap;
use std::fmt::Write;

use linerate_model::http::{Cell, CellKey, Phase, Study};
use serde_json::json;

use crate::page::{self, escaped};

use super::figures::{MISSING, grouped, known, moment, payload};
use super::grid::finished;
use super::style::{Style, shortened};
use super::table::{Cell as Entry, Column, Table};
use super::tables::environment_figures;
use super::text::paragraph;
use super::words;

/// A figure of a cell in both studies.
struct Ratio {
    /// After over before; absent where one of them has none.
    ratio: Option<f64>,
    /// What counts as equal, as a share: the larger of both studies'.
    tolerance: Option<f64>,
}

impl Ratio {
    fn is_different(&self) -> bool {
        let change = self.ratio.zip(self.tolerance);
        change.is_some_and(|(ratio, tolerance)| (ratio - 1.0).abs() > tolerance)
    }
}

/// One cell that both studies have.
struct Pair {
    key: CellKey,
    throughput: Ratio,
    p99: Ratio,
}

/// Both studies as text in lines of at most 120 columns.
#[must_use]
pub fn comparison_text(before: &Study, after: &Study, style: Style) -> String {
    let mut out = String::new();
    for line in head(before, after) {
        paragraph(&mut out, &line, 0, style);
    }
    for table in tables(before, after) {
        let _ = write!(out, "\n{}", table.text(style));
    }
    out
}

/// Both studies as one HTML file without script.
#[must_use]
pub fn comparison_html(before: &Study, after: &Study) -> String {
    let mut out = page::begin("linerate http compare");
    out.push_str("<h1>Two studies side by side</h1>\n");
    for line in head(before, after) {
        let _ = writeln!(out, "<p>{}</p>", escaped(&shortened(&line)));
    }
    for table in tables(before, after) {
        table.html(&mut out);
    }
    out.push_str(page::END);
    out
}

/// Both studies as one JSON object.
#[must_use]
pub fn comparison_json(before: &Study, after: &Study) -> String {
    let ratio = |ratio: &Ratio| json!({ "ratio": ratio.ratio, "tolerance": ratio.tolerance, "is_different": ratio.is_different() });
    let cell = |pair: &Pair| json!({ "key": pair.key, "ok_per_s": ratio(&pair.throughput), "p99": ratio(&pair.p99) });
    let end = |study: &Study| json!({ "target": study.target, "started_unix_ms": study.started_unix_ms });
    let object = json!({
        "schema": "linerate.http-compare/1",
        "before": end(before),
        "after": end(after),
        "cells": pairs(before, after).iter().map(cell).collect::<Vec<_>>(),
    });
    let mut text = serde_json::to_string_pretty(&object).unwrap_or_default();
    text.push('\n');
    text
}

fn head(before: &Study, after: &Study) -> Vec<String> {
    let line = |name: &str, study: &Study| {
        let end = if study.is_complete {
            ""
        } else {
            ", did not come to its end"
        };
        format!("{name} {} of {}{end}", study.target, moment(study.started_unix_ms))
    };
    vec![line("before:", before), line("after: ", after)]
}

fn tables(before: &Study, after: &Study) -> Vec<Table> {
    let pairs = pairs(before, after);
    let matrix = |id, title: &str, figure: fn(&Pair) -> &Ratio, notes| matrix(&pairs, id, title, figure, notes);
    let mut tables = vec![
        matrix(
            "C1",
            "2xx per second, after over before",
            |pair| &pair.throughput,
            vec!["*: differs by more than both studies' own tolerance of this payload".to_owned()],
        ),
        matrix(
            "C2",
            "99th percentile of the latency, after over before",
            |pair| &pair.p99,
            vec![
                "*: differs by more than that tolerance and than the runs of either study do among themselves; not told \
                 where a study has one run"
                    .to_owned(),
            ],
        ),
    ];
    let alone = alone(before, after);
    if let Some(first) = tables.first_mut().filter(|_| alone > 0) {
        first
            .notes
            .push(format!("{alone} cells are in one of the studies only"));
    }
    tables.extend(hosts(before, after));
    tables
}

fn pairs(before: &Study, after: &Study) -> Vec<Pair> {
    let old: BTreeMap<CellKey, &Cell> = before.cells.iter().map(|cell| (cell.key, cell)).collect();
    let pair = |new: &Cell| {
        let old = old.get(&new.key)?;
        let tolerance = tolerance(before, &new.key).zip(tolerance(after, &new.key)).map(larger);
        let spreads = p99_spread(old).zip(p99_spread(new)).map(larger);
        Some(Pair {
            key: new.key,
            throughput: Ratio {
                ratio: ratio(old.median.ok_per_s, new.median.ok_per_s),
                tolerance,
            },
            p99: Ratio {
                ratio: ratio(ns(old.median.p99_ns), ns(new.median.p99_ns)),
                tolerance: tolerance.zip(spreads).map(larger),
            },
        })
    };
    let mut pairs: Vec<Pair> = after.cells.iter().filter_map(pair).collect();
    pairs.sort_by_key(|pair| pair.key);
    pairs
}

fn larger((a, b): (f64, f64)) -> f64 {
    a.max(b)
}

fn ns(ns: Option<u64>) -> Option<f64> {
    ns.map(|ns| ns as f64)
}

fn ratio(before: Option<f64>, after: Option<f64>) -> Option<f64> {
    let before = before.filter(|value| *value > 0.0)?;
    Some(after? / before)
}

/// What counts as equal for a payload's throughput.
fn tolerance(study: &Study, key: &CellKey) -> Option<f64> {
    let row = study.rows.iter().find(|row| row.payload_bytes == key.payload_bytes);
    row.map(|row| row.tolerance)
}

/// How far apart the runs of a cell lie: `(max − min) / median` of their 99th percentiles.
fn p99_spread(cell: &Cell) -> Option<f64> {
    let mut values: Vec<u64> = finished(cell)
        .filter_map(|run| Some(run.load.as_ref()?.latency.p99?.ns))
        .collect();
    values.sort_unstable();
    let (low, high) = (*values.first()?, *values.last()?);
    let middle = *values.get(values.len() / 2)?;
    (values.len() > 1 && middle > 0).then(|| (high - low) as f64 / middle as f64)
}

/// Ratios by payload and connections, a row for each phase and payload.
fn matrix(pairs: &[Pair], id: &'static str, title: &str, figure: fn(&Pair) -> &Ratio, notes: Vec<String>) -> Table {
    let mut connections: Vec<u32> = pairs.iter().map(|pair| pair.key.connections).collect();
    connections.sort_unstable();
    connections.dedup();
    let mut rows: BTreeMap<(Phase, u64, Option<u32>), BTreeMap<u32, &Ratio>> = BTreeMap::new();
    for pair in pairs {
        let key = (pair.key.phase, pair.key.payload_bytes, pair.key.rate_per_s);
        rows.entry(key).or_default().insert(pair.key.connections, figure(pair));
    }
    let row = |((phase, bytes, rate), ratios): ((Phase, u64, Option<u32>), BTreeMap<u32, &Ratio>)| {
        let rate = rate.map_or_else(String::new, |rate| format!(" at {}/s", grouped(u64::from(rate))));
        let name = format!("{} {}{rate}", words::phase(phase), payload(bytes));
        let cells = connections
            .iter()
            .map(|c| ratios.get(c).map_or_else(Entry::default, |ratio| entry(ratio)));
        std::iter::once(name.into()).chain(cells).collect()
    };
    Table {
        id,
        title: title.to_owned(),
        columns: std::iter::once(Column::Words("cells"))
            .chain(connections.iter().map(|c| Column::Figures(format!("c{c}"))))
            .collect(),
        rows: rows.into_iter().map(row).collect(),
        notes,
    }
}

fn entry(ratio: &Ratio) -> Entry {
    Entry::marked(known(ratio.ratio, |ratio| format!("{ratio:.3}")), ratio.is_different())
}

/// Cells that only one of the studies has.
fn alone(before: &Study, after: &Study) -> usize {
    let keys = |study: &Study| {
        study
            .cells
            .iter()
            .map(|cell| cell.key)
            .collect::<std::collections::BTreeSet<_>>()
    };
    keys(before).symmetric_difference(&keys(after)).count()
}

/// What differs between the hosts of both; none without differences.
fn hosts(before: &Study, after: &Study) -> Option<Table> {
    let mut rows = differing(
        "client",
        Some(environment_figures(&before.client)),
        Some(environment_figures(&after.client)),
    );
    let server = |study: &Study| study.server.as_ref().map(environment_figures);
    rows.extend(differing("server", server(before), server(after)));
    (!rows.is_empty()).then(|| Table {
        id: "C3",
        title: "what is not the same on the hosts".to_owned(),
        columns: ["end", "figure", "before", "after"].map(Column::Words).into(),
        rows,
        notes: Vec::new(),
    })
}

type Figures = Vec<(&'static str, String)>;

fn differing(end: &'static str, before: Option<Figures>, after: Option<Figures>) -> Vec<Vec<Entry>> {
    let (before, after) = match (before, after) {
        (Some(before), Some(after)) => (before, after),
        (None, None) => return Vec::new(),
        (before, after) => {
            let word = |figures: Option<Figures>| if figures.is_some() { "known" } else { MISSING };
            return vec![vec![end.into(), "all".into(), word(before).into(), word(after).into()]];
        }
    };
    let pairs = before.into_iter().zip(after).filter(|(before, after)| before != after);
    pairs
        .map(|((name, before), (_, after))| vec![end.into(), name.into(), before.into(), after.into()])
        .collect()
}
