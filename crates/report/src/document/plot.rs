//! Drawings that belong together, with their title and what a reader must know.

use std::fmt::Write;

use crate::page::escaped;

use super::chart::Chart;
use super::style::{Style, shortened};
use super::svg;
use super::wrap::{LINE_CHARS, wrapped};

/// Drawings that belong together.
pub(crate) struct Plot {
    /// Its number; absent where it is the only one.
    pub number: Option<usize>,
    /// What it shows.
    pub title: String,
    /// What its lines and marks mean.
    pub key: &'static str,
    /// Over how many runs, and what a reader must know.
    pub note: String,
    pub charts: Vec<Chart>,
}

impl Plot {
    /// A plot of one drawing; none where nothing was measured.
    pub(crate) fn of(number: usize, title: &str, key: &'static str, note: String, chart: Chart) -> Option<Self> {
        Some(Self { number: Some(number), title: title.to_owned(), key, note, charts: vec![chart.checked()?] })
    }

    /// As HTML with inline SVG.
    pub(crate) fn html(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "<figure><figcaption>{}{} <small>({}{})</small></figcaption>",
            self.prefix(),
            escaped(&shortened(&self.title)),
            escaped(self.key),
            escaped(&shortened(&self.note))
        );
        for chart in &self.charts {
            let name = if chart.name.is_empty() { "" } else { ": " };
            let label = format!("{}{name}{}; {}", self.title, chart.name, self.note);
            svg::svg(out, chart, &label);
        }
        out.push_str("</figure>\n");
    }

    /// As bars for a terminal, or as small curves where no chart has bars.
    pub(crate) fn text(&self, style: Style) -> String {
        let mut out = String::new();
        let title = style.line(&format!("{}{} ({})", self.prefix(), self.title, self.note));
        for line in wrapped(&title, LINE_CHARS) {
            let _ = writeln!(out, "{line}");
        }
        for bar in self.charts.iter().filter(|chart| chart.has_bars).flat_map(|chart| chart.bars(style)) {
            let _ = writeln!(out, "{bar}");
        }
        let has_bars = self.charts.iter().any(|chart| chart.has_bars);
        let curves: Vec<_> = self.charts.iter().filter(|_| !has_bars).flat_map(|chart| chart.curves(style)).collect();
        let width = curves.iter().map(|curve| curve.name.chars().count()).max().unwrap_or(0);
        for curve in curves {
            let line = format!("  {:<width$} {} {}", curve.name, curve.line, curve.ends);
            // Names of cells are short; this bounds those of a hostile file.
            let _ = writeln!(out, "{}", line.chars().take(LINE_CHARS).collect::<String>());
        }
        out
    }

    fn prefix(&self) -> String {
        self.number.map_or_else(String::new, |number| format!("P{number} "))
    }
}
