//! Flows that share queues: a hash puts k flows on n queues, and flows on one queue share the rate
//! of one flow.

use serde::Serialize;

use linerate_model::stats::median;

/// Expected number of `queues` that `flows` flows occupy.
pub fn occupied(flows: u32, queues: u32) -> f64 {
    let queues = f64::from(queues.max(1));
    queues * (1.0 - (1.0 - 1.0 / queues).powf(f64::from(flows)))
}

/// Probability that `flows` flows, at most 256, occupy exactly each number of `queues`: S(k, m) · n!
/// / ((n − m)! · nᵏ), with Stirling numbers of the second kind, computed flow by flow.
pub(super) fn probabilities(flows: u32, queues: u32) -> Vec<f64> {
    let flows = flows.min(FLOWS_MAX) as usize;
    let queues = f64::from(queues.max(1));
    let mut chances = vec![0.0; flows + 1];
    chances[0] = 1.0;

    for flow in 1..=flows {
        // Downwards, because each probability needs the next lower one of the flow before.
        for occupied in (1..=flow).rev() {
            // The casts of indices are exact: there are at most 256 flows.
            let hit = chances[occupied] * occupied as f64 / queues;
            let new = chances[occupied - 1] * (queues - (occupied - 1) as f64).max(0.0) / queues;
            chances[occupied] = hit + new;
        }

        chances[0] = 0.0;
    }

    chances
}

/// Number of queues that a series of sums suggests.
#[derive(Debug, PartialEq, Serialize)]
pub struct QueueEstimate {
    /// Flows at the same time.
    pub flows: u32,
    /// Rate of one flow alone in bit/s.
    pub single_bps: f64,
    /// Multiple of the single rate that each sum is.
    pub multiples: Vec<u32>,
    /// Most likely number of queues; absent where all flows had queues of their own, which any
    /// large number explains.
    pub queues: Option<u32>,
    /// Fewest queues that are not excluded with a confidence of 95 %.
    pub queues_min: u32,
    /// Most queues that are not excluded with a confidence of 95 %; absent without a limit.
    pub queues_max: Option<u32>,
}

/// Fewest sums that allow an estimate.
const SUMS_MIN: usize = 5;
/// Distance of a sum to the nearest multiple, as a share of the multiple.
const DISTANCE_MAX: f64 = 0.06;
/// Distance of a sum to the nearest multiple, as a share of a single rate: beyond eight flows, 6 %
/// of the sum is within reach of any value.
const STEP_DISTANCE_MAX: f64 = 0.25;
const FLOWS_MAX: u32 = 256;
/// More queues than a NIC has.
const QUEUES_MAX: u32 = 1024;
/// Quantile of the chi-squared distribution with one degree of freedom at 95 %, halved: fall of the
/// log-likelihood.
const LN_FALL_MAX: f64 = 3.841_459 / 2.0;

/// Estimates the number of queues from sums of `flows` flows in bit/s, each a repetition. `None` of
/// fewer than five sums and where a sum is no multiple of the single rate.
pub fn estimate(sums_bps: &[f64], single_bps: f64, flows: u32) -> Option<QueueEstimate> {
    // One flow meets no other one in a queue.
    if sums_bps.len() < SUMS_MIN || !(2..=FLOWS_MAX).contains(&flows) || single_bps <= 0.0 {
        return None;
    }

    let mut multiples = Vec::new();
    for sum in sums_bps {
        multiples.push(multiple(*sum / single_bps, flows)?);
    }
    // Fewer queues than the largest multiple cannot have carried it.
    let least = multiples.iter().copied().max()?;

    let mut likelihoods: Vec<(u32, f64)> = Vec::new();
    for queues in least..=QUEUES_MAX {
        let chances = probabilities(flows, queues);
        let ln = multiples.iter().map(|taken| chances[*taken as usize].ln());
        likelihoods.push((queues, ln.sum()));
    }
    let most_likely = likelihoods.iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
    let (queues, best) = *most_likely?;
    likelihoods.retain(|(_, ln)| best - ln <= LN_FALL_MAX);
    let queues_min = likelihoods.first()?.0;
    let queues_max = likelihoods.last()?.0;
    // The likelihood may still rise at the largest number that is tried, so it is no estimate.
    let is_limited = |queues: &u32| *queues < QUEUES_MAX;

    Some(QueueEstimate {
        flows,
        single_bps,
        multiples,
        queues: Some(queues).filter(is_limited),
        queues_min,
        queues_max: Some(queues_max).filter(is_limited),
    })
}

impl QueueEstimate {
    /// Flows shared queues: less than all of them ran at the rate of one.
    pub fn has_collisions(&self) -> bool {
        let multiples: Vec<f64> = self.multiples.iter().copied().map(f64::from).collect();
        median(&multiples).is_some_and(|middle| middle < f64::from(self.flows))
    }
}

fn multiple(steps: f64, flows: u32) -> Option<u32> {
    let nearest = steps.round();
    let is_near = (steps - nearest).abs() <= (DISTANCE_MAX * nearest).min(STEP_DISTANCE_MAX);
    // The cast is exact: the value is between 1 and 256.
    (is_near && nearest >= 1.0 && nearest <= f64::from(flows)).then_some(nearest as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_add_up_to_one_and_match_the_mean() {
        for (flows, queues) in [(1, 1), (10, 8), (10, 63), (40, 16)] {
            let chances = probabilities(flows, queues);
            let of = |taken: u32| chances[taken as usize];
            let total: f64 = (0..=flows).map(of).sum();
            let mean: f64 = (0..=flows).map(|taken| f64::from(taken) * of(taken)).sum();

            assert!((total - 1.0).abs() < 1e-9, "{total} of {flows} on {queues}");
            assert!(
                (mean - occupied(flows, queues)).abs() < 1e-9,
                "{mean} of {flows} on {queues}"
            );
        }
    }

    #[test]
    fn sums_that_are_no_multiples_allow_no_estimate() {
        assert_eq!(
            estimate(&[5.7e9, 6.65e9, 5.7e9, 4.75e9], 0.95e9, 10),
            None,
            "four sums"
        );
        assert_eq!(
            estimate(&[5.2e9, 5.7e9, 5.7e9, 5.7e9, 5.7e9], 0.95e9, 10),
            None,
            "5.5 flows"
        );
        assert_eq!(estimate(&[1e9; 5], 0.0, 10), None);
    }

    #[test]
    fn full_sums_exclude_few_queues_and_no_large_number() {
        let full = estimate(&[9.5e9; 5], 0.95e9, 10).expect("an estimate");
        assert!(
            !full.has_collisions() && full.queues.is_none() && full.queues_max.is_none(),
            "{full:?}"
        );
        assert!(full.queues_min > 16, "{full:?}");
    }
}
