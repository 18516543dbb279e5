//! Medians, intervals that hold them, and tests whether one of two samples is higher. All are exact
//! at any number of runs and assume no shape of the noise.

pub use crate::numbers::Interval;

/// The middle value; the mean of the two in the middle for an even number; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    median_in(&mut values.to_vec())
}

/// `(max − min) / median`; `None` of fewer than two values and of a median of 0 or less.
pub fn relative_spread(values: &[f64]) -> Option<f64> {
    // A share of 0, or of a negative median, has no meaning.
    let middle = median(values).filter(|middle| *middle > 0.0 && values.len() > 1)?;
    range(values).map(|range| (range.high - range.low) / middle)
}

/// Least and greatest value; `None` of nothing.
pub fn range(values: &[f64]) -> Option<Interval> {
    let ends = values.iter().map(|value| Interval {
        low: *value,
        high: *value,
    });
    ends.reduce(|all, one| Interval {
        low: all.low.min(one.low),
        high: all.high.max(one.high),
    })
}

/// Fewest values that allow an interval of this confidence: with one fewer, all lie on one side of
/// the median too often.
pub fn values_min(confidence: f64) -> usize {
    // All of n values lie on one side of the median with a chance of 2^(1 - n).
    1 + (1.0 - confidence).log2().abs().ceil() as usize
}

/// Interval that holds the median with this confidence: between two order statistics (David and
/// Nagaraja, "Order Statistics", section 7.1). `None` of fewer values than [`values_min`].
pub fn median_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let runs = sorted.len();
    if runs < values_min(confidence) {
        return None;
    }

    // Logarithm of the chance that exactly `cut` values lie below the median, and the sum of these
    // chances.
    let mut chance_ln = runs as f64 * 0.5_f64.ln();
    let mut below = chance_ln.exp();
    let mut cut = 0;

    loop {
        chance_ln += ((runs - cut) as f64 / (cut + 1) as f64).ln();
        below += chance_ln.exp();
        // The chances up to the middle add up to one half, so that the loop ends there.
        if 2.0 * below > 1.0 - confidence {
            return Some(Interval {
                low: sorted[cut],
                high: sorted[runs - 1 - cut],
            });
        }

        cut += 1;
    }
}

/// Confidence that `candidate` is at least `share` of `other`: one minus the one-sided significance
/// of the rank-sum test (Mann and Whitney, 1947). Ties count half.
pub fn confidence_as_good(candidate: &[f64], other: &[f64], share: f64) -> f64 {
    let pairs = candidate.iter().flat_map(|own| {
        other
            .iter()
            .map(move |other| own.total_cmp(&(share * other)))
    });
    let halves: usize = pairs
        .map(|order| 2 * usize::from(order.is_gt()) + usize::from(order.is_eq()))
        .sum();
    // Half a pair is rounded down, against the candidate.
    share_below(halves / 2, candidate.len(), other.len())
}

/// Most by which `other` may be higher than `candidate`, as a share of `candidate`, with this
/// confidence: the one-sided bound of the shift by the rank-sum test. Values are above 0. `None` of
/// too few values; 0 where `other` is lower.
pub fn excess_max(candidate: &[f64], other: &[f64], confidence: f64) -> Option<f64> {
    let pairs = candidate
        .iter()
        .flat_map(|own| other.iter().map(move |other| other / own));
    let mut ratios: Vec<f64> = pairs.collect();
    ratios.sort_unstable_by(f64::total_cmp);

    // The candidate wins a pair when its value times the bound is the higher one.
    let won = (1..=ratios.len())
        .find(|won| share_below(*won, candidate.len(), other.len()) >= confidence)?;
    Some((ratios[won - 1] - 1.0).max(0.0))
}

/// Trend over time that several samples share, each in the order of time: the two-sided
/// significance of the sum of Kendall's statistics (Hirsch, Slack and Smith, 1982), by the normal
/// distribution. 1 of values without an order.
pub fn trend_p(samples: &[Vec<f64>]) -> f64 {
    let mut sum = 0.0_f64;
    let mut variance = 0.0;
    for values in samples {
        for (place, earlier) in values.iter().enumerate() {
            let later = &values[place + 1..];
            let rises = later.iter().filter(|value| *value > earlier).count() as f64;
            let falls = later.iter().filter(|value| *value < earlier).count() as f64;
            sum += rises - falls;
        }

        let n = values.len() as f64;
        variance += n * (n - 1.0) * (2.0 * n + 5.0) / 18.0;
    }

    // Correction for continuity: the sum moves in steps of two. Without variance z is not used.
    let z = (sum.abs() - 1.0).max(0.0) / variance.sqrt();
    if variance > 0.0 {
        (2.0 * normal_below(-z)).min(1.0)
    } else {
        1.0
    }
}

/// Ratio of a candidate to `other`, as [`shift_interval`] has it. Values are above
/// 0; `None` of too few.
pub fn ratio_interval(
    candidate: &[f64],
    other: &[f64],
    confidence: f64,
) -> Option<(f64, Interval)> {
    let (middle, interval) =
        shift_interval(candidate, other, confidence, |own, other| own / other)?;
    Some((middle, interval?))
}

/// Shift of a candidate from `other`: the median of the effects of all pairs, and the interval
/// that holds the true effect with this confidence, by the rank-sum test (Hodges and Lehmann,
/// 1963); `None` of too few values for it. `effect` grows with its first value and falls with its
/// second.
pub fn shift_interval(
    candidate: &[f64],
    other: &[f64],
    confidence: f64,
    effect: impl Fn(f64, f64) -> f64,
) -> Option<(f64, Option<Interval>)> {
    let pairs = candidate
        .iter()
        .flat_map(|own| other.iter().map(move |other| (*own, *other)));
    let mut effects: Vec<f64> = pairs.map(|(own, other)| effect(own, other)).collect();
    // The median leaves the effects sorted, which the interval below needs.
    let middle = median_in(&mut effects)?;
    let is_outside =
        |won: &usize| 2.0 * share_below(*won, candidate.len(), other.len()) <= 1.0 - confidence;
    let outside = (1..=effects.len() / 2).take_while(is_outside).last();
    let interval = outside.map(|n| Interval {
        low: effects[n - 1],
        high: effects[effects.len() - n],
    });

    Some((middle, interval))
}

/// Two-sided significance of the rank-sum test (Mann and Whitney, 1947): how often two samples of
/// one distribution lie this far apart. Ties have the mean of their ranks. Exact up to 40 values,
/// normal beyond.
pub fn rank_sum_p(a: &[f64], b: &[f64]) -> f64 {
    let ranks = doubled_ranks(a, b);
    let n = a.len();
    let all = ranks.len();
    let sum: usize = ranks[..n].iter().sum();

    // Twice the mean of the doubled sum, which has the same distance to both tails.
    let mean = n * (all + 1);
    let distance = sum.abs_diff(mean);

    if all > VALUES_COUNTED_MAX {
        let squares: f64 = ranks
            .iter()
            .map(|rank| (*rank as f64 - (all + 1) as f64).powi(2))
            .sum();
        let deviation =
            (n as f64 * b.len() as f64 * squares / (all as f64 * (all - 1) as f64)).sqrt();
        // Correction for continuity: half a rank is one of the doubled ones.
        let z = (distance as f64 - 1.0).max(0.0) / deviation;
        return if deviation > 0.0 {
            (2.0 * normal_below(-z)).min(1.0)
        } else {
            1.0
        };
    }

    let ways = ways_of_sums(&ranks, n);
    let far = ways
        .iter()
        .enumerate()
        .filter(|(sum, _)| sum.abs_diff(mean) >= distance);
    far.map(|(_, ways)| ways).sum::<f64>() / ways.iter().sum::<f64>()
}

/// Most values of two samples whose arrangements are counted.
const VALUES_COUNTED_MAX: usize = 40;

/// Twice the rank of each value among all, those of `a` first: whole numbers also of ties.
fn doubled_ranks(a: &[f64], b: &[f64]) -> Vec<usize> {
    let values = || a.iter().chain(b);
    let rank = |value: &f64| {
        let orders = values().map(|other| other.total_cmp(value));
        let (below, equal) = orders.fold((0, 0), |(below, equal), order| {
            (
                below + usize::from(order.is_lt()),
                equal + usize::from(order.is_eq()),
            )
        });
        2 * below + equal + 1
    };
    values().map(rank).collect()
}

/// In how many ways `n` of the ranks add up to each sum.
fn ways_of_sums(ranks: &[usize], n: usize) -> Vec<f64> {
    let sums = 1 + ranks.iter().sum::<usize>();
    let mut ways = vec![vec![0.0; sums]; n + 1];
    ways[0][0] = 1.0;

    let mut total = 0;
    for rank in ranks {
        total += rank;
        // The number of chosen ranks descends, so that each is chosen once.
        for chosen in (1..=n).rev() {
            for sum in *rank..=total {
                ways[chosen][sum] += ways[chosen - 1][sum - rank];
            }
        }
    }

    ways.pop().unwrap_or_default()
}

/// Median of the distances to the median, a spread that single values do not decide.
pub fn median_deviation(values: &[f64]) -> Option<f64> {
    let middle = median(values)?;
    median(
        &values
            .iter()
            .map(|value| (value - middle).abs())
            .collect::<Vec<f64>>(),
    )
}

/// Significances corrected for their number, so that of those below a limit at most this share is
/// chance (Benjamini and Hochberg, 1995).
pub fn adjusted(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_unstable_by(|x, y| p[*y].total_cmp(&p[*x]));
    let mut least = 1.0_f64;
    let mut adjusted = vec![1.0; p.len()];

    for (position, index) in order.into_iter().enumerate() {
        // Significances descend: a smaller one is corrected to at most the same.
        least = least.min(p[index] * p.len() as f64 / (p.len() - position) as f64);
        adjusted[index] = least;
    }

    adjusted
}

/// Largest number of pairs whose arrangements are counted; of more, the normal distribution is
/// close.
const PAIRS_COUNTED_MAX: usize = 400;

/// Of all arrangements of `n` and `m` values, the share in which fewer than `won` of the pairs are
/// won.
fn share_below(won: usize, n: usize, m: usize) -> f64 {
    let pairs = n * m;
    if pairs > PAIRS_COUNTED_MAX {
        let deviation = (pairs as f64 * (n + m + 1) as f64 / 12.0).sqrt();
        // Correction for continuity: fewer than `won` ends half a pair below it.
        let z = (won as f64 - 0.5 - pairs as f64 / 2.0) / deviation;
        return normal_below(z);
    }

    // Coefficients of the Gaussian binomial: arrangements by the number of pairs won.
    let mut ways = vec![0.0; pairs + 1];
    ways[0] = 1.0;

    for i in 1..=n {
        // This multiplies by 1 - q^(m + i).
        for at in (m + i..=pairs).rev() {
            ways[at] -= ways[at - m - i];
        }

        // This divides by 1 - q^i.
        for at in i..=pairs {
            ways[at] += ways[at - i];
        }
    }

    ways[..won].iter().sum::<f64>() / ways.iter().sum::<f64>()
}

/// Logistic approximation of the normal distribution, within 0.0002.
pub fn normal_below(z: f64) -> f64 {
    1.0 / (1.0 + (-1.5976 * z - 0.070_56 * z.powi(3)).exp())
}

fn median_in(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;

    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    #[test]
    fn medians_are_middles() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    type Shape = (fn(f64) -> f64, f64);

    /// Uniform, skewed and heavy-tailed values, each with its true median.
    const SHAPES: [Shape; 3] = [
        (|u| u, 0.5),
        (|u| -(1.0 - u).ln(), std::f64::consts::LN_2),
        (|u| (std::f64::consts::PI * (u - 0.5)).tan(), 0.0),
    ];

    #[test]
    fn intervals_hold_the_true_median_as_often_as_their_confidence() {
        const SAMPLES: usize = 4000;

        let mut rng = Rng::with_seed(7);
        for (shape, middle) in SHAPES {
            for runs in 2..=30 {
                let held = (0..SAMPLES).filter_map(|_| {
                    let values: Vec<f64> = (0..runs).map(|_| shape(rng.f64())).collect();
                    let interval = median_interval(&values, 0.95)?;
                    Some(usize::from(
                        interval.low <= middle && middle <= interval.high,
                    ))
                });
                let held: Vec<usize> = held.collect();
                let expected = if runs < 6 { 0 } else { SAMPLES };
                assert_eq!(held.len(), expected, "{runs} runs");

                // Four standard deviations of this number of samples are 1.4 %.
                let share = held.iter().sum::<usize>() as f64 / SAMPLES as f64;
                assert!(runs < 6 || share > 0.936, "{share} of {runs} runs");
            }
        }

        let many: Vec<f64> = (0..3000).map(f64::from).collect();
        let interval = median_interval(&many, 0.95).expect("enough runs");
        assert!(
            interval.low > 1400.0 && interval.high < 1600.0,
            "{interval:?}"
        );
    }

    #[test]
    fn intervals_hold_the_true_ratio_as_often_as_their_confidence() {
        const SAMPLES: usize = 4000;

        let mut rng = Rng::with_seed(5);
        for (n, m) in [(4, 4), (5, 5), (6, 6), (12, 12), (24, 24)] {
            let mut sample = |count: usize, scale: f64| -> Vec<f64> {
                (0..count)
                    .map(|_| scale * (0.1 - (1.0 - rng.f64()).ln()))
                    .collect()
            };
            let held = (0..SAMPLES).filter(|_| {
                let (_, interval) =
                    ratio_interval(&sample(n, 3.0), &sample(m, 1.0), 0.95).expect("enough runs");
                interval.low <= 3.0 && 3.0 <= interval.high
            });
            let share = held.count() as f64 / SAMPLES as f64;
            assert!(
                (0.936..0.985).contains(&share),
                "{share} of {n} and {m} runs"
            );
        }

        assert_eq!(ratio_interval(&[1.0; 3], &[2.0; 3], 0.95), None);
        let (ratio, interval) = ratio_interval(&[10.0; 6], &[5.0; 6], 0.95).expect("enough runs");
        assert!(
            [ratio, interval.low, interval.high]
                .iter()
                .all(|one| (one - 2.0).abs() < 1e-9)
        );
    }

    #[test]
    fn of_equals_none_leads_more_often_than_the_confidence_allows() {
        let mut rng = Rng::with_seed(3);
        for (n, m) in [(3, 3), (6, 3), (6, 6), (12, 9), (60, 40)] {
            let mut sample =
                |count: usize| -> Vec<f64> { (0..count).map(|_| 100.0 * rng.f64()).collect() };
            let leads = (0..4000)
                .filter(|_| confidence_as_good(&sample(n), &sample(m), 1.0) >= 0.95)
                .count();
            assert!((80..=240).contains(&leads), "{n} and {m}: {leads} of 4000");
        }
    }

    #[test]
    fn excess_is_bounded_as_often_as_the_confidence() {
        const SAMPLES: usize = 4000;

        let mut rng = Rng::with_seed(11);
        for (n, m) in [(3, 3), (6, 3), (6, 6), (12, 9)] {
            let mut sample = |count: usize, scale: f64| -> Vec<f64> {
                (0..count)
                    .map(|_| scale * (0.1 - (1.0 - rng.f64()).ln()))
                    .collect()
            };
            let held = (0..SAMPLES).filter(|_| {
                let bound =
                    excess_max(&sample(n, 1.0), &sample(m, 2.0), 0.95).expect("enough runs");
                bound >= 1.0
            });
            let share = held.count() as f64 / SAMPLES as f64;
            assert!(share > 0.936, "{share} of {n} and {m} runs");
        }

        assert_eq!(excess_max(&[1.0; 2], &[1.0; 3], 0.95), None, "too few");
        assert_eq!(excess_max(&[10.0; 3], &[5.0; 3], 0.95), Some(0.0));
        assert_eq!(
            excess_max(&[100.0, 99.0, 101.0], &[102.0, 98.0, 100.0], 0.95),
            Some(102.0 / 99.0 - 1.0)
        );
    }

    #[test]
    fn trends_are_significant_when_all_samples_share_them() {
        let falling = |count: usize| {
            (0..count)
                .map(|run| 100.0 - run as f64)
                .collect::<Vec<f64>>()
        };
        assert!(trend_p(&[falling(3), falling(3), falling(3)]) < 0.05);
        assert!(trend_p(&[falling(3)]) > 0.05, "too few");

        let mut rising = falling(3);
        rising.reverse();
        assert!(trend_p(&[falling(3), rising]) > 0.9, "each its own");
        assert!(trend_p(&[vec![1.0; 9]]) > 0.9);
        assert!(trend_p(&[]) > 0.9);
    }

    #[test]
    fn confidence_grows_with_runs_and_not_with_differences() {
        let (high, low) = ([10.0, 11.0, 10.5], [5.0, 5.5, 5.2]);
        assert!(
            (confidence_as_good(&high, &low, 1.0) - 0.95).abs() < 1e-9,
            "one of 20 arrangements"
        );
        assert!(confidence_as_good(&low, &high, 1.0).abs() < 1e-9);
        assert!(confidence_as_good(&[10.0; 6], &low, 1.0) > 0.98);
        assert!(confidence_as_good(&[1.0; 3], &[1.0; 3], 1.0) < 0.5);
        assert!(confidence_as_good(&[1.0; 3], &[1.0; 3], 0.97) > 0.94);
    }

    /// Of every published critical value at 0.05 (0, 2, 5, 13, 23 and 127 of equal samples), and
    /// its neighbours.
    #[test]
    fn significances_are_those_of_the_published_tables() {
        // `n` and `m` values of which exactly `won` pairs are won by the first sample.
        let sample = |n: usize, m: usize, won: usize| -> (Vec<f64>, Vec<f64>) {
            let (full, rest) = (won / m, won % m);
            let above = |i: usize| match i {
                i if i < full => m as f64 + 1.0 + i as f64 / 100.0,
                i if i == full => rest as f64 + 0.5,
                i => -(i as f64),
            };
            (
                (0..n).map(above).collect(),
                (1..=m).map(|value| value as f64).collect(),
            )
        };
        let table = [
            (3, 3, 0, 0.1),
            (4, 4, 0, 0.0286),
            (4, 4, 1, 0.0571),
            (5, 5, 0, 0.0079),
            (5, 5, 2, 0.0317),
            (5, 5, 3, 0.0556),
            (5, 5, 23, 0.0317),
            (6, 6, 5, 0.0411),
            (8, 8, 13, 0.0499),
            (10, 10, 23, 0.0433),
            (5, 20, 5, 0.0007),
            (20, 20, 127, 0.0491),
        ];
        for (n, m, won, expected) in table {
            let (a, b) = sample(n, m, won);
            let p = rank_sum_p(&a, &b);
            assert!(
                (p - expected).abs() < 6e-5,
                "U {won} of {n} and {m}: {p}, expected {expected}"
            );
        }
    }

    #[test]
    fn ties_have_mean_ranks_and_equal_values_no_significance() {
        assert!((rank_sum_p(&[1.0; 5], &[1.0; 5]) - 1.0).abs() < 1e-9);
        assert!((rank_sum_p(&[1.0; 30], &[1.0; 30]) - 1.0).abs() < 1e-9);
        // Of 10 choices of three ranks out of 1.5, 1.5, 3.5, 3.5, 5, one adds up to 6.5 and two to
        // 12.
        let p = rank_sum_p(&[1.0, 1.0, 2.0], &[2.0, 3.0]);
        assert!((p - 0.3).abs() < 1e-9, "{p}");

        let values: Vec<f64> = (0..60).map(f64::from).collect();
        let p = rank_sum_p(&values[..30], &values[30..]);
        assert!(p < 1e-6, "{p}");
    }

    #[test]
    fn of_several_significances_those_that_chance_explains_are_raised() {
        let adjusted = adjusted(&[0.01, 0.04, 0.03, 0.005]);
        for (adjusted, expected) in adjusted.iter().zip([0.02, 0.04, 0.04, 0.02]) {
            assert!((adjusted - expected).abs() < 1e-12, "{adjusted}");
        }
    }
}
