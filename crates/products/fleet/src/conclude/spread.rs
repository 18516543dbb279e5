//! Spread of values whose outliers do not count.

use linerate_model::outliers::MEDIAN_FACTOR;
pub(super) use linerate_model::outliers::scale;

/// Narrowest gap between two groups of rates: 5 %, in the logarithm.
pub(super) const GAP_MIN_LN: f64 = 0.048_790_164_169_432;

/// Standard error of the median; `None` without values.
pub(super) fn median_error(values: &[f64]) -> Option<f64> {
    Some(MEDIAN_FACTOR * scale(values)? / (values.len() as f64).sqrt())
}
