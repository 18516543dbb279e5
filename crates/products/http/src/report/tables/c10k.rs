//! Many connections.

use linerate_document::table::Table;
use linerate_model::http::{Cell, Connections, Idle, IdleStep, MemoryLine, Phase, Study};
use linerate_model::numbers::bytes;

use crate::report::grid::{finished, of_phase, quantile_of};
use crate::report::labels::letters;
use crate::report::numbers::{cell as cell_name, cpus, grouped, known, per_s, percent};

/// Connections that are only held.
pub(in crate::report) fn idle(study: &Study) -> Option<Table> {
    let idle = study.idle.as_ref()?;
    let memory = |total: Option<u64>| known(total, |total| bytes(total as f64));

    let each = |step: &IdleStep, total: Option<u64>, line: Option<MemoryLine>| {
        let each = total
            .zip(line.filter(MemoryLine::grows))
            .filter(|_| step.open > 0);
        let each = each.map(|(total, line)| (total as f64 - line.base_bytes) / step.open as f64);

        // What is below the line's start is memory that was free before, and no figure for a
        // connection.
        known(each.filter(|each| *each >= 1.0), bytes)
    };
    let title = "idle connections: resident memory of the programs, sockets and slab of the \
                 server's kernel";
    Table::of("", title, &idle.steps)
        .number("idle c", |step| grouped(u64::from(step.wanted)))
        .number("open", |step| grouped(step.open))
        .number("lost", |step| grouped(step.dropped))
        .number("server RAM", |step| memory(step.server_rss_bytes))
        .number("per c", |step| {
            each(step, step.server_rss_bytes, idle.server_user)
        })
        .number("server kernel", |step| memory(step.server_kernel_bytes))
        .number("per c", |step| {
            each(step, step.server_kernel_bytes, idle.server_kernel)
        })
        .number("server CPU", |step| known(step.server_cpus, cpus))
        .number("client RAM", |step| memory(step.client_rss_bytes))
        .number("per c", |step| {
            each(step, step.client_rss_bytes, idle.client_user)
        })
        .number("client CPU", |step| known(step.client_cpus, cpus))
        .notes(lines(idle))
        .non_empty()
}

/// `server program: 20.0 KiB per connection, R² 0.9998`
fn lines(idle: &Idle) -> Vec<String> {
    let line = |name: &str, line: Option<MemoryLine>| match line {
        Some(line) if line.grows() => {
            format!(
                "{name} {} per connection (R² {:.4})",
                bytes(line.bytes_per_connection),
                line.r2
            )
        }
        Some(_) => format!("{name} n/a (it did not grow with the connections)"),
        None => format!("{name} n/a"),
    };
    vec![
        format!(
            "fitted line: {}; {}; {}",
            line("server program", idle.server_user),
            line("server kernel", idle.server_kernel),
            line("client program", idle.client_user)
        ),
        "per c: what exceeds the fitted line's memory without connections, divided by open \
         connections"
            .to_owned(),
    ]
}

/// Many connections that are used: few requests, then all busy.
pub(in crate::report) fn busy(study: &Study) -> Option<Table> {
    let low_rate = of_phase(study, Phase::LowRate);
    let cells: Vec<&Cell> = low_rate.chain(of_phase(study, Phase::Active)).collect();
    let connections = |cell: &Cell, figure: fn(&Connections) -> u64| {
        let loads = finished(cell).filter_map(|run| run.load.as_ref());
        known(loads.map(|load| figure(&load.connections)).max(), grouped)
    };

    let memory = |cell: &Cell| {
        finished(cell)
            .filter_map(|run| run.server.as_ref()?.rss_bytes)
            .max()
    };
    Table::of("", "many connections in use", &cells)
        .text("cell", |cell| cell_name(&cell.key))
        .number("open", |cell| connections(cell, |c| c.opened))
        .number("lost", |cell| connections(cell, |c| c.dropped))
        .number("responses/s", |cell| known(cell.median.ok_per_s, per_s))
        .number("success", |cell| {
            known(cell.median.error_share, |share| percent(1.0 - share))
        })
        .number("p50", |cell| {
            quantile_of(cell, cell.median.p50_ns, |latency| latency.p50)
        })
        .number("p99", |cell| {
            quantile_of(cell, cell.median.p99_ns, |latency| latency.p99)
        })
        .number("p99.9", |cell| {
            quantile_of(cell, cell.median.p999_ns, |latency| latency.p999)
        })
        .number("server RAM", |cell| {
            known(memory(cell), |memory| bytes(memory as f64))
        })
        .number("server CPU", |cell| known(cell.median.server_cpus, cpus))
        .text("verdict", |cell| letters(&cell.verdict))
        .notes(["latency of a low rate is counted from when a request was due (corrected)"])
        .non_empty()
}

/// Table of the demands, and whether they are met.
pub(in crate::report) fn passes(study: &Study) -> Option<Table> {
    let is_met = |is_met| match is_met {
        Some(true) => "met",
        Some(false) => "MISSED",
        None => "unknown",
    };
    Table::of("", "demands", &study.passes)
        .text("is", |pass| is_met(pass.is_met))
        .text("demand", |pass| pass.what.as_str())
        .text("evidence", |pass| pass.evidence.as_str())
        .non_empty()
}
