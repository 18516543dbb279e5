//! Judges pairs of slots, in one of which the challenger of a trial was in force.

use super::load_sample::LoadSample;

/// Pairs before the first decision, but for an early rejection.
pub(super) const PAIRS_MIN: usize = 5;
/// Pairs after which there is a decision.
pub(super) const PAIRS_MAX: usize = 16;
/// Number of Walsh averages outside of either end of a one-sided 95 % interval, by number of
/// pairs from [`PAIRS_MIN`] on (critical values of the signed-rank statistic).
const RANKS_OUTSIDE: [usize; PAIRS_MAX - PAIRS_MIN + 1] =
    [0, 2, 3, 5, 8, 10, 13, 17, 21, 25, 30, 35];
/// A gain below 1 % is none.
const GAIN_MIN: f64 = 0.01;
/// Rates that differ by less are equal where CPU time decides.
const RATE_MARGIN: f64 = 0.03;
/// At equal rates, CPU time per byte must fall by 10 %.
const CPU_MARGIN: f64 = 0.1;
/// A challenger that loses 14 % in each of the first two pairs is rejected: more pairs would cost
/// more than a wrong rejection, which the next trial corrects.
const EARLY_REJECTION: f64 = -0.15;

/// Measurement of one slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    bytes_per_s: f64,
    cpu_ns_per_byte: f64,
}

/// Natural logarithms of challenger over current strategy.
#[derive(Debug)]
pub(super) struct Pair {
    pub rate: f64,
    cpu: f64,
}

impl Slot {
    /// `None` when nothing moved.
    pub(super) fn between(begin: LoadSample, end: LoadSample) -> Option<Self> {
        let bytes = end.bytes.saturating_sub(begin.bytes) as f64;
        let ns = end.at_ns.saturating_sub(begin.at_ns) as f64;
        let cpu_ns = end.cpu_ns.saturating_sub(begin.cpu_ns) as f64;
        (bytes > 0.0 && ns > 0.0).then(|| Self {
            bytes_per_s: bytes / ns * 1e9,
            // A nanosecond keeps the logarithm finite.
            cpu_ns_per_byte: (cpu_ns + 1.0) / bytes,
        })
    }
}

impl Pair {
    pub(super) fn of(challenger: Slot, current: Slot) -> Self {
        Self {
            rate: (challenger.bytes_per_s / current.bytes_per_s).ln(),
            cpu: (challenger.cpu_ns_per_byte / current.cpu_ns_per_byte).ln(),
        }
    }
}

/// True if the challenger is better; `None` while undecided.
pub(super) fn is_better(pairs: &[Pair]) -> Option<bool> {
    if pairs.len() >= 2 && pairs.iter().all(|pair| pair.rate < EARLY_REJECTION) {
        return Some(false);
    }

    let outside = *RANKS_OUTSIDE.get(pairs.len().checked_sub(PAIRS_MIN)?)?;
    let rate = Interval::of(pairs.iter().map(|pair| pair.rate), outside);
    let cpu = Interval::of(pairs.iter().map(|pair| pair.cpu), outside);
    let is_faster = rate.low > 0.0 && rate.middle > GAIN_MIN;

    let is_as_fast_and_cheaper = rate.low > -RATE_MARGIN && cpu.high < -CPU_MARGIN;
    if is_faster || is_as_fast_and_cheaper {
        Some(true)
    } else if rate.high < 0.0 {
        Some(false)
    } else {
        // Of two that noise cannot tell apart, the one that was ahead.
        (pairs.len() >= PAIRS_MAX).then_some(rate.low > -RATE_MARGIN && rate.middle > GAIN_MIN)
    }
}

/// Where the median of a symmetric distribution lies: the Hodges-Lehmann estimate and its one-sided
/// 95 % bounds.
struct Interval {
    low: f64,
    middle: f64,
    high: f64,
}

impl Interval {
    /// `outside` Walsh averages (means of two values or of one and itself) lie beyond each bound;
    /// there are more than twice as many.
    fn of(values: impl Iterator<Item = f64>, outside: usize) -> Self {
        let values: Vec<f64> = values.collect();
        let mut averages: Vec<f64> = (0..values.len())
            .flat_map(|i| values[i..].iter().map(move |other| (i, *other)))
            .map(|(i, other)| (values[i] + other) / 2.0)
            .collect();
        averages.sort_unstable_by(f64::total_cmp);

        Self {
            low: averages[outside],
            middle: averages[averages.len() / 2],
            high: averages[averages.len() - 1 - outside],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_of_a_few_values() {
        let interval = Interval::of([1.0, 2.0, 3.0, 4.0, 5.0].into_iter(), 0);
        assert_eq!(
            (interval.low, interval.middle, interval.high),
            (1.0, 3.0, 5.0)
        );
    }
}
