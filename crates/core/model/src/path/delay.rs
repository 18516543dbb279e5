//! Distribution of a delay.

use linerate_macros::{sparse, stored};

/// Distribution of a delay, in ns. Percentiles are nearest-rank values of all samples, lost ones
/// counted as infinite; one is absent with fewer than three samples beyond it, or where it would be
/// infinite.
#[sparse]
#[stored(Copy, Default)]
pub struct Delay {
    /// Samples that arrived.
    pub n: u64,
    /// Samples that did not.
    pub lost: u64,
    /// Smallest.
    pub min_ns: Option<i64>,
    /// Mean of those that arrived.
    pub mean_ns: Option<i64>,
    /// Mean of those that arrived without the largest 5 %.
    pub trimmed_mean_ns: Option<i64>,
    /// 50 %.
    pub p50_ns: Option<i64>,
    /// 90 %.
    pub p90_ns: Option<i64>,
    /// 95 %.
    pub p95_ns: Option<i64>,
    /// 99 %.
    pub p99_ns: Option<i64>,
    /// 99.9 %.
    pub p999_ns: Option<i64>,
    /// Largest.
    pub max_ns: Option<i64>,
    /// The true values may be larger or smaller by this, beyond the resolution of the clocks.
    pub error_ns: Option<u64>,
}

impl Delay {
    /// Distribution of the delays that arrived, in ns, and of `lost` more that count as infinite.
    pub fn of(arrived_ns: &[i64], lost: u64) -> Self {
        let mut sorted = arrived_ns.to_vec();
        sorted.sort_unstable();
        let at = |per_mille| percentile(&sorted, lost, per_mille);
        Self {
            n: sorted.len() as u64,
            lost,
            min_ns: sorted.first().copied(),
            mean_ns: mean(&sorted),
            trimmed_mean_ns: mean(without_largest(&sorted)),
            p50_ns: at(500),
            p90_ns: at(900),
            p95_ns: at(950),
            p99_ns: at(990),
            p999_ns: at(999),
            max_ns: sorted.last().copied(),
            error_ns: None,
        }
    }
}

/// Mean of the delays without the largest 5 %, in ns: TM of draft-ietf-ippm-responsiveness-09.
/// `None` of nothing.
pub fn trimmed_mean(arrived_ns: &[i64]) -> Option<i64> {
    let mut sorted = arrived_ns.to_vec();
    sorted.sort_unstable();
    mean(without_largest(&sorted))
}

/// Nearest-rank percentile of sorted samples followed by `lost` infinite ones. `None` where it is
/// infinite or fewer than three samples lie beyond it.
pub fn percentile(sorted_ns: &[i64], lost: u64, per_mille: u64) -> Option<i64> {
    let all = (sorted_ns.len() as u64).saturating_add(lost);
    // A lost sample is larger than every other: its rank lies beyond those that arrived.
    let rank = u64::try_from((u128::from(all) * u128::from(per_mille)).div_ceil(1000)).ok()?;
    let is_judged = rank > 0 && all.saturating_sub(rank) >= SAMPLES_BEYOND_MIN;
    let index = usize::try_from(rank.checked_sub(1).filter(|_| is_judged)?).ok()?;
    sorted_ns.get(index).copied()
}

fn without_largest(sorted_ns: &[i64]) -> &[i64] {
    sorted_ns
        .get(..sorted_ns.len() - sorted_ns.len() / TRIMMED_ONE_IN)
        .unwrap_or_default()
}

fn mean(values_ns: &[i64]) -> Option<i64> {
    let count = i128::try_from(values_ns.len())
        .ok()
        .filter(|count| *count > 0)?;
    // The sum of times can exceed 64 bits.
    let sum: i128 = values_ns.iter().map(|ns| i128::from(*ns)).sum();
    i64::try_from(sum / count).ok()
}

/// Fewest samples that lie beyond a percentile.
const SAMPLES_BEYOND_MIN: u64 = 3;

/// Share of the largest samples that a trimmed mean leaves out, as its reciprocal
/// (draft-ietf-ippm-responsiveness-09: the mean up to the 95th percentile).
const TRIMMED_ONE_IN: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks_with_three_samples_beyond() {
        let samples: Vec<i64> = (1..=1000).collect();
        let table = [
            (500, Some(500)),
            (900, Some(900)),
            (950, Some(950)),
            (990, Some(990)),
            (997, Some(997)),
            (998, None),
        ];
        for (per_mille, expected) in table {
            assert_eq!(
                percentile(&samples, 0, per_mille),
                expected,
                "{per_mille} per mille"
            );
        }

        // Rank 3 of 6 leaves three beyond; rank 3 of 5 leaves two.
        assert_eq!(percentile(&[1, 2, 3, 4, 5, 6], 0, 500), Some(3));
        assert_eq!(percentile(&[1, 2, 3, 4, 5], 0, 500), None);
    }

    #[test]
    fn lost_samples_are_the_largest() {
        // 90 of 100 arrived: the 90th is the largest that did, the 95th is infinite.
        let samples: Vec<i64> = (1..=90).collect();
        assert_eq!(percentile(&samples, 10, 900), Some(90));
        assert_eq!(percentile(&samples, 10, 950), None);

        let all = Delay::of(&samples, 10);
        assert_eq!(
            (all.n, all.lost, all.p50_ns, all.p95_ns, all.max_ns),
            (90, 10, Some(50), None, Some(90))
        );
    }

    #[test]
    fn trimmed_means_leave_out_one_in_twenty() {
        let mut samples = vec![10; 19];
        samples.push(1_000_000);
        assert_eq!(trimmed_mean(&samples), Some(10));

        // Of 19 samples none is left out: (18 x 10 + 200) / 19 = 20.
        let mut few = vec![10; 18];
        few.push(200);
        assert_eq!(trimmed_mean(&few), Some(20));
        assert_eq!(trimmed_mean(&[]), None);
        assert_eq!(
            Delay::of(&[], 3),
            Delay {
                lost: 3,
                ..Delay::default()
            }
        );
    }
}
