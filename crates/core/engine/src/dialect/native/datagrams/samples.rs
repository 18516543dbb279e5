//! Values of which a phase reports the distribution.

use linerate_model::path::Delay;

/// Values of a distribution that are kept.
pub(super) const VALUES_MAX: usize = 1_000_000;

pub(super) fn distribution(values_ns: &[i64]) -> Option<Delay> {
    (!values_ns.is_empty()).then(|| Delay::of(values_ns, 0))
}
