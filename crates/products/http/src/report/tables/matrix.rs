//! Payloads by connections.

use std::collections::BTreeSet;

use linerate_document::heat::{HeatCell, HeatMap, HeatRow};
use linerate_document::table::{Cell, Table};
use linerate_model::http::{self as model, Row, Study, VerdictClass};
use linerate_model::words::joined;

use crate::report::grid::{Grid, quantile_of, runs_of};
use crate::report::labels::{
    MISSING, known, letter, letters, mega, payload as payload_name, per_s, percent,
};

/// Begin of the title of the table whose cells are coloured.
pub(in crate::report) const HEAT_MAP: &str = "payload MB/s";

/// Throughput with verdicts, 99th percentile, failures; none without a matrix.
pub(in crate::report) fn matrices(study: &Study) -> Vec<Table> {
    let grid = Grid::new(study);
    if grid.is_empty() {
        return Vec::new();
    }

    let throughput = matrix(
        &grid,
        format!(
            "{HEAT_MAP} (bodies of 2xx, 10^6 bytes) by connections, with verdicts; {}",
            runs_of(grid.all())
        ),
        throughput(&grid),
        |cell| grid.share_of_best(cell),
        legend(&grid),
    );
    let p99 = matrix(
        &grid,
        "99th percentile of the latency by connections".to_owned(),
        |cell| quantile_of(cell, cell.median.p99_ns, |latency| latency.p99),
        |_| None,
        Vec::new(),
    );

    let errors = matrix(
        &grid,
        "error rate by connections: failures / (2xx + failures)".to_owned(),
        |cell| known(cell.median.error_share, percent),
        |_| None,
        Vec::new(),
    );
    vec![throughput, p99, errors]
}

/// Throughput by payload and connections as a picture; none without a matrix.
pub(in crate::report) fn heat_map(study: &Study) -> Option<HeatMap> {
    let grid = Grid::new(study);
    let rate = |cell: &model::Cell| cell.median.payload_bytes_per_s;
    let row = |payload: u64| {
        let cell = |c: u32| match grid.cell(payload, c) {
            None => HeatCell::default(),
            Some(cell) => HeatCell {
                share: grid.share_of_best(cell),
                text: known(rate(cell), mega),
                title: format!(
                    "{} c{c}: {} MB/s, {} responses/s, {}",
                    payload_name(payload),
                    known(rate(cell), mega),
                    known(cell.median.ok_per_s, per_s),
                    letter(cell.verdict.primary.class).1
                ),
                is_framed: grid.is_best_stable(cell),
            },
        };
        HeatRow {
            name: payload_name(payload),
            cells: grid.connections().into_iter().map(cell).collect(),
        }
    };

    (!grid.is_empty()).then(|| HeatMap {
        title: "Payload MB/s by payload and connections".to_owned(),
        note: format!(
            "colour: share of the best of the payload; framed: best stable; {}",
            runs_of(grid.all())
        ),
        columns: grid
            .connections()
            .into_iter()
            .map(|c| format!("c{c}"))
            .collect(),
        rows: grid.payloads().into_iter().map(row).collect(),
        frames_best: true,
    })
}

fn matrix(
    grid: &Grid<'_>,
    title: String,
    text: impl Fn(&model::Cell) -> String,
    heat: impl Fn(&model::Cell) -> Option<f64>,
    notes: Vec<String>,
) -> Table {
    let payloads = grid.payloads();
    let table = Table::of("", title, &payloads).text("payload", |payload| payload_name(*payload));
    let cell = |payload: &u64, c| match grid.cell(*payload, c) {
        Some(cell) => Cell::marked(text(cell), grid.is_best_stable(cell)).heated(heat(cell)),
        None => Cell::default(),
    };
    let table = table.numbers(grid.connections(), |c| format!("c{c}"), cell);

    table.notes(notes).table()
}

/// Letters of one width, so that the numbers before them are aligned.
fn throughput(grid: &Grid<'_>) -> impl Fn(&model::Cell) -> String {
    let widest = grid
        .all()
        .map(|cell| letters(&cell.verdict).len())
        .max()
        .unwrap_or(0);
    move |cell| match cell.median.payload_bytes_per_s {
        Some(rate) => format!("{} {:<widest$}", mega(rate), letters(&cell.verdict)),
        None => format!("{MISSING} {:<widest$}", letters(&cell.verdict)),
    }
}

/// `*` and the letters that are in use.
fn legend(grid: &Grid<'_>) -> Vec<String> {
    let judgements = grid.all().flat_map(|cell| cell.verdict.judgements());
    let classes: BTreeSet<VerdictClass> = judgements.map(|judgement| judgement.class).collect();
    let words = classes.into_iter().map(letter);
    let words = words.map(|(letter, meaning)| format!("{letter} {meaning}"));

    vec![
        "*: best stable, fewest connections that are fast, steady and without failures".to_owned(),
        format!("{}; after a +: fits as well", joined(words, "; ")),
    ]
}

/// Knee, cliff and best stable case of each payload.
pub(in crate::report) fn rows(study: &Study) -> Option<Table> {
    let connections = |c: u32| format!("c{c}");
    let none = || "none".to_owned();

    let queueing = |row: &Row| {
        let words = joined(
            row.queueing_connections.iter().copied().map(connections),
            " ",
        );
        if words.is_empty() { none() } else { words }
    };
    let best_stable = |row: &Row| {
        let objective = if row.is_limited_by_objective {
            " (SLO-limited)"
        } else {
            ""
        };
        let best = row.best_stable_connections;
        Cell::marked(
            best.map_or_else(none, |c| format!("c{c}{objective}")),
            best.is_some(),
        )
    };

    let note = "knee: fewest connections that reach the best; predicted: from the latency with the \
                fewest connections (Little's law)";
    Table::of(
        "",
        "best, knee and best stable number of connections of each payload",
        &study.rows,
    )
    .text("payload", |row| payload_name(row.payload_bytes))
    .number("responses/s", |row| known(row.best_per_s, per_s))
    .number("equal within", |row| percent(row.tolerance))
    .number("knee", |row| known(row.knee_connections, connections))
    .number("predicted knee", |row| {
        known(row.predicted_connections, |c| format!("{c:.0}"))
    })
    .number("only latency grows at", queueing)
    .number("best stable", best_stable)
    .text("latency jumps", |row| {
        row.cliff.clone().unwrap_or_else(none)
    })
    .notes([note])
    .non_empty()
}
