//! Medians, how sure they are, and how sure a comparison of several is.
//!
//! Percentile bootstrap (Efron and Tibshirani, "An Introduction to the Bootstrap", chapter 13): the runs are drawn again
//! with replacement many times, and the spread of what comes out is the answer. No shape of the noise is assumed.

use fastrand::Rng;
use serde::Serialize;

/// Draws per interval: enough for two digits of a 95 % interval.
const DRAWS: usize = 1000;

/// From where to where a figure lies, in its own unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(into = "[f64; 2]")]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl From<Interval> for [f64; 2] {
    fn from(interval: Interval) -> Self {
        [interval.low, interval.high]
    }
}

/// The middle value; the mean of the two in the middle for an even number; `None` of nothing.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    median_in(&mut values.to_vec())
}

/// `(max − min) / median`; `None` of fewer than two values and of a median of 0 or less.
#[must_use]
pub fn relative_spread(values: &[f64]) -> Option<f64> {
    let middle = median(values).filter(|middle| *middle > 0.0 && values.len() > 1)?;
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some((high - low) / middle)
}

/// Where the median lies with this confidence; `None` of fewer than two runs, which have no spread.
#[must_use]
pub fn median_interval(values: &[f64], confidence: f64, seed: u64) -> Option<Interval> {
    if values.len() < 2 {
        return None;
    }
    let mut rng = Rng::with_seed(seed);
    let mut room = Vec::new();
    let mut medians: Vec<f64> = (0..DRAWS).map(|_| drawn_median(values, &mut room, &mut rng)).collect();
    medians.sort_by(f64::total_cmp);
    let tail = (1.0 - confidence) / 2.0;
    Some(Interval { low: quantile(&medians, tail), high: quantile(&medians, 1.0 - tail) })
}

/// How often, drawn again, the median of `candidate` is at least `share` of the highest median of all `others`.
#[must_use]
pub fn chance_to_lead(candidate: &[f64], others: &[&[f64]], share: f64, seed: u64) -> f64 {
    let mut rng = Rng::with_seed(seed);
    let mut room = Vec::new();
    let leads = (0..DRAWS)
        .filter(|_| {
            let own = drawn_median(candidate, &mut room, &mut rng);
            others.iter().all(|other| own >= share * drawn_median(other, &mut room, &mut rng))
        })
        .count();
    leads as f64 / DRAWS as f64
}

/// The median of as many values drawn with replacement; `room` is memory to draw into.
fn drawn_median(values: &[f64], room: &mut Vec<f64>, rng: &mut Rng) -> f64 {
    room.clear();
    room.extend((0..values.len()).filter_map(|_| rng.choice(values).copied()));
    median_in(room).unwrap_or(f64::NAN)
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

fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = (share * (sorted.len() - 1) as f64).round() as usize;
    sorted[place.min(sorted.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_middles() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn an_interval_holds_the_median_and_grows_with_the_spread() {
        assert_eq!(median_interval(&[1.0], 0.95, 1), None);
        let narrow = median_interval(&[99.0, 100.0, 101.0, 100.0, 100.0], 0.95, 1).expect("five runs");
        let wide = median_interval(&[50.0, 100.0, 150.0, 80.0, 120.0], 0.95, 1).expect("five runs");
        assert!(narrow.low <= 100.0 && narrow.high >= 100.0);
        assert!(wide.high - wide.low > narrow.high - narrow.low);
    }

    /// Of samples whose true median is known, as many intervals hold it as promised, within what so few runs allow.
    #[test]
    fn intervals_hold_the_true_median_as_often_as_their_confidence() {
        let mut rng = Rng::with_seed(7);
        let held = (0..400)
            .filter(|draw| {
                let runs: Vec<f64> = (0..9).map(|_| 100.0 + 10.0 * (rng.f64() + rng.f64() - 1.0)).collect();
                let interval = median_interval(&runs, 0.95, *draw).expect("nine runs");
                interval.low <= 100.0 && interval.high >= 100.0
            })
            .count();
        assert!((340..=400).contains(&held), "{held} of 400");
    }

    #[test]
    fn who_leads_clearly_leads_always_and_equals_do_not() {
        let (high, low) = ([10.0, 11.0, 10.5], [5.0, 5.5, 5.2]);
        assert!(chance_to_lead(&high, &[&low], 1.0, 3) > 0.999);
        assert!(chance_to_lead(&low, &[&high], 1.0, 3) < 0.001);
        let chance = chance_to_lead(&[9.0, 10.0, 11.0], &[&[9.0, 10.0, 11.0]], 1.0, 3);
        assert!((0.3..0.9).contains(&chance), "{chance}");
    }
}
