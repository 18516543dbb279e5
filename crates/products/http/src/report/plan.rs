//! Listing of an experiment before it runs (`--plan-only`).

use linerate_document::Style;
use linerate_document::blocks::{Block, Document};
use linerate_document::table::Table;
use linerate_model::numbers::{bytes, clock};
use serde_json::{Value, json};

use super::labels::{counted, phase};
use super::numbers::{cell, grouped, known};
use crate::plan::estimate::Estimate;

/// Requirements of an experiment on both hosts, with their amounts: `descriptors`, `10,128 on each
/// end`.
pub type Needs = [[String; 2]];

/// The plan as text.
pub fn plan_text(target: &str, estimate: &Estimate, needs: &Needs, style: Style) -> String {
    let total = estimate.total;
    let runs: u64 = estimate
        .cells
        .iter()
        .map(|(_, cost)| u64::from(cost.runs))
        .sum();

    let bytes = match total.bytes {
        Some(bytes) => format!("{} of answers at most", amount(Some(bytes))),
        None => "how many bytes depends on what the server and the path can do".to_owned(),
    };
    let time = clock(total.time.as_secs_f64());
    let cost = format!("About {time} for {} runs; {bytes}", grouped(runs));
    let of_both = "of both hosts; linerate http lab --check compares them with what there is";
    let needs = Table::of_words("needs", of_both, ["what", "how much"], needs);
    let blocks = vec![
        Block::Table(cells(target, estimate)),
        Block::Paragraph(cost),
        Block::Table(needs),
    ];

    let name = "linerate http lab --plan-only";
    Document { name, blocks }
        .text(style)
        .trim_start()
        .to_owned()
}

fn cells(target: &str, estimate: &Estimate) -> Table {
    let title = format!("of {target}: {}", counted(estimate.cells.len(), "cell"));
    Table::of("plan", title, &estimate.cells)
        .text("cell", |(key, _)| cell(key))
        .text("phase", |(key, _)| phase(key.phase))
        .number("runs", |(_, cost)| cost.runs.to_string())
        .number("time", |(_, cost)| clock(cost.time.as_secs_f64()))
        .number("bytes at most", |(_, cost)| amount(cost.bytes))
        .table()
}

fn amount(amount: Option<u64>) -> String {
    known(amount, |amount| bytes(amount as f64))
}

/// The plan as one JSON object.
pub fn plan_json(target: &str, estimate: &Estimate, needs: &Needs) -> String {
    let cells = estimate.cells.iter().map(|(key, cost)| {
        json!({ "key": key, "repeats": cost.runs, "estimate_s": cost.time.as_secs_f64(), "bytes": cost.bytes })
    });
    let object = json!({
        "schema": "linerate.http-plan/1",
        "target": target,
        "cells": cells.collect::<Vec<Value>>(),
        "estimate_s": estimate.total.time.as_secs_f64(),
        "bytes": estimate.total.bytes,
        "needs": needs.iter().map(|[what, need]| json!({ "what": what, "need": need })).collect::<Vec<Value>>(),
    });
    linerate_document::pretty_json(&object)
}
