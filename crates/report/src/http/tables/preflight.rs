//! T6: what was seen before.

use linerate_model::http::{Check, CheckStatus, Study};

use crate::http::table::{Cell, Column, Table};
use crate::http::words::{side, status};

/// Checks that ask for something, and how many do not; none without checks.
pub(in crate::http) fn preflight(study: &Study) -> Option<Table> {
    let (passed, open): (Vec<&Check>, Vec<&Check>) =
        study.checks.iter().partition(|check| check.status == CheckStatus::Pass);
    (!study.checks.is_empty()).then(|| Table {
        id: "T6",
        title: "preflight".to_owned(),
        columns: ["is", "side", "check", "have", "need", "concerns"]
            .map(Column::Words)
            .into(),
        rows: open.iter().flat_map(|check| rows(check)).collect(),
        notes: vec![format!("{} of {} checks passed", passed.len(), study.checks.len())],
    })
}

/// The check, and each way to change it in a row of its own, so that it can be copied.
fn rows(check: &Check) -> Vec<Vec<Cell>> {
    let first = vec![
        status(check.status).into(),
        side(check.side).into(),
        check.id.as_str().into(),
        check.have.as_str().into(),
        check.need.as_str().into(),
        check.cells.join(", ").into(),
    ];
    let fix = |fix: &String| {
        let mut row = vec![Cell::default(); 6];
        row[2] = "fix".into();
        row[3] = fix.as_str().into();
        row
    };
    std::iter::once(first).chain(check.fix.iter().map(fix)).collect()
}
