//! The amount a test may send, shared by all its senders (`-n`, `-k`).

use std::sync::atomic::{AtomicU64, Ordering};

/// Amount that all senders of one direction may take from, block by block.
///
/// During the warm-up it is unlimited; [`Budget::arm`] starts the count. A sender takes whole
/// blocks and stops at the first refusal, so the test ends within one block of the amount however
/// many streams share it.
pub(crate) struct Budget {
    unit: Unit,
    /// Remaining amount, in bytes or blocks; `UNARMED` while nothing is counted.
    left: AtomicU64,
    amount: u64,
}

#[derive(PartialEq, Eq)]
pub(crate) enum Unit {
    /// Bytes, rounded up to whole blocks.
    Bytes,
    /// Bytes to the last one; the last block may be shorter.
    ExactBytes,
    Blocks,
}

const UNARMED: u64 = u64::MAX;

impl Budget {
    pub(crate) fn new(unit: Unit, amount: u64) -> Self {
        Self {
            unit,
            left: AtomicU64::new(UNARMED),
            amount: amount.min(UNARMED - 1),
        }
    }

    /// Starts counting from the full amount.
    pub(crate) fn arm(&self) {
        self.left.store(self.amount, Ordering::Relaxed);
    }

    /// Takes up to `blocks` blocks of `block_len` bytes; returns how many may be sent, 0 when the
    /// amount is used up.
    pub(crate) fn take(&self, blocks: u64, block_len: u64) -> u64 {
        let mut granted = 0;
        let _ = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                if left == UNARMED {
                    granted = blocks;
                    return None;
                }

                granted = match self.unit {
                    Unit::Bytes | Unit::ExactBytes => blocks.min(left.div_ceil(block_len.max(1))),
                    Unit::Blocks => blocks.min(left),
                };
                let used = match self.unit {
                    Unit::Bytes | Unit::ExactBytes => granted.saturating_mul(block_len),
                    Unit::Blocks => granted,
                };
                Some(left.saturating_sub(used))
            });

        granted
    }

    /// The same in bytes: less than whole blocks only for the last block of an exact amount.
    pub(crate) fn take_bytes(&self, blocks: u64, block_len: u64) -> u64 {
        if self.unit != Unit::ExactBytes {
            return self.take(blocks, block_len).saturating_mul(block_len);
        }

        let want = blocks.saturating_mul(block_len);
        let mut granted = want;
        let _ = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                granted = if left == UNARMED {
                    want
                } else {
                    want.min(left)
                };
                (left != UNARMED).then(|| left - granted)
            });

        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_granted_in_whole_blocks_until_the_amount_is_reached() {
        let budget = Budget::new(Unit::Bytes, 1000);
        assert_eq!(
            budget.take(5, 400),
            5,
            "nothing is counted before the warm-up ends"
        );
        budget.arm();
        assert_eq!(budget.take(2, 400), 2);
        assert_eq!(
            budget.take(2, 400),
            1,
            "the last block completes the amount"
        );
        assert_eq!(budget.take(2, 400), 0);
    }

    #[test]
    fn exact_amounts_end_within_a_block() {
        let budget = Budget::new(Unit::ExactBytes, 1000);
        assert_eq!(budget.take_bytes(9, 400), 3600, "nothing is counted before");
        budget.arm();
        let taken = [(); 3].map(|()| budget.take_bytes(2, 400));
        assert_eq!(taken, [800, 200, 0]);
    }

    #[test]
    fn blocks_are_shared_exactly() {
        let budget = Budget::new(Unit::Blocks, 3);
        budget.arm();
        assert_eq!(
            (budget.take(2, 9), budget.take(2, 9), budget.take(2, 9)),
            (2, 1, 0)
        );
    }
}
