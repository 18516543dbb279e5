//! What an experiment would do (`--plan-only`).

use linerate_lab::http::estimate::Estimate;
use serde_json::{Value, json};

use crate::numbers::{bytes, clock};

use super::labels::{counted, phase};
use super::numbers::{cell, grouped, known};
use crate::document::style::Style;
use crate::document::table::Table;
use crate::document::{Block, Document};

/// What an experiment would do.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanListing {
    /// The server, as the user wrote it.
    pub target: String,
    /// Its cells and its estimated cost.
    pub estimate: Estimate,
    /// What both hosts must have for it, and how much: `descriptors`, `10,128 on each end`.
    pub needs: Vec<[String; 2]>,
}

/// The plan as text.
#[must_use]
pub fn plan_text(plan: &PlanListing, style: Style) -> String {
    let (cells_of, total) = (&plan.estimate.cells, plan.estimate.total);
    let runs: u64 = cells_of.iter().map(|(_, cost)| u64::from(cost.runs)).sum();
    let bytes = match total.bytes {
        Some(bytes) => format!("{} of answers at most", amount(Some(bytes))),
        None => "how many bytes depends on what the server and the path can do".to_owned(),
    };
    let time = clock(total.time.as_secs_f64());
    let cost = format!("About {time} for {} runs; {bytes}", grouped(runs));
    let blocks = vec![Block::Table(cells(plan)), Block::Paragraph(cost), Block::Table(needs(plan))];
    let name = "linerate http lab --plan-only";
    Document { name, blocks }.text(style).trim_start().to_owned()
}

fn cells(plan: &PlanListing) -> Table {
    let cells = &plan.estimate.cells;
    let title = format!("of {}: {}", plan.target, counted(cells.len(), "cell"));
    Table::of("plan", title, cells)
        .text("cell", |(key, _)| cell(key))
        .text("phase", |(key, _)| phase(key.phase))
        .number("runs", |(_, cost)| cost.runs.to_string())
        .number("time", |(_, cost)| clock(cost.time.as_secs_f64()))
        .number("bytes at most", |(_, cost)| amount(cost.bytes))
        .table()
}

fn needs(plan: &PlanListing) -> Table {
    let title = "of both hosts; linerate http check compares them with what there is";
    Table::of_words("needs", title, ["what", "how much"], &plan.needs)
}

fn amount(amount: Option<u64>) -> String {
    known(amount, |amount| bytes(amount as f64))
}

/// The plan as one JSON object.
#[must_use]
pub fn plan_json(plan: &PlanListing) -> String {
    let cells = plan.estimate.cells.iter().map(|(key, cost)| {
        json!({ "key": key, "repeats": cost.runs, "estimate_s": cost.time.as_secs_f64(), "bytes": cost.bytes })
    });
    let object = json!({
        "schema": "linerate.http-plan/1",
        "target": plan.target,
        "cells": cells.collect::<Vec<Value>>(),
        "estimate_s": plan.estimate.total.time.as_secs_f64(),
        "bytes": plan.estimate.total.bytes,
        "needs": plan.needs.iter().map(|[what, need]| json!({ "what": what, "need": need })).collect::<Vec<Value>>(),
    });
    crate::pretty_json(&object)
}
