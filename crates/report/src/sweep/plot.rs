//! Bars for a terminal.

use super::model::FactorReport;
use super::model::Objective;

/// What bars are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Glyphs {
    /// Eighths of a block, where the locale is UTF-8.
    Blocks,
    /// Characters that every terminal has.
    Ascii,
}

/// Cells of the longest bar.
const WIDTH: usize = 40;
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// One bar per level, from 0, as long as its median.
pub(super) fn bars(factor: &FactorReport, objective: Objective, glyphs: Glyphs) -> String {
    let highest = factor.levels.iter().map(|level| level.median).fold(0.0, f64::max);
    let width = factor.levels.iter().map(|level| level.label.len()).max().unwrap_or(0);
    let mut out = String::new();
    for (place, level) in factor.levels.iter().enumerate() {
        let share = if highest > 0.0 {
            (level.median / highest).clamp(0.0, 1.0)
        } else {
            0.0
        };
        let mark = if place == factor.advised { '*' } else { ' ' };
        out.push_str(&format!(
            "{mark} {:>width$} {} {}\n",
            level.label,
            bar(share, glyphs),
            objective.value(level.median)
        ));
    }
    out
}

fn bar(share: f64, glyphs: Glyphs) -> String {
    match glyphs {
        Glyphs::Blocks => {
            let eighths = (share * (WIDTH * 8) as f64).round() as usize;
            format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
        }
        Glyphs::Ascii => "#".repeat((share * WIDTH as f64).round() as usize),
    }
}
