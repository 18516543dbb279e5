//! The amount a receiving client waits for (`-n`, `-k` with `-R`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::control::{Notice, RunControl};

/// Counts what all receivers of a test got and notifies the control thread once when the amount is
/// reached.
pub(crate) struct Target {
    control: Arc<RunControl>,
    amount_bytes: u64,
    /// Bytes counted so far; `UNARMED` during the warm-up.
    counted: AtomicU64,
}

/// High enough that no addition wraps it into the counted range.
const UNARMED: u64 = 1 << 63;

impl Target {
    pub(crate) fn new(control: Arc<RunControl>, amount_bytes: u64) -> Self {
        Self {
            control,
            amount_bytes: amount_bytes.clamp(1, UNARMED - 1),
            counted: AtomicU64::new(UNARMED),
        }
    }

    /// Starts counting from zero.
    pub(crate) fn arm(&self) {
        self.counted.store(0, Ordering::Relaxed);
    }

    /// Worker: adds received bytes.
    pub(crate) fn add(&self, bytes: u64) {
        let before = self.counted.fetch_add(bytes, Ordering::Relaxed);
        if before < self.amount_bytes && before + bytes >= self.amount_bytes {
            self.control.notify(Notice::TargetReached);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_amount_is_announced_once() {
        let control = RunControl::new(linerate_model::spec::IoStrategy::PLAIN).expect("an eventfd");
        let target = Target::new(Arc::clone(&control), 100);
        target.add(1000);
        target.arm();
        target.add(99);
        assert!(control.take_notices().is_empty());
        target.add(1);
        target.add(500);
        assert!(matches!(
            control.take_notices()[..],
            [Notice::TargetReached]
        ));
    }
}
