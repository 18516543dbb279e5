//! Spread of values whose outliers do not count.

use linerate_model::stats::median_deviation;

/// Standard deviation of normal noise over the median of its absolute values.
const DEVIATION_FACTOR: f64 = 1.4826;
/// Standard deviation of a median over that of a mean of as many values.
pub(super) const MEDIAN_FACTOR: f64 = 1.2533;
/// Narrowest gap between two groups of rates: 5 %, in the logarithm.
pub(super) const GAP_MIN_LN: f64 = 0.048_790_164_169_432;

/// Standard deviation by the median of absolute deviations; `None` without values.
pub(super) fn scale(values: &[f64]) -> Option<f64> {
    Some(DEVIATION_FACTOR * median_deviation(values)?)
}

/// Standard error of the median; `None` without values.
pub(super) fn median_error(values: &[f64]) -> Option<f64> {
    Some(MEDIAN_FACTOR * scale(values)? / (values.len() as f64).sqrt())
}
