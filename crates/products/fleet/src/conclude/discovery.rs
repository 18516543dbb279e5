//! Which effects are no chance: two gates, and a limit on the share of false discoveries.

use super::known_good::TOLERANCE_LN;
use super::spread::MEDIAN_FACTOR;
use linerate_model::stats::{adjusted, normal_below};

/// Effects that are slow enough to matter and stand out of the spread.
pub(super) struct Gates {
    /// Standard deviation of the rates that no effect explains, in the logarithm.
    pub(super) scale: f64,
}

/// An effect in the logarithm.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) effect: f64,
    /// Cells whose median it is; 0 of a single cell.
    pub(super) cells: usize,
}

/// Standard deviations of the spread that an effect exceeds.
const SCALES_MIN: f64 = 4.0;
/// Most false ones among what is found.
const FALSE_SHARE_MAX: f64 = 0.05;

impl Gates {
    pub(super) fn are_passed(&self, effect: f64) -> bool {
        effect < TOLERANCE_LN && effect < -SCALES_MIN * self.scale
    }

    fn p(&self, candidate: &Candidate) -> f64 {
        let deviation = match candidate.cells {
            0 => self.scale,
            cells => MEDIAN_FACTOR * self.scale / (cells as f64).sqrt(),
        };
        normal_below(candidate.effect / deviation)
    }
}

/// Significance of each candidate, corrected for their number (Benjamini and Hochberg, 1995), and
/// whether it is slow.
pub(super) fn slow(candidates: &[Candidate], gates: &Gates) -> Vec<(f64, bool)> {
    let p: Vec<f64> = candidates
        .iter()
        .map(|candidate| gates.p(candidate))
        .collect();
    let judged = |(candidate, p): (&Candidate, f64)| {
        (p, p < FALSE_SHARE_MAX && gates.are_passed(candidate.effect))
    };
    candidates.iter().zip(adjusted(&p)).map(judged).collect()
}
