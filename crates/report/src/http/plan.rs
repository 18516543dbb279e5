//! What an experiment would do (`--plan-only`).

use std::fmt::Write;

use linerate_model::http::CellKey;
use serde::Serialize;

use crate::numbers::{bytes, clock};

use super::labels::{counted, phase};
use super::numbers::{cell, grouped, known};
use crate::document::style::Style;
use crate::document::table::{Column, Table, numbers};

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
    let mut out = cells(plan).text(style);
    let runs: u64 = plan.cells.iter().map(|planned| u64::from(planned.repeats)).sum();
    let _ = writeln!(
        out,
        "\nAbout {} for {} runs; {}\n",
        clock(plan.estimate_s),
        grouped(runs),
        match plan.bytes {
            Some(bytes) => format!("{} of answers at most", amount(Some(bytes))),
            None => "how many bytes depends on what the server and the path can do".to_owned(),
        }
    );
    out.push_str(&needs(plan).text(style));
    out
}

fn cells(plan: &PlanListing) -> Table {
    let row = |planned: &PlannedCell| {
        vec![
            cell(&planned.key).into(),
            phase(planned.key.phase).into(),
            planned.repeats.to_string().into(),
            clock(planned.estimate_s).into(),
            amount(planned.bytes).into(),
        ]
    };
    let words = ["cell", "phase"].map(Column::Text);
    Table {
        id: "plan",
        title: format!("of {}: {}", plan.target, counted(plan.cells.len(), "cell")),
        columns: words
            .into_iter()
            .chain(numbers(["runs", "time", "bytes at most"]))
            .collect(),
        rows: plan.cells.iter().map(row).collect(),
        notes: Vec::new(),
    }
}

fn needs(plan: &PlanListing) -> Table {
    let row = |need: &Need| vec![need.what.as_str().into(), need.need.as_str().into()];
    Table {
        id: "needs",
        title: "of both hosts; linerate http check compares them with what there is".to_owned(),
        columns: ["what", "how much"].map(Column::Text).into(),
        rows: plan.needs.iter().map(row).collect(),
        notes: Vec::new(),
    }
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
    crate::pretty_json(&Object {
        schema: "linerate.http-plan/1",
        plan,
    })
}
