//! A slow host among others: whether it harms them.

pub use linerate_model::fleet::Poisoning;

use super::spread::scale;
use linerate_model::stats::median;

/// Part of the sum by which it differs from one repetition to the next at least.
const SUM_SHARE: f64 = 0.02;
const SCALES: f64 = 3.0;

/// Compares repetitions: the sums of the others with the suspect, those without it, and its own
/// rates. `None` where one is lacking.
pub fn compare(with_bps: &[f64], without_bps: &[f64], own_bps: &[f64]) -> Option<Poisoning> {
    let (with, without, own) = (median(with_bps)?, median(without_bps)?, median(own_bps)?);
    let deviation = scale(with_bps)?.max(scale(without_bps)?);
    let noise = (SUM_SHARE * without).max(SCALES * deviation);
    Some(Poisoning::new(with, without, own, noise))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_gain_the_share_of_a_harmless_host_and_more_of_a_harmful_one() {
        let harmless =
            compare(&[3730.0, 3728.0], &[3826.0, 3824.0], &[96.0, 96.0]).expect("repetitions");
        assert!(!harmless.is_found(), "{harmless:?}");
        let harmful =
            compare(&[700.0, 690.0], &[8550.0, 8560.0], &[96.0, 96.0]).expect("repetitions");
        assert!(
            harmful.is_found() && (harmful.gain_bps - 7860.0).abs() < 1.0,
            "{harmful:?}"
        );

        let noisy =
            compare(&[5000.0, 7000.0], &[7500.0, 6700.0], &[96.0, 96.0]).expect("repetitions");
        assert!(!noisy.is_found(), "{noisy:?}");
        assert_eq!(compare(&[], &[1.0], &[1.0]), None);
    }
}
