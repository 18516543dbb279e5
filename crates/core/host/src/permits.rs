//! Bounds of what runs at the same time in this process.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A fixed number of permits.
#[derive(Debug)]
pub struct Permits {
    taken: AtomicUsize,
    max: usize,
}

/// One of them. It is given back when it is dropped.
#[derive(Debug)]
pub struct Permit(&'static Permits);

impl Permits {
    /// This many permits, all of them free.
    pub const fn new(max: usize) -> Self {
        Self {
            taken: AtomicUsize::new(0),
            max,
        }
    }

    /// A permit; `None` while all are taken.
    pub fn take(&'static self) -> Option<Permit> {
        let one_more = |taken| (taken < self.max).then_some(taken + 1);
        // Relaxed: the number of permits orders no other memory.
        self.taken
            .fetch_update(Relaxed, Relaxed, one_more)
            .ok()
            .map(|_| Permit(self))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Relaxed);
    }
}
