//! The report of a study as Markdown, for a page somebody writes around it.

use std::fmt::Write;

use linerate_model::http::Study;

use super::chapters::chapters;
use super::table::marked_down;
use super::tables;
use super::text::head;

/// Chapters with their tables; plots are the HTML report's.
#[must_use]
pub fn markdown(study: &Study) -> String {
    let mut out = String::new();
    for (place, line) in head(study).iter().enumerate() {
        let mark = if place == 0 { "# " } else { "" };
        let _ = writeln!(out, "{mark}{}\n", marked_down(line));
    }
    for chapter in chapters(study) {
        let _ = writeln!(out, "## {}\n\n{}\n", chapter.heading, marked_down(&chapter.sentence));
        for table in &chapter.tables {
            table.markdown(&mut out);
        }
    }
    let preflight = tables::preflight(study);
    for table in preflight.into_iter().chain([tables::environment(study)]) {
        table.markdown(&mut out);
    }
    out
}
