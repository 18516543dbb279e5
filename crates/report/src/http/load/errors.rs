//! What failed in a run, and whose that is.

use linerate_model::http::{ErrorCounts, LoadResult};

use super::lines::Lines;
use crate::document::table::{Column, Table};
use crate::http::labels;
use crate::http::numbers::grouped;

/// A row for each kind with the first texts; nothing where all went well.
pub(super) fn write_errors(out: &mut Lines, load: &LoadResult) {
    if load.errors.total() == 0 {
        return;
    }
    out.text.push('\n');
    let rows = load.errors.iter().flat_map(|(class, error)| {
        let first = vec![
            class.name().into(),
            grouped(error.count).into(),
            labels::belongs_to(class).into(),
        ];
        let texts = error.texts.iter().take(ErrorCounts::TEXTS_MAX);
        let texts = texts.map(|text| vec!["".into(), "".into(), format!("\"{text}\"").into()]);
        std::iter::once(first).chain(texts).collect::<Vec<_>>()
    });
    let table = Table {
        id: "failures",
        title: "of requests and connections".to_owned(),
        columns: vec![
            Column::Text("kind"),
            Column::Number("count".to_owned()),
            Column::Text("whose, and what was said"),
        ],
        rows: rows.collect(),
        notes: Vec::new(),
    };
    out.text.push_str(&table.text(out.style));
}
