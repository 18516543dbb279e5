//! Variation of the times at which datagrams arrive.

use super::Delay;

/// Jitter of transit times in the order of arrival, ns (RFC 3550 section 6.4.1). The clocks of both
/// ends need no common zero. `None` of fewer than two.
pub fn jitter_ns(transits_ns: &[i64]) -> Option<u64> {
    let pairs = transits_ns.iter().zip(transits_ns.iter().skip(1));
    let smoothed = pairs
        .map(|(before, now)| now.abs_diff(*before) as f64)
        // RFC 3550 section 6.4.1: J(i) = J(i-1) + (|D(i-1,i)| - J(i-1)) / 16.
        .fold(0.0, |j, d| j + (d - j) * JITTER_GAIN);
    (transits_ns.len() > 1).then(|| smoothed.round() as u64)
}

/// Gaps between datagrams, given when each arrived, ns. `None` of fewer than two.
pub fn gaps(arrivals_ns: &[u64]) -> Option<Delay> {
    let gaps: Vec<i64> = gaps_ns(arrivals_ns)
        .map(|gap| i64::try_from(gap).unwrap_or(i64::MAX))
        .collect();
    (!gaps.is_empty()).then(|| Delay::of(&gaps, 0))
}

/// Most datagrams that arrived together: at most a tenth of their planned gap apart. `None` without
/// a datagram.
pub fn longest_train(arrivals_ns: &[u64], planned_gap_ns: u64) -> Option<u64> {
    let mut train = 1;
    let later = gaps_ns(arrivals_ns).map(|gap| {
        train = if gap <= planned_gap_ns / TRAIN_SHARE {
            train + 1
        } else {
            1
        };
        train
    });
    let longest = later.max().unwrap_or(1);

    (!arrivals_ns.is_empty()).then_some(longest)
}

fn gaps_ns(arrivals_ns: &[u64]) -> impl Iterator<Item = u64> {
    arrivals_ns
        .iter()
        .zip(arrivals_ns.iter().skip(1))
        .map(|(before, now)| now.saturating_sub(*before))
}

/// Weight of a new difference in the smoothed jitter (RFC 3550 section 6.4.1).
const JITTER_GAIN: f64 = 1.0 / 16.0;

/// Datagrams this part of their planned gap apart, or less, arrived together.
const TRAIN_SHARE: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_smoothed_by_sixteenths() {
        assert_eq!((jitter_ns(&[]), jitter_ns(&[5])), (None, None));
        assert_eq!(jitter_ns(&[100, 100, 100]), Some(0));
        // 1600 / 16 = 100; 100 + (1600 - 100) / 16 = 193.75.
        assert_eq!(jitter_ns(&[0, 1600]), Some(100));
        assert_eq!(jitter_ns(&[0, 1600, 0]), Some(194));

        // A delay that alternates by 1 ms about its mean has differences of 2 ms.
        let alternating: Vec<i64> = (0..400)
            .map(|n| if n % 2 == 0 { 1_000_000 } else { -1_000_000 })
            .collect();
        assert!(jitter_ns(&alternating).is_some_and(|ns| ns.abs_diff(2_000_000) < 1000));
    }

    #[test]
    fn trains_are_what_arrives_within_a_tenth_of_the_gap() {
        let arrivals = [0, 1000, 1100, 1200, 2500, 2601, 4000];
        assert_eq!(longest_train(&arrivals, 1000), Some(3));
        assert_eq!(
            (longest_train(&[], 1000), longest_train(&[7], 1000)),
            (None, Some(1))
        );

        let gaps = gaps(&arrivals).expect("gaps");
        assert_eq!(
            (gaps.n, gaps.min_ns, gaps.max_ns, gaps.p50_ns),
            (6, Some(100), Some(1399), Some(101))
        );
    }
}
