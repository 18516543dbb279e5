//! T2: payloads by connections.

use std::collections::BTreeSet;

use linerate_model::http::{self as model, Study, VerdictClass};

use crate::document::table::{Cell, Column, Table, numbers};
use crate::http::grid::{Grid, quantile_of, runs_of};
use crate::http::labels::{letter, letters, meaning};
use crate::http::numbers::{MISSING, known, mega, payload as payload_name, per_s, percent};

/// Throughput with verdicts, 99th percentile, failures; none without a matrix.
pub(in crate::http) fn matrices(study: &Study) -> Vec<Table> {
    let grid = Grid::new(study);
    if grid.is_empty() {
        return Vec::new();
    }
    let throughput = matrix(
        &grid,
        "T2a",
        format!(
            "payload MB/s (bodies of 2xx, 10^6 bytes) by connections, with verdicts; {}",
            runs_of(grid.all())
        ),
        throughput(&grid),
        legend(&grid),
    );
    let p99 = matrix(
        &grid,
        "T2b",
        "99th percentile of the latency by connections".to_owned(),
        |cell| quantile_of(cell, cell.median.p99_ns, |latency| latency.p99),
        Vec::new(),
    );
    let errors = matrix(
        &grid,
        "T2c",
        "error rate by connections: failures / (2xx + failures)".to_owned(),
        |cell| known(cell.median.error_share, percent),
        Vec::new(),
    );
    vec![throughput, p99, errors]
}

fn matrix(
    grid: &Grid<'_>,
    id: &'static str,
    title: String,
    text: impl Fn(&model::Cell) -> String,
    notes: Vec<String>,
) -> Table {
    let connections = grid.connections();
    let cell = |payload, connections| match grid.cell(payload, connections) {
        Some(cell) => Cell::marked(text(cell), grid.is_best_stable(cell)),
        None => "".into(),
    };
    let row = |payload: u64| {
        let cells = connections.iter().map(|connections| cell(payload, *connections));
        std::iter::once(payload_name(payload).into()).chain(cells).collect()
    };
    let heads = connections.iter().map(|c| Column::Number(format!("c{c}")));
    Table {
        id,
        title,
        columns: std::iter::once(Column::Text("payload")).chain(heads).collect(),
        rows: grid.payloads().into_iter().map(row).collect(),
        notes,
    }
}

/// Letters of one width, so that the numbers before them stand in line.
fn throughput(grid: &Grid<'_>) -> impl Fn(&model::Cell) -> String {
    let widest = grid.all().map(|cell| letters(&cell.verdict).len()).max().unwrap_or(0);
    move |cell| match cell.median.payload_bytes_per_s {
        Some(rate) => format!("{} {:<widest$}", mega(rate), letters(&cell.verdict)),
        None => format!("{MISSING} {:<widest$}", letters(&cell.verdict)),
    }
}

/// `*` and the letters that are in use.
fn legend(grid: &Grid<'_>) -> Vec<String> {
    let of = |cell: &model::Cell| {
        let contributing = cell.verdict.contributing.iter().map(|judgement| judgement.class);
        std::iter::once(cell.verdict.primary.class)
            .chain(contributing)
            .collect::<Vec<_>>()
    };
    let classes: BTreeSet<VerdictClass> = grid.all().flat_map(of).collect();
    let words: Vec<String> = classes
        .into_iter()
        .map(|class| format!("{} {}", letter(class), meaning(class)))
        .collect();
    vec![
        "*: best stable, fewest connections that are fast, steady and without failures".to_owned(),
        format!("{}; after a +: fits as well", words.join("; ")),
    ]
}

/// T2d: knee, cliff and best stable case of each payload.
pub(in crate::http) fn rows(study: &Study) -> Option<Table> {
    let heads = [
        "best 2xx/s",
        "equal within",
        "knee",
        "predicted knee",
        "only latency grows at",
        "best stable",
    ];
    (!study.rows.is_empty()).then(|| Table {
        id: "T2d",
        title: "what the connections of each payload say together".to_owned(),
        columns: std::iter::once(Column::Text("payload"))
            .chain(numbers(heads))
            .chain([Column::Text("latency jumps")])
            .collect(),
        rows: study.rows.iter().map(row).collect(),
        notes: vec![
            "knee: fewest connections that reach the best; predicted: from the latency with the fewest connections \
             (Little's law)"
                .to_owned(),
        ],
    })
}

fn row(row: &model::Row) -> Vec<Cell> {
    let connections = |c: u32| format!("c{c}");
    let queueing: Vec<String> = row.queueing_connections.iter().map(|c| connections(*c)).collect();
    let objective = if row.is_limited_by_objective {
        " (SLO-limited)"
    } else {
        ""
    };
    let none = || "none".to_owned();
    vec![
        payload_name(row.payload_bytes).into(),
        known(row.best_per_s, per_s).into(),
        percent(row.tolerance).into(),
        known(row.knee_connections, connections).into(),
        known(row.predicted_connections, |c| format!("{c:.0}")).into(),
        if queueing.is_empty() {
            none()
        } else {
            queueing.join(" ")
        }
        .into(),
        Cell::marked(
            row.best_stable_connections
                .map_or_else(none, |c| format!("c{c}{objective}")),
            row.best_stable_connections.is_some(),
        ),
        row.cliff.clone().unwrap_or_else(none).into(),
    ]
}
