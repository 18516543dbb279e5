//! Numbers under which the streams of concurrent tests are shown, so that no two of them share one.

use std::collections::BTreeMap;

/// Ranges of positions in use, by their first.
#[derive(Default)]
pub(super) struct StreamNumbers {
    taken: BTreeMap<u32, u32>,
}

impl StreamNumbers {
    /// Takes the lowest free range of `len` positions and returns its first. A test that runs alone
    /// gets position 0.
    pub(super) fn take(&mut self, len: u32) -> u32 {
        let mut first = 0_u32;
        for (&start, &taken_len) in &self.taken {
            if start - first >= len {
                break;
            }
            first = start.saturating_add(taken_len);
        }

        self.taken.insert(first, len.max(1));
        first
    }

    pub(super) fn release(&mut self, first: u32) {
        self.taken.remove(&first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_never_overlap_and_gaps_are_used_again() {
        let mut numbers = StreamNumbers::default();
        assert_eq!(
            [numbers.take(2), numbers.take(1), numbers.take(4)],
            [0, 2, 3]
        );
        numbers.release(2);
        assert_eq!(numbers.take(2), 7, "the gap is too small");
        assert_eq!(numbers.take(1), 2);
        numbers.release(0);
        assert_eq!(numbers.take(1), 0);
        assert_eq!(numbers.take(1), 1);
    }
}
