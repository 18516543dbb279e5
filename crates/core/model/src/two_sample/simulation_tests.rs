//! Error rates of the verdicts on a path with 20 earlier runs: 400 comparisons of normal values for
//! each figure.

use crate::measure::MeasureName;
use fastrand::Rng;

use super::{Judged, MARGIN, Verdict};

const DRAWS: usize = 400;

/// A standard normal value (Box and Muller, 1958).
fn normal(rng: &mut Rng) -> f64 {
    (-2.0 * (1.0 - rng.f64()).ln()).sqrt() * (std::f64::consts::TAU * rng.f64()).cos()
}

/// Share in percent of the comparisons of `n` values a side, B being `factor` times A, with each of
/// the verdicts.
fn shares(rng: &mut Rng, n: usize, cv: f64, factor: f64) -> [f64; 3] {
    let info = MeasureName::ReceivedBps.info();
    let mut counts = [0.0; 3];

    for _ in 0..DRAWS {
        let mut sample = |middle: f64| -> Vec<f64> {
            (0..n).map(|_| middle * (1.0 + cv * normal(rng))).collect()
        };
        let (a, b) = (sample(1e9), sample(1e9 * factor));

        let earlier: Vec<f64> = (0..20).map(|_| 1e9 * (1.0 + cv * normal(rng))).collect();
        match Judged::new(&info, MARGIN, &a, &b, &earlier)
            .expect("values")
            .verdict
        {
            Verdict::Worse => counts[0] += 1.0,
            Verdict::Same => counts[1] += 1.0,
            Verdict::Undecided { .. } => counts[2] += 1.0,
            Verdict::Better | Verdict::TooFew => {}
        }
    }

    counts.map(|count| count * 100.0 / DRAWS as f64)
}

#[test]
fn verdicts_err_as_rarely_and_find_changes_as_often_as_documented() {
    // Values a side, deviation from run to run; worse, same, undecided of equals; found of 5 %
    // less, of 10 % less.
    let table = [
        (5, 0.01, [0.8, 98.0, 0.0], 100.0, 100.0),
        (5, 0.02, [0.2, 73.0, 26.0], 84.0, 100.0),
        (5, 0.03, [0.7, 23.0, 76.0], 47.0, 98.0),
        (5, 0.05, [0.5, 11.0, 88.0], 16.0, 68.0),
        (10, 0.02, [0.3, 98.0, 1.0], 96.0, 100.0),
        (10, 0.03, [0.3, 84.0, 15.0], 73.0, 100.0),
        (10, 0.05, [0.3, 46.0, 53.0], 25.0, 89.0),
    ];
    // Two standard deviations of a share of 400 are 5 points.
    let mut rng = Rng::with_seed(11);
    let mut wrong = Vec::new();

    for (n, cv, equal, five, ten) in table {
        let found = shares(&mut rng, n, cv, 1.0);
        let [less, much_less] = [0.95, 0.9].map(|factor| shares(&mut rng, n, cv, factor)[0]);
        let expected = [equal[0], equal[1], equal[2], five, ten];

        let found = [found[0], found[1], found[2], less, much_less];
        if found
            .iter()
            .zip(&expected)
            .any(|(found, expected)| (found - expected).abs() > 5.0)
        {
            wrong.push(format!(
                "{n} values, {cv}: {found:?}, expected {expected:?}"
            ));
        }
    }

    assert!(wrong.is_empty(), "{wrong:#?}");
}
