//! The plots of a study: each is data first, then a drawing, small curves or a table.

mod chart;
mod cpu;
mod knee;
mod latency;
mod memory;
mod payload;
mod quantiles;
mod scale;
mod svg;
mod throughput;
mod time;

use std::fmt::Write;

use linerate_model::http::Study;

use crate::page::escaped;

use super::style::{Style, shortened};
use super::wrap::{LINE_CHARS, wrapped};
use chart::Chart;

/// Drawings that belong together.
pub(super) struct Plot {
    number: usize,
    /// What it shows.
    title: String,
    /// What its lines and marks mean.
    key: &'static str,
    /// Over how many runs, and what a reader must know.
    note: String,
    charts: Vec<Chart>,
}

/// The plots for which there are figures.
pub(super) fn plots(study: &Study) -> Vec<Plot> {
    let mut plots = vec![
        throughput::throughput(study),
        latency::latency(study),
        payload::payload(study),
        memory::memory(study),
        quantiles::quantiles(study),
    ];
    plots.extend(time::time(study).into_iter().map(Some));
    plots.extend([knee::knee(study), cpu::cpu(study)]);
    plots.into_iter().flatten().collect()
}

impl Plot {
    /// A plot of one drawing; none where nothing was measured.
    fn of(number: usize, title: &str, key: &'static str, note: String, chart: Chart) -> Option<Self> {
        Some(Self {
            number,
            title: title.to_owned(),
            key,
            note,
            charts: vec![chart.checked()?],
        })
    }

    /// As HTML with inline SVG.
    pub(super) fn html(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "<figure><figcaption>P{} {} <small>({}{})</small></figcaption>",
            self.number,
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

    /// As small curves for a terminal.
    pub(super) fn text(&self, style: Style) -> String {
        let mut out = String::new();
        let title = style.line(&format!("P{} {} ({})", self.number, self.title, self.note));
        for line in wrapped(&title, LINE_CHARS) {
            let _ = writeln!(out, "{line}");
        }
        let curves: Vec<_> = self.charts.iter().flat_map(|chart| chart.curves(style)).collect();
        let width = curves.iter().map(|curve| curve.name.chars().count()).max().unwrap_or(0);
        for curve in curves {
            let line = format!("  {:<width$} {} {}", curve.name, curve.line, curve.ends);
            // Names of cells are short; this bounds what a hostile file says.
            let _ = writeln!(out, "{}", line.chars().take(LINE_CHARS).collect::<String>());
        }
        out
    }
}
