//! Which of several rates are slow and no chance: two gates, and a limit on the share of false
//! discoveries. Effects are logarithms.

use crate::stats::{adjusted, median, median_deviation, normal_below};

/// Effects that are slow enough to matter and stand out of the spread.
#[derive(Debug, Clone, Copy)]
pub struct Gates {
    /// Standard deviation of the rates that no effect explains, in the logarithm.
    pub scale: f64,
}

/// An effect in the logarithm.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    /// Distance to the reference.
    pub effect: f64,
    /// Cells whose median it is; 0 of a single cell.
    pub cells: usize,
}

/// Rates within 5 % of each other are equal.
pub const TOLERANCE_LN: f64 = -0.051_293_294_387_550_58;
/// Standard deviation of a median over that of a mean of as many values.
pub const MEDIAN_FACTOR: f64 = 1.2533;
/// Standard deviation of normal noise over the median of its absolute values.
const DEVIATION_FACTOR: f64 = 1.4826;
/// Standard deviations of the spread that an effect exceeds.
const SCALES_MIN: f64 = 4.0;
/// Most false ones among what is found.
const FALSE_SHARE_MAX: f64 = 0.05;

impl Gates {
    /// True if an effect passes both.
    pub fn are_passed(&self, effect: f64) -> bool {
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
pub fn slow(candidates: &[Candidate], gates: &Gates) -> Vec<(f64, bool)> {
    let p: Vec<f64> = candidates
        .iter()
        .map(|candidate| gates.p(candidate))
        .collect();
    let judged = |(candidate, p): (&Candidate, f64)| {
        (p, p < FALSE_SHARE_MAX && gates.are_passed(candidate.effect))
    };
    candidates.iter().zip(adjusted(&p)).map(judged).collect()
}

/// Standard deviation by the median of absolute deviations; `None` without values.
pub fn scale(values: &[f64]) -> Option<f64> {
    Some(DEVIATION_FACTOR * median_deviation(values)?)
}

/// Scale of what the effects do not explain, from the residuals of cells between cleared ends and
/// from those of all cells: few cells of cleared ends may agree by chance.
pub fn residual_scale(cleared: &[f64], all: &[f64]) -> f64 {
    let scales = [cleared, all].into_iter().filter_map(|residuals| {
        let few = 1.0 + CELLS_LOST / residuals.len() as f64;
        Some(scale(residuals)? * few)
    });
    scales.fold(SCALE_MIN, f64::max)
}

/// The effects are fitted to the cells, and the tails of a scale from few cells are heavy: of 12
/// cells it is a third larger.
const CELLS_LOST: f64 = 4.0;
/// No scale is smaller: rates differ by as much from one test to the next.
const SCALE_MIN: f64 = 0.005;
/// Hosts in which the reference rests on more than one other.
pub const HOSTS_SURE_MIN: usize = 4;

/// Of rates that should be equal those that are slow, as the change to their median; `None` for each
/// of the others, and for all where there are few.
pub fn slow_rates(rates: &[f64]) -> Vec<Option<f64>> {
    let logarithms: Vec<f64> = rates.iter().map(|rate| rate.max(1.0).ln()).collect();
    let Some(reference) = median(&logarithms).filter(|_| rates.len() >= HOSTS_SURE_MIN) else {
        return vec![None; rates.len()];
    };
    let effects: Vec<f64> = logarithms.iter().map(|rate| rate - reference).collect();
    let gates = Gates {
        scale: residual_scale(&[], &effects),
    };
    let candidates: Vec<Candidate> = effects
        .iter()
        .map(|effect| Candidate {
            effect: *effect,
            cells: 0,
        })
        .collect();
    let judged = slow(&candidates, &gates).into_iter().zip(effects);
    judged
        .map(|((_, is_slow), effect)| is_slow.then(|| effect.exp_m1()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_at_100_mbit_is_slow_and_a_spread_is_not() {
        let mut rates = vec![940e6, 935e6, 938e6, 941e6, 94e6, 930e6];
        let slow = slow_rates(&rates);
        assert!(slow[4].is_some_and(|change| (change + 0.9).abs() < 0.01));
        assert_eq!(slow.iter().flatten().count(), 1);
        assert_eq!(slow_rates(&rates[3..]), [None; 3], "few hosts");
        rates = vec![900e6, 500e6, 700e6, 300e6, 800e6];
        assert_eq!(slow_rates(&rates), [None; 5]);
        assert_eq!(slow_rates(&[]), []);
    }
}
