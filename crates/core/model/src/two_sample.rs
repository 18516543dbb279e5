//! Two samples of one measure, and the verdict whether the second is worse than the first.

#[cfg(test)]
mod simulation_tests;

use serde::Serialize;

use crate::measure::{Better, Comparison as Scale, MeasureInfo};
use crate::stats::{Interval, adjusted, median, median_deviation, rank_sum_p, shift_interval};

/// Chance to call two samples of one distribution different.
const SIGNIFICANCE: f64 = 0.05;
/// Smallest change that matters, unless the user sets another, as a share.
pub const MARGIN: f64 = 0.05;
/// No path is steadier than this share from one run to the next.
const FLOOR_MIN: f64 = 0.01;
/// Fewest values a side: 3 against 3 never reach a significance of 0.05.
pub const TRIALS_MIN: usize = 4;
/// Fewest earlier values whose deviation is that of the path.
const EARLIER_MIN: usize = 8;
/// Most earlier values that are used.
pub const EARLIER_MAX: usize = 20;

/// What follows from two samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "verdict")]
pub enum Verdict {
    /// B is worse than A.
    Worse,
    /// B is better than A.
    Better,
    /// B differs from A by less than the margin.
    Same,
    /// The values allow neither.
    Undecided {
        /// About as many more trials a side would.
        more_trials: usize,
    },
    /// Fewer values than [`TRIALS_MIN`] on a side.
    TooFew,
}

/// Two samples of one measure, and what follows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// Values of A.
    pub a: Vec<f64>,
    /// Values of B.
    pub b: Vec<f64>,
    /// Effects are ratios of B to A; otherwise differences, B less A, in the unit of the measure.
    pub is_ratio: bool,
    /// Median of the effects of all pairs.
    pub estimate: f64,
    /// Interval that holds the true effect with a confidence of 0.95; absent of too few values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Two-sided significance of the rank-sum test.
    pub p: f64,
    /// The same, corrected for the number of comparisons.
    pub p_adjusted: f64,
    /// Smaller effects are noise: a share of A, or in the unit of the measure.
    pub floor: f64,
    /// Smaller effects do not matter: a share of A, or in the unit of the measure.
    pub margin: f64,
    /// What follows.
    #[serde(flatten)]
    pub verdict: Verdict,
    #[serde(skip)]
    better: Better,
    /// Median deviation of the path from run to run.
    #[serde(skip)]
    deviation: f64,
}

impl Judged {
    /// Compares `b` with `a`. `earlier` are values of the path before both; the noise is theirs,
    /// with fewer than 8 that of both sides. `None` of no values.
    pub fn new(
        info: &MeasureInfo,
        margin: f64,
        a: &[f64],
        b: &[f64],
        earlier: &[f64],
    ) -> Option<Self> {
        let before = median(a)?.abs();
        let (is_ratio, floor_min) = match info.comparison {
            Scale::Ratio { floor } => (
                true,
                if before > 0.0 {
                    FLOOR_MIN.max(floor / before)
                } else {
                    FLOOR_MIN
                },
            ),
            Scale::Difference { floor } => (false, floor),
        };

        let (estimate, interval) = shift_interval(
            b,
            a,
            1.0 - SIGNIFICANCE,
            if is_ratio { ratio } else { |b, a| b - a },
        )?;
        let deviation = deviation(a, b, earlier, is_ratio);
        let floor = floor_min.max(2.0 * deviation);
        // A margin within the noise of the path could never be confirmed.
        let margin = floor.max(if is_ratio { margin } else { margin * before });
        let p = rank_sum_p(a, b);
        let a = a.to_vec();
        let b = b.to_vec();
        let better = info.better;
        let verdict = Verdict::TooFew;

        let mut judged = Self {
            a,
            b,
            is_ratio,
            estimate,
            interval,
            p,
            // The number of measures is not known here: `adjust` corrects it later.
            p_adjusted: p,
            floor,
            margin,
            verdict,
            better,
            deviation,
        };
        judged.verdict = judged.conclude();
        Some(judged)
    }

    /// The effect that means no change.
    pub fn no_effect(&self) -> f64 {
        if self.is_ratio { 1.0 } else { 0.0 }
    }

    /// Greatest loss that the interval does not exclude: a share of A, or in the unit of the
    /// measure.
    pub fn loss_max(&self) -> Option<f64> {
        let interval = self.interval?;
        let loss = match self.better {
            Better::Less => interval.high - self.no_effect(),
            _ => self.no_effect() - interval.low,
        };
        Some(loss.max(0.0))
    }

    fn conclude(&self) -> Verdict {
        let have = self.a.len().min(self.b.len());
        if have < TRIALS_MIN {
            return Verdict::TooFew;
        }

        let effect = self.estimate - self.no_effect();
        if self.p_adjusted <= SIGNIFICANCE && effect.abs() > self.floor {
            let is_better = (effect > 0.0) == (self.better == Better::More);
            return if is_better {
                Verdict::Better
            } else {
                Verdict::Worse
            };
        }

        let is_within = |end: f64| (end - self.no_effect()).abs() <= self.margin;
        if self
            .interval
            .is_some_and(|interval| is_within(interval.low) && is_within(interval.high))
        {
            return Verdict::Same;
        }

        Verdict::Undecided {
            // The estimate can be below what was made, which was not enough.
            more_trials: self.trials_wanted().saturating_sub(have).max(1),
        }
    }

    /// Trials a side that find a change of the margin in 4 of 5 cases: those of a normal
    /// distribution, and 5 % more for the rank-sum test.
    fn trials_wanted(&self) -> usize {
        // These are the normal quantiles of 0.975 and 0.8: two-sided 0.05, and a power of 0.8.
        const QUANTILES: f64 = 2.8;
        // The standard deviation of normal values is this multiple of their median deviation.
        const NORMAL_PER_DEVIATION: f64 = 1.4826;
        // The rank-sum test has this efficiency beside the t-test for normal values: 3 / π.
        const EFFICIENCY: f64 = 0.955;

        let in_margins = QUANTILES * NORMAL_PER_DEVIATION * self.deviation / self.margin;
        let wanted = (2.0 * in_margins.powi(2) / EFFICIENCY).ceil();
        TRIALS_MIN.max(if wanted.is_finite() {
            wanted as usize
        } else {
            0
        })
    }
}

fn ratio(b: f64, a: f64) -> f64 {
    if b.total_cmp(&a).is_eq() { 1.0 } else { b / a }
}

/// How far values lie from run to run: those before both sides, or with too few of them both sides
/// within themselves.
fn deviation(a: &[f64], b: &[f64], earlier: &[f64], is_ratio: bool) -> f64 {
    let relative = |values: &[f64]| -> Vec<f64> {
        let middle = median(values).unwrap_or_default();
        values
            .iter()
            .map(|value| {
                if is_ratio {
                    ratio(*value, middle) - 1.0
                } else {
                    value - middle
                }
            })
            .collect()
    };
    let distances = match earlier.len() {
        EARLIER_MIN.. => relative(earlier),
        // Each side has its own median, so that the shift between them is no noise.
        _ => [relative(a), relative(b)].concat(),
    };
    median_deviation(&distances)
        // The ratio to a median of 0 is not finite.
        .filter(|deviation| deviation.is_finite())
        .unwrap_or_default()
}

/// Corrects the significances of comparisons that belong together for their number.
pub fn adjust<'a>(judged: impl IntoIterator<Item = &'a mut Judged>) {
    let mut judged: Vec<&mut Judged> = judged.into_iter().collect();
    let p: Vec<f64> = judged.iter().map(|one| one.p).collect();
    for (one, p) in judged.iter_mut().zip(adjusted(&p)) {
        one.p_adjusted = p;
        one.verdict = one.conclude();
    }
}

#[cfg(test)]
mod tests {
    use crate::measure::MeasureName;

    use super::*;

    fn judge(measure: MeasureName, a: &[f64], b: &[f64]) -> Judged {
        Judged::new(&measure.info(), MARGIN, a, b, &[]).expect("values")
    }

    const STEADY: [f64; 5] = [100.0, 100.2, 99.8, 100.1, 99.9];

    #[test]
    fn each_verdict_follows_from_its_pair() {
        let rx = |a: &[f64], b: &[f64]| judge(MeasureName::ReceivedBps, a, b).verdict;
        let times = |factor: f64| STEADY.map(|value| value * factor);
        assert_eq!(rx(&STEADY, &times(0.9)), Verdict::Worse);
        assert_eq!(rx(&STEADY, &times(1.1)), Verdict::Better);
        assert_eq!(rx(&STEADY, &STEADY), Verdict::Same);
        assert_eq!(
            rx(&STEADY, &times(0.995)),
            Verdict::Same,
            "significant, and below the floor of 1 %"
        );
        assert_eq!(rx(&STEADY[..3], &times(0.5)), Verdict::TooFew);
        assert_eq!(rx(&[7.0; 5], &[7.0; 5]), Verdict::Same);

        let noisy = [90.0, 110.0, 97.0, 104.0, 92.0];
        let judged = judge(
            MeasureName::ReceivedBps,
            &noisy,
            &[88.0, 108.0, 95.0, 102.0, 115.0],
        );

        // 2·(2.8·1.4826·MAD/margin)²/0.955, with the margin at the floor of 2·MAD: 9.02.
        assert_eq!(judged.verdict, Verdict::Undecided { more_trials: 5 });
        assert!(
            judged
                .loss_max()
                .is_some_and(|loss| (0.1..0.3).contains(&loss)),
            "{judged:?}"
        );
    }

    #[test]
    fn less_is_better_where_the_catalogue_has_it_so() {
        let times = |factor: f64| STEADY.map(|value| value * factor);
        let ms = |values: [f64; 5]| values.map(|value| value * 1e6);
        assert_eq!(
            judge(MeasureName::LatencyP99Ns, &ms(STEADY), &ms(times(1.2))).verdict,
            Verdict::Worse
        );
        assert_eq!(
            judge(MeasureName::LatencyP99Ns, &ms(STEADY), &ms(times(0.8))).verdict,
            Verdict::Better
        );

        // 100 ns against 120 ns is below the floor of 20 µs.
        assert_eq!(
            judge(MeasureName::LatencyP99Ns, &STEADY, &times(1.2)).verdict,
            Verdict::Same
        );
    }

    #[test]
    fn counts_are_compared_by_differences_so_that_one_retransmission_is_none() {
        let retr = |a: [f64; 5], b: [f64; 5]| judge(MeasureName::Retransmits, &a, &b);
        assert_eq!(retr([0.0; 5], [1.0; 5]).verdict, Verdict::Same);
        let judged = retr([0.0; 5], [40.0, 42.0, 38.0, 41.0, 39.0]);
        assert_eq!((judged.verdict, judged.estimate), (Verdict::Worse, 40.0));
    }

    #[test]
    fn rates_of_zero_have_a_verdict() {
        assert_eq!(
            judge(MeasureName::ReceivedBps, &STEADY, &[0.0; 5]).verdict,
            Verdict::Worse
        );
        assert_eq!(
            judge(MeasureName::ReceivedBps, &[0.0; 5], &[0.0; 5]).verdict,
            Verdict::Same
        );
        assert_eq!(
            judge(MeasureName::ReceivedBps, &[0.0; 5], &STEADY).verdict,
            Verdict::Better
        );
    }

    #[test]
    fn noise_of_earlier_runs_sets_the_floor() {
        let info = MeasureName::ReceivedBps.info();
        let b = STEADY.map(|value| value * 0.93);
        let earlier: Vec<f64> = (0..20)
            .map(|i| if i % 2 == 0 { 95.0 } else { 105.0 })
            .collect();
        let judged = Judged::new(&info, MARGIN, &STEADY, &b, &earlier).expect("values");
        assert!(
            (judged.floor - 0.1).abs() < 1e-9 && judged.verdict == Verdict::Same,
            "{judged:?}"
        );

        let judged = Judged::new(&info, MARGIN, &STEADY, &b, &earlier[..7]).expect("values");
        assert!(
            (judged.floor - 0.01).abs() < 1e-9 && judged.verdict == Verdict::Worse,
            "{judged:?}"
        );
    }

    #[test]
    fn one_significant_measure_of_many_is_chance() {
        let b = [98.0, 98.9, 97.0, 97.5, 98.2];
        let mut many = vec![judge(MeasureName::ReceivedBps, &STEADY, &b)];
        assert_eq!(many[0].verdict, Verdict::Worse);
        many.extend((0..19).map(|_| judge(MeasureName::SentBps, &STEADY, &STEADY)));
        adjust(&mut many);
        assert_ne!(many[0].verdict, Verdict::Worse, "{:?}", many[0]);
    }
}
