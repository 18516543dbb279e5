//! Variation of the delays of probes.

use linerate_model::path::{ProbeSample, jitter_ns};

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
