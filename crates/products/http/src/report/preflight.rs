//! Report before an experiment: its plan, and the checks of both hosts.

use linerate_document::Style;
use linerate_document::blocks::{Block, Document, Entry};
use linerate_document::style::shortened;
use linerate_document::table::Table;
use linerate_model::http::{Check, CheckStatus};
use linerate_model::numbers::{bytes, clock};
use linerate_model::stored_name;
use linerate_model::words::joined;
use serde_json::{Value, json};

use super::labels::{cell, counted, grouped, known, phase};
use crate::plan::estimate::Estimate;

/// Names of checks are short; one from a stranger may not be.
const NAME_CHARS_MAX: usize = 32;
/// Column of everything below the first line of a check.
const INDENT: usize = 9;
/// Outcomes, the most urgent one first.
const BY_URGENCY: [CheckStatus; 5] = [
    CheckStatus::Fail,
    CheckStatus::Warn,
    CheckStatus::Unknown,
    CheckStatus::Info,
    CheckStatus::Pass,
];

/// Checks as text: those that fail first, with the commands that help; those that pass are counted.
/// Commands are on lines of their own and are never broken, so that they can be copied.
pub fn preflight(checks: &[Check], style: Style) -> String {
    let of = |wanted| checks.iter().filter(move |check| check.status == wanted);
    let listed = BY_URGENCY
        .into_iter()
        .filter(|status| *status != CheckStatus::Pass);
    let mut blocks: Vec<Block> = listed.flat_map(of).flat_map(blocks).collect();
    let counts = BY_URGENCY.map(|wanted| (of(wanted).count(), word(wanted)));
    let counts = counts.iter().filter(|(number, _)| *number > 0);
    let words = counts.map(|(number, word)| format!("{number} {word}"));
    let total = counted(checks.len(), "check");
    blocks.push(Block::Remark(format!("{total}: {}", joined(words, ", "))));

    let name = "linerate http lab --check";
    Document { name, blocks }.text(style)
}

/// Checks for programs: one JSON array of
/// `{id, side, status, have, need, fix, undo, advice, cells}`.
pub fn preflight_json(checks: &[Check]) -> String {
    linerate_document::pretty_json(&checks)
}

fn word(status: CheckStatus) -> String {
    stored_name(status).to_uppercase()
}

fn blocks(check: &Check) -> Vec<Block> {
    let name: String = shortened(&check.id).chars().take(NAME_CHARS_MAX).collect();
    let need = if check.need.is_empty() { "" } else { "; need " };
    let mut blocks = vec![Block::Entry(Entry {
        status: format!("{:<7}", word(check.status)),
        label: format!("  {:<6}  {name:<20}  ", stored_name(check.side)),
        text: format!("have {}{need}{}", check.have, check.need),
        ..Entry::default()
    })];

    if !check.cells.is_empty() {
        let concerns = format!("concerns {}", check.cells.join(", "));
        blocks.push(Block::entry("", INDENT, concerns));
    }

    for (label, commands) in [("do", &check.fix), ("undo", &check.undo)] {
        for command in commands {
            let text = format!("{label:<6}{}", shortened(command));
            blocks.push(Block::verbatim("", INDENT, text));
        }
    }

    if !check.advice.is_empty() {
        let advice = format!("next  {}", check.advice);
        blocks.push(Block::entry("", INDENT, advice));
    }

    blocks
}

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
