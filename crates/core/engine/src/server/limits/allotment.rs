//! Descriptors that admission counted for one test, and those of them that are open.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The descriptors of one test. What a test opens later holds one of them, so that it never has
/// more than admission counted.
pub(crate) struct Allotment {
    open: Arc<AtomicU64>,
    max: u64,
}

/// One open descriptor; given back when it is dropped.
pub(crate) struct Allotted(Arc<AtomicU64>);

impl Allotment {
    pub(crate) fn new(max: u64) -> Self {
        Self {
            open: Arc::default(),
            max,
        }
    }

    /// Takes one descriptor; `None` when all are open.
    pub(crate) fn take(&self) -> Option<Allotted> {
        let one_more = |open: u64| (open < self.max).then(|| open + 1);
        self.open
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)
            .ok()?;
        Some(Allotted(Arc::clone(&self.open)))
    }

    /// Descriptors that are open.
    #[cfg(test)]
    pub(crate) fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }
}

impl Drop for Allotted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_open_than_were_counted() {
        let allotment = Allotment::new(2);
        let first = allotment.take().expect("one of two");
        let second = allotment.take().expect("the other");

        assert!(allotment.take().is_none());
        drop(first);
        assert_eq!(allotment.open(), 1);

        let third = allotment.take();
        assert!(third.is_some() && allotment.take().is_none());
        drop((second, third));
        assert_eq!(allotment.open(), 0);
    }
}
