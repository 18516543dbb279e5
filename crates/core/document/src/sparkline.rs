//! Lines of points as characters: one row, or several.

use crate::charset::Glyphs;

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const LETTERS: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];

/// The newest points in one row of at most `width` characters, the highest point at full height.
pub fn row(values: impl DoubleEndedIterator<Item = f64>, width: usize, glyphs: Glyphs) -> String {
    let values = newest(values, width);
    let max = maximum(&values);
    values
        .iter()
        .map(|value| level(share(*value, max), glyphs))
        .collect()
}

/// One character for a share, 0..=1.
pub fn level(share: f64, glyphs: Glyphs) -> char {
    let ramp = ramp(glyphs);
    // A share of 1 is the last place of the ramp.
    let at = (share.clamp(0.0, 1.0) * (ramp.len() - 1) as f64).round() as usize;
    ramp.get(at).copied().unwrap_or(' ')
}

/// The newest points as columns in `height` rows, from the top, each as wide as there are points;
/// the axis begins at 0.
pub fn rows(
    values: impl DoubleEndedIterator<Item = f64>,
    width: usize,
    height: usize,
    glyphs: Glyphs,
) -> Vec<String> {
    let values = newest(values, width);
    let max = maximum(&values);
    let steps = ramp(glyphs).len();
    let row = |from_top: usize| {
        let below = (height - 1 - from_top) * steps;
        let cell = |value: &f64| {
            let filled = (share(*value, max) * (height * steps) as f64).round() as usize;
            // A point at zero is still a point.
            let filled = filled.max(1).saturating_sub(below).min(steps);
            filled
                .checked_sub(1)
                .and_then(|at| ramp(glyphs).get(at).copied())
                .unwrap_or(' ')
        };
        values.iter().map(cell).collect()
    };

    (0..height).map(row).collect()
}

fn ramp(glyphs: Glyphs) -> &'static [char; 8] {
    match glyphs {
        Glyphs::Blocks => &BLOCKS,
        Glyphs::Ascii => &LETTERS,
    }
}

fn newest(values: impl DoubleEndedIterator<Item = f64>, width: usize) -> Vec<f64> {
    let mut newest: Vec<f64> = values.rev().take(width).collect();
    newest.reverse();
    newest
}

/// The highest point.
pub fn maximum(values: &[f64]) -> f64 {
    values
        .iter()
        .copied()
        .filter(|value| value.is_finite())
        .fold(0.0, f64::max)
}

fn share(value: f64, max: f64) -> f64 {
    if max > 0.0 && value.is_finite() {
        (value / max).clamp(0.0, 1.0)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_points_fit_the_row() {
        let values = [9.0, 0.0, 5.0, 10.0];
        assert_eq!(row(values.into_iter(), 3, Glyphs::Blocks), "▁▅█");
        assert_eq!(row(values.into_iter(), 3, Glyphs::Ascii), "_=#");
        assert_eq!(row([f64::NAN].into_iter(), 3, Glyphs::Ascii), "_");
        assert_eq!(row([].into_iter(), 3, Glyphs::Ascii), "");
    }

    #[test]
    fn rows_share_one_axis() {
        assert_eq!(
            rows([0.0, 5.0, 10.0].into_iter(), 80, 2, Glyphs::Ascii),
            ["  #", "_##"]
        );
    }
}
