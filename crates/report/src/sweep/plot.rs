//! Bars for a terminal.

use crate::glyphs::Glyphs;
use linerate_lab::sweep::{FactorReport, Objective};

use super::values;

/// Cells of the longest bar.
const WIDTH: usize = 40;
/// One bar per level, from 0, as long as its median.
pub(super) fn bars(factor: &FactorReport, objective: Objective, glyphs: Glyphs) -> String {
    let highest = factor.levels.iter().map(|level| level.median).fold(0.0, f64::max);
    let width = factor.levels.iter().map(|level| level.label.len()).max().unwrap_or(0);
    let mut out = String::new();
    for (place, level) in factor.levels.iter().enumerate() {
        let share = if highest > 0.0 { level.median / highest } else { 0.0 };
        let mark = if place == factor.advised { '*' } else { ' ' };
        out.push_str(&format!(
            "{mark} {:>width$} {} {}\n",
            level.label,
            glyphs.bar(share, WIDTH),
            values::value(objective, level.median)
        ));
    }
    out
}
