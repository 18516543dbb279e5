//! Whether runs that were kept are worse than others.

pub use linerate_history::run::compare::{CompareSpec, Compared};
use linerate_lab::http::compare::notes;

use crate::Error;

/// Reads both sides and compares them.
///
/// # Errors
/// Names that mean no run, or the same run twice, and records that cannot be read.
pub fn compare(spec: &CompareSpec) -> Result<Compared, Error> {
    linerate_history::run::compare::compare(spec, notes)
}
