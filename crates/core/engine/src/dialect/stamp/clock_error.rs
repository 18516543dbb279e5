//! How far the clock of this host may be wrong.

use linerate_stamp::wire::timestamp::ErrorEstimate;
use linerate_sys::clock;

/// Error of the wall clock. Without a time source it is not known.
pub(super) fn clock_error() -> ErrorEstimate {
    let error_ns = clock::realtime_error_max_ns().ok().flatten();
    ErrorEstimate {
        is_synchronized: error_ns.is_some(),
        error_ns: error_ns.unwrap_or(u64::MAX),
        ..ErrorEstimate::default()
    }
}
