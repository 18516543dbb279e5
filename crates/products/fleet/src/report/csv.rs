//! Cells as comma-separated values.

use linerate_model::fleet::{Cell, CellOutcome, FleetReport, Measurement};
use linerate_model::printable::printable;
use linerate_model::stored_name;
use serde::Serialize;

use linerate_document::table::Table;

/// Cells of one table: a large fleet has a hundred thousand, and one in a table takes twenty times
/// its line.
const CHUNK: usize = 1_000;

/// A head line and one line per cell (RFC 4180). A value that was not measured is empty.
pub fn csv(report: &FleetReport) -> String {
    // Only the first table has the head line.
    let mut csv = table(&[]).csv();
    for cells in report.cells.chunks(CHUNK) {
        csv += &table(cells).csv_rows();
    }

    csv
}

fn table(cells: &[Cell]) -> Table {
    let start = |cell: &Cell, ns: fn(&linerate_model::fleet::StartTimes) -> u64| {
        text(cell.measurement().and_then(|of| of.start.as_ref()).map(ns))
    };
    Table::of("", "", cells)
        .text("source", |cell| cell.task.source.to_string())
        .text("sink", |cell| cell.task.sink.to_string())
        .text("path", |cell| printable(&cell.task.path))
        .text("variant", |cell| printable(&cell.task.variant))
        .number("repetition", |cell| cell.task.repetition.to_string())
        .text("mode", |cell| stored_name(cell.mode))
        .number("goodput_bps", |cell| value(cell, |of| Some(of.goodput_bps)))
        .number("nominal_bps", |cell| value(cell, |of| of.nominal_bps))
        .number("retransmits", |cell| value(cell, |of| of.retransmits))
        .number("rtt_us", |cell| value(cell, |of| of.rtt_us))
        .number("source_cpu", |cell| value(cell, |of| of.source_cpu))
        .number("sink_cpu", |cell| value(cell, |of| of.sink_cpu))
        .number("planned_start_ns", |cell| {
            start(cell, |start| start.planned_ns)
        })
        .number("actual_start_ns", |cell| {
            start(cell, |start| start.actual_ns)
        })
        .text("flags", |cell| {
            value(cell, |of| {
                Some(names(&of.flags)).filter(|names| !names.is_empty())
            })
        })
        .text("not_run", |cell| reason(cell).0)
        .text("detail", |cell| reason(cell).1)
        .table()
}

fn value<T: ToString>(cell: &Cell, value: impl Fn(&Measurement) -> Option<T>) -> String {
    text(cell.measurement().and_then(value))
}

fn text<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn names<T: Serialize + Copy>(values: &[T]) -> String {
    let names: Vec<String> = values.iter().map(|value| stored_name(*value)).collect();
    names.join(" ")
}

fn reason(cell: &Cell) -> (String, String) {
    match &cell.outcome {
        CellOutcome::Measured(_) => Default::default(),
        CellOutcome::NotRun(not_run) => (
            stored_name(not_run.reason),
            printable(not_run.detail.as_deref().unwrap_or_default()),
        ),
    }
}
