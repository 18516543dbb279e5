//! The cells of each phase, their limits, and whether the demands are met.

use std::collections::{BTreeMap, BTreeSet};

use linerate_document::table::Table;
use linerate_model::http::{
    Cell, CellRun, Connections, Flag, Idle, IdleStep, Judgement, MemoryLine, NegotiatedProtocol,
    Phase, Study, VerdictClass,
};
use linerate_model::numbers::{bytes, rate};
use linerate_model::words::joined;
use linerate_model::{http as model, stored_name};

use crate::report::grid::{by_payload, finished, of_phase, quantile_of, runs_of};
use crate::report::labels::{
    self, cell as cell_name, cpus, fine, grouped, known, letters, mebi, mega, per_s, percent,
};

/// One row per TCP test; none without any.
pub(in crate::report) fn baseline(study: &Study) -> Option<Table> {
    Table::of(
        "",
        "TCP without HTTP: received payload per second",
        &study.baseline,
    )
    .text(
        "sender",
        |test| if test.is_reverse { "server" } else { "client" },
    )
    .number("streams", |test| test.streams.to_string())
    .number("goodput", |test| rate(test.goodput_bps))
    .number("of theory", |test| known(test.of_theory, percent))
    .number("resent segments", |test| known(test.retransmits, grouped))
    .number("resent share", |test| known(test.retransmit_share, percent))
    .number("server CPU", |test| known(test.server_cpus, cpus))
    .number("client CPU", |test| known(test.client_cpus, cpus))
    .notes(["theory: what frames of this size let through on this link; CPU: 100 % is one CPU"])
    .non_empty()
}

const PAYLOAD_NOTE: &str = "payload: bodies of 2xx, 10^6 bytes; http: heads and bodies, 2^20 \
                            bytes; wire: frames and gaps, busier direction; of network: of the \
                            responses/s it allows; CPU: of the program, 100 % is one CPU; us/2xx: the \
                            server's CPU time per response; verdict: letters of the next table";

/// One row per payload; none without any.
pub(in crate::report) fn payload(study: &Study) -> Option<Table> {
    let cells = by_payload(study);
    let is_plain = study
        .protocol
        .iter()
        .all(NegotiatedProtocol::is_plain_http1);
    let unseen = "http is n/a inside TLS and in HTTP/2, where the bytes of heads are not seen";
    let title = format!("payloads by themselves; {}", runs_of(cells.iter().copied()));

    Table::of("", title, &cells)
        .text("payload", |cell| labels::payload(cell.key.payload_bytes))
        .number("c", |cell| cell.key.connections.to_string())
        .number("responses/s", |cell| known(cell.median.ok_per_s, per_s))
        .number("payload MB/s", |cell| {
            known(cell.median.payload_bytes_per_s, mega)
        })
        .number("http MiB/s", |cell| {
            known(cell.median.http_bytes_per_s, mebi)
        })
        .number("wire Mbit/s", |cell| {
            known(cell.median.wire_bps, |bps| fine(bps / 1e6))
        })
        .number("of network", |cell| known(cell.median.of_ceiling, percent))
        .number("server CPU", |cell| known(cell.median.server_cpus, cpus))
        .number("client CPU", |cell| known(cell.median.client_cpus, cpus))
        .number("us/2xx", |cell| {
            known(cell.median.server_cpu_ns_per_request, |ns| fine(ns / 1e3))
        })
        .text("verdict", |cell| letters(&cell.verdict))
        .notes([PAYLOAD_NOTE])
        .notes((!is_plain).then_some(unseen))
        .non_empty()
}

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

/// One row per class that fits a cell; none without cells.
pub(in crate::report) fn verdicts(study: &Study) -> Option<Table> {
    let rows: Vec<[String; 5]> = study.cells.iter().flat_map(rows).collect();
    let heads = ["cell", "phase", "limit", "confidence", "evidence"];
    let advice = by_advice(study).into_iter().map(|(limit, count, advice)| {
        format!("{limit} ({}): {advice}", labels::counted(count, "cell"))
    });
    let notes = advice.chain(flags(study)).collect();
    let table = Table::of_words("", "limits of the cells", heads, &rows);
    (!rows.is_empty()).then_some(Table { notes, ..table })
}

fn rows(cell: &model::Cell) -> Vec<[String; 5]> {
    let verdict = &cell.verdict;
    let mut rows = vec![[
        cell_name(&cell.key),
        labels::phase(cell.key.phase),
        labels::limit(verdict.primary.class).to_owned(),
        stored_name(verdict.confidence),
        evidence(&verdict.primary, unused(cell)),
    ]];

    for judgement in &verdict.contributing {
        let class = format!("+ {}", labels::limit(judgement.class));
        let evidence = evidence(judgement, None);
        rows.push([String::new(), String::new(), class, String::new(), evidence]);
    }

    rows
}

fn evidence(judgement: &Judgement, unused: Option<String>) -> String {
    let texts = judgement.evidence.iter().map(ToString::to_string);
    joined(texts.chain(unused), "; ")
}

/// Why runs of a cell are not in its numbers.
fn unused(cell: &model::Cell) -> Option<String> {
    let reason = |run: &CellRun| Some(format!("run {} {}", run.repeat, labels::ending(run)?));
    let reasons = joined(cell.runs.iter().filter_map(reason), "; ");
    (!reasons.is_empty()).then_some(reasons)
}

/// Each different advice once with its limit and the number of cells it is for.
pub(in crate::report) fn by_advice(study: &Study) -> Vec<(&'static str, usize, &str)> {
    let mut cells: BTreeMap<(VerdictClass, &str), usize> = BTreeMap::new();
    for cell in &study.cells {
        for judgement in cell.verdict.judgements() {
            if !judgement.advice.is_empty() {
                *cells
                    .entry((judgement.class, &judgement.advice))
                    .or_default() += 1;
            }
        }
    }

    let cells = cells.into_iter();
    cells
        .map(|((class, advice), count)| (labels::limit(class), count, advice))
        .collect()
}

/// Each flag once, with the number of cells that have it.
fn flags(study: &Study) -> Vec<String> {
    let mut cells: BTreeMap<Flag, usize> = BTreeMap::new();
    for cell in &study.cells {
        let flags: BTreeSet<Flag> = cell.runs.iter().flat_map(|run| run.flags.clone()).collect();
        for flag in flags {
            *cells.entry(flag).or_default() += 1;
        }
    }

    let text = |(flag, count)| {
        format!(
            "{}: {}",
            labels::counted(count, "cell"),
            labels::flag(flag).1
        )
    };
    cells.into_iter().map(text).collect()
}
