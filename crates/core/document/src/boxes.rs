//! Distributions as rows with a box and whiskers, on one axis.

use crate::chart::Axis;

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

impl Boxes {
    /// Smallest and largest end.
    pub(crate) fn range(&self) -> (f64, f64) {
        let ends = self.rows.iter().map(|row| row.whisker);
        ends.fold((f64::INFINITY, f64::NEG_INFINITY), |all, one| {
            (all.0.min(one.0), all.1.max(one.1))
        })
    }
}
