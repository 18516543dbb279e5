//! Comparison of runs in the history: worse, the same or better.

pub use linerate_history::run::compare::{CompareSpec, Compared};
use linerate_http::conclude::study_differences;

use crate::Error;

/// Reads both sides and compares them.
///
/// # Errors
/// Names that mean no run, or the same run twice, and records that cannot be read.
pub fn compare(spec: &CompareSpec) -> Result<Compared, Error> {
    linerate_history::run::compare::compare(spec, study_differences)
}
