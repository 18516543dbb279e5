//! T3: many connections.

use linerate_model::http::{self as model, Idle, IdleStep, MemoryLine, Phase, Study};

use crate::document::table::{Cell, Column, Table, numbers};
use crate::http::grid::{finished, of_phase, quantile_of};
use crate::http::labels::letters;
use crate::http::numbers::{cell as cell_name, cpus, grouped, known, per_s, percent};
use crate::numbers::bytes;

/// Connections that are only held.
pub(in crate::http) fn idle(study: &Study) -> Option<Table> {
    let idle = study.idle.as_ref().filter(|idle| !idle.steps.is_empty())?;
    let heads = [
        "idle c",
        "open",
        "lost",
        "server RAM",
        "per c",
        "server kernel",
        "per c",
        "server CPU",
        "client RAM",
        "per c",
        "client CPU",
    ];
    Some(Table {
        id: "T3a",
        title: "idle connections: resident memory of the programs, sockets and slab of the server's kernel".to_owned(),
        columns: numbers(heads).collect(),
        rows: idle.steps.iter().map(|step| step_row(idle, step)).collect(),
        notes: lines(idle),
    })
}

fn step_row(idle: &Idle, step: &IdleStep) -> Vec<Cell> {
    let memory = |total: Option<u64>| known(total, |total| bytes(total as f64));
    let each = |total: Option<u64>, line: Option<MemoryLine>| {
        let each = total.zip(line).filter(|_| step.open > 0);
        known(each, |(total, line)| {
            bytes(((total as f64 - line.base_bytes) / step.open as f64).max(0.0))
        })
    };
    vec![
        grouped(u64::from(step.wanted)).into(),
        grouped(step.open).into(),
        grouped(step.dropped).into(),
        memory(step.server_rss_bytes).into(),
        each(step.server_rss_bytes, idle.server_user).into(),
        memory(step.server_kernel_bytes).into(),
        each(step.server_kernel_bytes, idle.server_kernel).into(),
        known(step.server_cpus, cpus).into(),
        memory(step.client_rss_bytes).into(),
        each(step.client_rss_bytes, idle.client_user).into(),
        known(step.client_cpus, cpus).into(),
    ]
}

/// `server program: 20.0 KiB per connection, R² 0.9998`
fn lines(idle: &Idle) -> Vec<String> {
    let line = |name: &str, line: Option<MemoryLine>| match line {
        Some(line) => format!(
            "{name} {} per connection (R² {:.4})",
            bytes(line.bytes_per_connection.max(0.0)),
            line.r2
        ),
        None => format!("{name} n/a"),
    };
    vec![
        format!(
            "fitted line: {}; {}; {}",
            line("server program", idle.server_user),
            line("server kernel", idle.server_kernel),
            line("client program", idle.client_user)
        ),
        "per c: what exceeds the fitted line's memory without connections, divided by open connections".to_owned(),
    ]
}

/// Many connections that are used: few requests, then all busy.
pub(in crate::http) fn busy(study: &Study) -> Option<Table> {
    let cells: Vec<&model::Cell> = of_phase(study, Phase::LowRate)
        .chain(of_phase(study, Phase::Active))
        .collect();
    let heads = [
        "open",
        "lost",
        "2xx/s",
        "success",
        "p50",
        "p99",
        "p99.9",
        "server RAM",
        "server CPU",
    ];
    (!cells.is_empty()).then(|| Table {
        id: "T3b",
        title: "many connections in use".to_owned(),
        columns: std::iter::once(Column::Text("cell"))
            .chain(numbers(heads))
            .chain([Column::Text("verdict")])
            .collect(),
        rows: cells.into_iter().map(busy_row).collect(),
        notes: vec!["latency of a low rate is counted from when a request was due (corrected)".to_owned()],
    })
}

fn busy_row(cell: &model::Cell) -> Vec<Cell> {
    let median = &cell.median;
    let connections = |figure: fn(&model::Connections) -> u64| {
        finished(cell)
            .filter_map(|run| run.load.as_ref())
            .map(|load| figure(&load.connections))
            .max()
    };
    let memory = finished(cell).filter_map(|run| run.server.as_ref()?.rss_bytes).max();
    vec![
        cell_name(&cell.key).into(),
        known(connections(|c| c.opened), grouped).into(),
        known(connections(|c| c.dropped), grouped).into(),
        known(median.ok_per_s, per_s).into(),
        known(median.error_share, |share| percent(1.0 - share)).into(),
        quantile_of(cell, median.p50_ns, |latency| latency.p50).into(),
        quantile_of(cell, median.p99_ns, |latency| latency.p99).into(),
        quantile_of(cell, median.p999_ns, |latency| latency.p999).into(),
        known(memory, |memory| bytes(memory as f64)).into(),
        known(median.server_cpus, cpus).into(),
        letters(&cell.verdict).into(),
    ]
}

/// What was demanded, and whether it is met.
pub(in crate::http) fn passes(study: &Study) -> Option<Table> {
    let row = |pass: &model::Pass| {
        let word = match pass.is_met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "unknown",
        };
        vec![word.into(), pass.what.as_str().into(), pass.evidence.as_str().into()]
    };
    (!study.passes.is_empty()).then(|| Table {
        id: "T3c",
        title: "demands".to_owned(),
        columns: ["is", "demand", "evidence"].map(Column::Text).into(),
        rows: study.passes.iter().map(row).collect(),
        notes: Vec::new(),
    })
}
