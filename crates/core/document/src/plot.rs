//! Drawings that belong together, with their title and what a reader must know.

use std::fmt::Write;

use crate::page::escaped;

use crate::chart::Chart;
use crate::draw;
use crate::style::{Style, shortened};
use crate::wrap::wrapped;

/// Drawings that belong together.
pub struct Plot {
    /// Subject.
    pub title: String,
    /// Meaning of its lines and marks.
    pub key: &'static str,
    /// Over how many runs, and what a reader must know.
    pub note: String,
    /// One below another, with one time axis.
    pub charts: Vec<Chart>,
}

impl Plot {
    /// A plot of one drawing; none without a curve.
    pub fn of(title: &str, key: &'static str, note: String, chart: Chart) -> Option<Self> {
        let chart = chart.checked().filter(Chart::has_curve)?;
        Some(Self {
            title: title.to_owned(),
            key,
            note,
            charts: vec![chart],
        })
    }

    /// As HTML with inline SVG.
    pub fn html(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "<figure><figcaption>{} <small>({}{})</small></figcaption>",
            escaped(&shortened(&self.title)),
            escaped(self.key),
            escaped(&shortened(&self.note))
        );
        for chart in &self.charts {
            let name = if chart.name.is_empty() { "" } else { ": " };
            let label = format!("{}{name}{}; {}", self.title, chart.name, self.note);
            draw::svg(out, chart, &self.title, &label);
        }

        out.push_str("</figure>\n");
    }

    /// As bars for a terminal.
    pub fn text(&self, style: Style) -> String {
        let mut out = String::new();
        for line in wrapped(
            &style.line(&format!("{} ({})", self.title, self.note)),
            style.columns,
        ) {
            let _ = writeln!(out, "{line}");
        }

        for bar in self
            .charts
            .iter()
            // Curves are drawings: a terminal shows charts of bars alone.
            .filter(|chart| chart.has_bars)
            .flat_map(|chart| chart.bars(style))
        {
            let _ = writeln!(out, "{bar}");
        }

        out
    }
}
