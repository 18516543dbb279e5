//! Distributions as rows with a box and whiskers, on one axis.

use crate::chart::{Axis, bounds};

/// Distributions of one quantity.
pub struct Boxes {
    /// Subject.
    pub title: String,
    /// Meaning of box and whiskers.
    pub note: String,
    /// Left to right.
    pub axis: Axis,
    /// From top to bottom.
    pub rows: Vec<BoxRow>,
}

/// One distribution.
pub struct BoxRow {
    /// Its name.
    pub name: String,
    /// Its values in words, beside it.
    pub text: String,
    /// All of its values, while the pointer is on it.
    pub title: String,
    /// That of the series of the same thing.
    pub hue: usize,
    /// The median.
    pub median: f64,
    /// Ends of the box.
    pub interval: (f64, f64),
    /// Ends of the whiskers.
    pub whisker: (f64, f64),
}

/// Smallest and largest end of the whiskers.
pub fn ends(rows: &[BoxRow]) -> (f64, f64) {
    bounds(rows.iter().flat_map(|row| <[f64; 2]>::from(row.whisker)))
}
