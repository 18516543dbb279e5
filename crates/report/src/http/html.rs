//! The report of a study as one HTML file: no script, nothing loaded from elsewhere, light or dark as the reader's
//! system is.

use std::fmt::Write;

use linerate_model::http::Study;

use crate::page::{self, escaped};

use super::chapters::chapters;
use super::plots::plots;
use super::style::shortened;
use super::tables;
use super::text::head;

/// Most bytes of a plan that are shown; a plan written by hand has a few thousand.
const PLAN_BYTES_MAX: usize = 64 << 10;

/// The report as a whole document.
#[must_use]
pub fn html(study: &Study) -> String {
    let mut out = page::begin("linerate http lab");
    for (place, line) in head(study).iter().enumerate() {
        let line = escaped(&shortened(line));
        let _ = match place {
            0 => writeln!(out, "<h1>{line}</h1>"),
            _ => writeln!(out, "<p class=\"remark\">{line}</p>"),
        };
    }
    for chapter in chapters(study) {
        let _ = writeln!(
            out,
            "<h2>{}</h2>\n<p><strong>{}</strong></p>",
            escaped(chapter.heading),
            escaped(&shortened(&chapter.sentence))
        );
        for table in &chapter.tables {
            table.html(&mut out);
        }
    }
    out.push_str("<h2>Plots</h2>\n");
    for plot in plots(study) {
        plot.html(&mut out);
    }
    appendix(&mut out, study);
    out.push_str(page::END);
    out
}

fn appendix(out: &mut String, study: &Study) {
    out.push_str("<h2>Preflight and environment</h2>\n");
    if let Some(table) = tables::preflight(study) {
        table.html(out);
    }
    tables::environment(study).html(out);
    let plan = match study.plan.char_indices().find(|(place, _)| *place >= PLAN_BYTES_MAX) {
        Some((place, _)) => study.plan.get(..place).unwrap_or_default(),
        None => &study.plan,
    };
    let _ = writeln!(
        out,
        "<details><summary>Plan</summary><pre>{}</pre></details>",
        escaped(plan)
    );
}
