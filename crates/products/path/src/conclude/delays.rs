//! Distributions of round trips.

use linerate_model::path::{Delay, ProbeSample, jitter_ns};

/// Distribution of the round trips of probes.
pub fn round_trips(samples: &[ProbeSample]) -> Delay {
    let arrived: Vec<i64> = samples.iter().filter_map(ProbeSample::rtt_ns).collect();
    // Those that arrived are among the samples, so that the difference is not negative.
    Delay::of(&arrived, (samples.len() - arrived.len()) as u64)
}

/// Distribution of the round trips of probes; `None` without a sample.
pub(super) fn round_trips_if_any(samples: &[ProbeSample]) -> Option<Delay> {
    (!samples.is_empty()).then(|| round_trips(samples))
}

/// Jitter of probes: that of the worse direction, or of the round trips where the other end's times
/// are unknown.
pub(super) fn probe_jitter_ns(samples: &[ProbeSample]) -> Option<u64> {
    let one_way = |times: fn(&ProbeSample) -> Option<(u64, u64)>| {
        let mut transits: Vec<(u64, i64)> = samples.iter().filter_map(times).map(transit).collect();
        // RFC 3550 takes packets in the order of their arrival.
        transits.sort_unstable();
        jitter_ns(
            &transits
                .into_iter()
                .map(|(_, transit)| transit)
                .collect::<Vec<i64>>(),
        )
    };
    let up = one_way(|probe| Some((probe.sent_ns, probe.peer_received_ns?)));
    let down = one_way(|probe| Some((probe.peer_sent_ns?, probe.received_ns?)));

    let round = || {
        jitter_ns(
            &samples
                .iter()
                .filter_map(ProbeSample::rtt_ns)
                .collect::<Vec<i64>>(),
        )
    };
    // `None` is less than any value: one direction with times suffices.
    up.max(down).or_else(round)
}

/// When it arrived, and how long it took beside an unknown constant.
fn transit((sent_ns, arrived_ns): (u64, u64)) -> (u64, i64) {
    (
        arrived_ns,
        (i128::from(arrived_ns) - i128::from(sent_ns)) as i64,
    )
}

#[cfg(test)]
mod tests {
    use linerate_model::path::percentile;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_time_at_the_other_end_is_no_part_of_a_round_trip() {
        let probe = |received_ns| ProbeSample {
            sent_ns: 1000,
            peer_received_ns: Some(70_000),
            peer_sent_ns: Some(70_300),
            received_ns,
        };
        let delay = round_trips(&[probe(Some(6000)), probe(None)]);
        assert_eq!((delay.n, delay.lost, delay.min_ns), (1, 1, Some(4700)));
    }

    proptest! {
        #[test]
        fn percentiles_equal_a_sort(samples in prop::collection::vec(any::<i32>(), 0..300), lost in 0..40_u64, q in 1..=999_u64) {
            let samples: Vec<i64> = samples.into_iter().map(i64::from).collect();
            let mut all: Vec<Option<i64>> = samples.iter().copied().map(Some).collect();
            all.sort_unstable();
            all.extend((0..lost).map(|_| None));
            // Smallest value with at least this share of all at or below it.
            let at = (0..all.len()).find(|at| (*at as u64 + 1) * 1000 >= q * all.len() as u64);
            let expected = at.filter(|at| all.len() - 1 - at >= 3).and_then(|at| all[at]);
            let mut sorted = samples;
            sorted.sort_unstable();
            prop_assert_eq!(percentile(&sorted, lost, q), expected);
        }

        #[test]
        fn means_lie_between_the_extremes(samples in prop::collection::vec(any::<i64>(), 1..50)) {
            let all = Delay::of(&samples, 0);
            prop_assert!(all.min_ns <= all.trimmed_mean_ns && all.trimmed_mean_ns <= all.mean_ns.max(all.trimmed_mean_ns));
            prop_assert!(all.mean_ns <= all.max_ns);
        }
    }
}

#[cfg(test)]
mod jitter_tests {
    use super::*;

    #[test]
    fn jitter_of_probes_is_that_of_the_worse_direction() {
        let probe = |n: u64| {
            let (sent, arrived) = (n * 5_000_000, 77_000_000_000 + n * 5_000_000);
            let late = if n.is_multiple_of(2) { 0 } else { 2_000_000 };
            ProbeSample {
                sent_ns: sent,
                peer_received_ns: Some(arrived + late),
                peer_sent_ns: Some(arrived + late),
                received_ns: Some(sent + late + 3_000_000),
            }
        };
        let probes: Vec<ProbeSample> = (0..400).map(probe).collect();
        assert!(probe_jitter_ns(&probes).is_some_and(|ns| ns.abs_diff(2_000_000) < 1000));

        let plain = |probe: &ProbeSample| ProbeSample {
            peer_received_ns: None,
            peer_sent_ns: None,
            ..*probe
        };
        let round: Vec<ProbeSample> = probes.iter().map(plain).collect();
        assert!(probe_jitter_ns(&round).is_some_and(|ns| ns.abs_diff(2_000_000) < 1000));
    }
}
