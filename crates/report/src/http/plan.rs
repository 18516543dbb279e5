//! What an experiment would do (`--plan-only`).

use linerate_model::http::CellKey;
use serde::Serialize;

use crate::numbers::{bytes, clock};

use super::labels::{counted, phase};
use super::numbers::{cell, grouped, known};
use crate::document::style::Style;
use crate::document::table::Table;
use crate::document::{Block, Document};

/// What an experiment would do.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct PlanListing {
    /// The server, as the user wrote it.
    pub target: String,
    /// Cells in the order in which they are run first.
    pub cells: Vec<PlannedCell>,
    /// Estimated time of all of it in seconds.
    pub estimate_s: f64,
    /// Bytes of all answers, at most; absent where that depends on what the server can do.
    pub bytes: Option<u64>,
    /// What both hosts must have for it.
    pub needs: Vec<Need>,
}

/// One cell of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedCell {
    /// Which one.
    pub key: CellKey,
    /// Runs of it.
    pub repeats: u32,
    /// Time of all its runs in seconds.
    pub estimate_s: f64,
    /// Bytes of its responses in all runs, at most; absent where unknown.
    pub bytes: Option<u64>,
}

/// Something a plan needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Need {
    /// What, for instance `descriptors`.
    pub what: String,
    /// How much, with its unit, and of which end.
    pub need: String,
}

/// The plan as text.
#[must_use]
pub fn plan_text(plan: &PlanListing, style: Style) -> String {
    let runs: u64 = plan.cells.iter().map(|planned| u64::from(planned.repeats)).sum();
    let bytes = match plan.bytes {
        Some(bytes) => format!("{} of answers at most", amount(Some(bytes))),
        None => "how many bytes depends on what the server and the path can do".to_owned(),
    };
    let time = clock(plan.estimate_s);
    let cost = format!("About {time} for {} runs; {bytes}", grouped(runs));
    let blocks = vec![Block::Table(cells(plan)), Block::Paragraph(cost), Block::Table(needs(plan))];
    let name = "linerate http lab --plan-only";
    Document { name, blocks }.text(style).trim_start().to_owned()
}

fn cells(plan: &PlanListing) -> Table {
    let title = format!("of {}: {}", plan.target, counted(plan.cells.len(), "cell"));
    Table::of("plan", title, &plan.cells)
        .text("cell", |planned| cell(&planned.key))
        .text("phase", |planned| phase(planned.key.phase))
        .number("runs", |planned| planned.repeats.to_string())
        .number("time", |planned| clock(planned.estimate_s))
        .number("bytes at most", |planned| amount(planned.bytes))
        .table()
}

fn needs(plan: &PlanListing) -> Table {
    let title = "of both hosts; linerate http check compares them with what there is";
    Table::of("needs", title, &plan.needs)
        .text("what", |need| need.what.as_str())
        .text("how much", |need| need.need.as_str())
        .table()
}

fn amount(amount: Option<u64>) -> String {
    known(amount, |amount| bytes(amount as f64))
}

/// The plan as one JSON object.
#[must_use]
pub fn plan_json(plan: &PlanListing) -> String {
    #[derive(Serialize)]
    struct Object<'a> {
        schema: &'static str,
        #[serde(flatten)]
        plan: &'a PlanListing,
    }
    crate::pretty_json(&Object { schema: "linerate.http-plan/1", plan })
}
