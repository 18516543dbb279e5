//! T0: TCP without HTTP.

use linerate_model::http::{Baseline, Study};

use crate::document::table::{Cell, Column, Table, numbers};
use crate::http::numbers::{cpus, grouped, known, percent};
use crate::numbers::rate;

/// One row per test; none without any.
pub(in crate::http) fn baseline(study: &Study) -> Option<Table> {
    let heads = [
        "streams",
        "goodput",
        "of theory",
        "resent segments",
        "resent share",
        "server CPU",
        "client CPU",
    ];
    (!study.baseline.is_empty()).then(|| Table {
        id: "T0",
        title: "TCP without HTTP: received payload per second".to_owned(),
        columns: std::iter::once(Column::Text("sender")).chain(numbers(heads)).collect(),
        rows: study.baseline.iter().map(row).collect(),
        notes: vec![
            "theory: what frames of this size let through on this link; CPU: 100 % is one processor".to_owned(),
        ],
    })
}

fn row(test: &Baseline) -> Vec<Cell> {
    vec![
        if test.is_reverse { "server" } else { "client" }.into(),
        test.streams.to_string().into(),
        rate(test.goodput_bps).into(),
        known(test.of_theory, percent).into(),
        known(test.retransmits, grouped).into(),
        known(test.retransmit_share, percent).into(),
        known(test.server_cpus, cpus).into(),
        known(test.client_cpus, cpus).into(),
    ]
}
