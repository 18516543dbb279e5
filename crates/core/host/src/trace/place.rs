//! Bound of the watches of this process.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::error::ReadError;

/// Watches at once: a test has one of drops and one of CPUs, together with 392 KiB of locked memory
/// for every CPU.
const WATCHES_MAX: usize = 4;

/// Permit of one of the watches that may run at the same time.
#[derive(Debug)]
pub(super) struct Place;

static TAKEN: AtomicUsize = AtomicUsize::new(0);

impl Place {
    pub(super) fn take() -> Result<Self, ReadError> {
        let one_more = |taken| (taken < WATCHES_MAX).then_some(taken + 1);
        // Relaxed: the number of watches orders no other memory.
        TAKEN
            .fetch_update(Relaxed, Relaxed, one_more)
            .map(|_| Self)
            .map_err(|_| ReadError::missing("other tests are being watched"))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        TAKEN.fetch_sub(1, Relaxed);
    }
}
