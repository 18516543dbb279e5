//! Loss, duplicates and reordering of one received flow.
//!
//! A few integer operations and one bit per datagram in order; a late datagram costs a binary
//! search over at most 4,096 gaps, a jump over missing numbers one pass over the words that it
//! leaves behind, at most 1,024. Memory is 8 KiB, and 24 bytes per gap.

use std::collections::VecDeque;

/// Numbers below the largest for which is remembered whether they arrived.
const WINDOW: u64 = 1 << 16;
/// Gaps whose time of appearance is remembered.
const GAPS_MAX: usize = 4096;

const WORDS: usize = (WINDOW / 64) as usize;

/// Counters over the sequence numbers of a flow, from 0.
///
/// Reordering is that of RFC 4737: a datagram is reordered if its number is smaller than the
/// largest one before it. Duplicates are not reordered and do not count in the extent.
#[derive(Debug, Clone)]
pub struct ReceivedSequence {
    /// Largest number that arrived and one more: the next expected.
    next: u64,
    distinct: u64,
    duplicates: u64,
    reordered: u64,
    extent: u64,
    too_late: u64,
    /// One bit for each of the last numbers: it has arrived.
    seen: Box<[u64; WORDS]>,
    /// Numbers that were missing when a larger one arrived, oldest first.
    gaps: VecDeque<Gap>,
    gaps_forgotten: bool,
    /// Longest row of missing numbers that have left the window.
    burst_max: u64,
    /// Row of missing numbers that ends where the window begins.
    burst: u64,
}

/// Missing numbers, and which arrival made them missing.
#[derive(Debug, Clone, Copy)]
struct Gap {
    first: u64,
    end: u64,
    arrival: u64,
}

impl Default for ReceivedSequence {
    fn default() -> Self {
        Self {
            next: 0,
            distinct: 0,
            duplicates: 0,
            reordered: 0,
            extent: 0,
            too_late: 0,
            seen: Box::new([0; WORDS]),
            gaps: VecDeque::new(),
            gaps_forgotten: false,
            burst_max: 0,
            burst: 0,
        }
    }
}

impl ReceivedSequence {
    /// Takes the number of a datagram that arrived; numbers above
    /// [`crate::wire::datagram::SEQUENCE_MAX`]
    /// are ignored.
    #[inline]
    pub fn on_datagram(&mut self, sequence: u64) {
        if sequence > crate::wire::datagram::SEQUENCE_MAX {
            return;
        }

        if sequence >= self.next {
            self.advance(sequence);
        } else {
            self.on_late(sequence);
        }
    }

    /// Different numbers that arrived.
    pub fn distinct(&self) -> u64 {
        self.distinct
    }

    /// Datagrams whose number had arrived before.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Datagrams that arrived behind a larger number, without duplicates.
    pub fn reordered(&self) -> u64 {
        self.reordered
    }

    /// Largest reordering extent (RFC 4737 section 4.2.2): datagrams between the first one with a
    /// larger number and the reordered one. A lower bound if more than 4,096 gaps lie between.
    pub fn extent(&self) -> u64 {
        self.extent
    }

    /// Datagrams more than 65,536 numbers behind the largest. They may be late or duplicates and
    /// count as neither.
    pub fn too_late(&self) -> u64 {
        self.too_late
    }

    /// Largest number that arrived.
    pub fn highest(&self) -> Option<u64> {
        self.next.checked_sub(1)
    }

    /// Most missing numbers in a row below `sent`, the count of datagrams that the sender numbered
    /// from 0. Without it those behind the largest number that arrived are not counted.
    pub fn longest_loss_burst(&self, sent: Option<u64>) -> u64 {
        let mut runs = Runs {
            longest: self.burst_max,
            present: self.burst,
        };
        let oldest = self.next.saturating_sub(WINDOW);
        self.each_word(oldest, self.next, |word, len| runs.add(word, len));
        runs.miss(sent.unwrap_or(0).saturating_sub(self.next));

        runs.longest
    }

    fn advance(&mut self, sequence: u64) {
        self.distinct += 1;
        if sequence > self.next {
            self.open_gap(Gap {
                first: self.next,
                end: sequence,
                arrival: self.distinct,
            });
        }

        self.retire(sequence);
        let (word, bit) = place(sequence);
        if let Some(word) = self.seen.get_mut(word) {
            *word |= bit;
        }

        self.next = sequence + 1;
    }

    fn on_late(&mut self, sequence: u64) {
        // Its place belongs to another number by now.
        if self.next - sequence > WINDOW {
            self.too_late += 1;
            return;
        }

        let (word, bit) = place(sequence);
        let Some(word) = self.seen.get_mut(word) else {
            return;
        };
        if *word & bit != 0 {
            self.duplicates += 1;
            return;
        }

        *word |= bit;
        self.distinct += 1;
        self.reordered += 1;
        self.extent = self.extent.max(self.extent_of(sequence));
    }

    /// Arrivals since the first number above this one, which opened its gap.
    fn extent_of(&self, sequence: u64) -> u64 {
        // Gaps are in the order of their numbers.
        let at = self.gaps.partition_point(|gap| gap.end <= sequence);
        let gap = self.gaps.get(at).filter(|gap| gap.first <= sequence);
        // A forgotten gap is older than all that are kept.
        let oldest = self.gaps.front().filter(|_| self.gaps_forgotten);
        gap.or(oldest).map_or(1, |gap| self.distinct - gap.arrival)
    }

    fn open_gap(&mut self, gap: Gap) {
        while self
            .gaps
            .front()
            .is_some_and(|oldest| oldest.end + WINDOW <= gap.end)
        {
            self.gaps.pop_front();
        }

        // Memory is bounded; the extent then becomes a lower bound.
        if self.gaps.len() == GAPS_MAX {
            self.gaps.pop_front();
            self.gaps_forgotten = true;
        }

        self.gaps.push_back(gap);
    }

    /// Numbers that leave the window when `sequence` enters: their loss is final, and their places
    /// become free.
    fn retire(&mut self, sequence: u64) {
        let oldest = self.next.saturating_sub(WINDOW);
        let oldest_after = (sequence + 1).saturating_sub(WINDOW);
        let mut runs = Runs {
            longest: self.burst_max,
            present: self.burst,
        };
        self.each_word(oldest, oldest_after.min(self.next), |word, len| {
            runs.add(word, len);
        });
        runs.miss(oldest_after.saturating_sub(self.next));
        self.burst_max = runs.longest;
        self.burst = runs.present;
        self.clear(self.next, sequence);
    }

    /// Bits of the numbers from `first` to `end`, lowest first, with how many of them are valid.
    fn each_word(&self, first: u64, end: u64, mut f: impl FnMut(u64, u32)) {
        let mut at = first;
        while at < end {
            let word = (at % WINDOW / 64) as usize;
            let offset = (at % 64) as u32;
            let len = u64::from(64 - offset).min(end - at);
            f(
                self.seen.get(word).copied().unwrap_or(0) >> offset,
                len as u32,
            );
            at += len;
        }
    }

    /// Frees the places of the numbers from `first` to `last`, at most all of them.
    fn clear(&mut self, first: u64, last: u64) {
        let mut at = first.max((last + 1).saturating_sub(WINDOW));
        while at <= last {
            let word = (at % WINDOW / 64) as usize;
            let offset = at % 64;
            let len = (64 - offset).min(last + 1 - at);
            let bits = (u64::MAX >> (64 - len)) << offset;

            if let Some(word) = self.seen.get_mut(word) {
                *word &= !bits;
            }

            at += len;
        }
    }
}

/// Rows of missing numbers.
struct Runs {
    longest: u64,
    present: u64,
}

impl Runs {
    /// Takes `len` numbers, at most 64; a set bit has arrived.
    fn add(&mut self, mut bits: u64, len: u32) {
        let mut left = len;
        while left > 0 {
            let missing = bits.trailing_zeros().min(left);
            self.miss(u64::from(missing));
            left -= missing;
            // A shift by 64 is out of range.
            bits = bits.checked_shr(missing).unwrap_or(0);

            let arrived = bits.trailing_ones().min(left);
            if arrived > 0 {
                self.present = 0;
            }

            left -= arrived;
            bits = bits.checked_shr(arrived).unwrap_or(0);
        }
    }

    fn miss(&mut self, count: u64) {
        self.present += count;
        self.longest = self.longest.max(self.present);
    }
}

/// Word and bit of a number.
fn place(sequence: u64) -> (usize, u64) {
    let index = sequence % WINDOW;
    ((index / 64) as usize, 1 << (index % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn fed(numbers: &[u64]) -> ReceivedSequence {
        let mut counters = ReceivedSequence::default();
        numbers
            .iter()
            .for_each(|number| counters.on_datagram(*number));
        counters
    }

    #[test]
    fn loss_reordering_and_duplicates_are_counted_apart() {
        type Row = (&'static str, &'static [u64], [u64; 5]);

        // Distinct, duplicates, reordered, extent, longest burst of loss.
        let rows: &[Row] = &[
            ("nothing", &[], [0, 0, 0, 0, 0]),
            ("in order", &[0, 1, 2], [3, 0, 0, 0, 0]),
            ("gap", &[0, 1, 4], [3, 0, 0, 0, 2]),
            ("first ones missing", &[3], [1, 0, 0, 0, 3]),
            ("late one is no loss", &[0, 2, 1], [3, 0, 1, 1, 0]),
            ("duplicate", &[0, 1, 1], [2, 1, 0, 0, 0]),
            (
                "duplicates are not reordered",
                &[0, 1, 2, 0],
                [3, 1, 0, 0, 0],
            ),
            ("late and twice", &[0, 2, 1, 1], [3, 1, 1, 1, 0]),
            (
                "duplicates do not count in the extent",
                &[0, 2, 2, 2, 1],
                [3, 2, 1, 1, 0],
            ),
            // RFC 4737 section 7.1, tables 1 and 2.
            (
                "one late packet",
                &[1, 2, 3, 5, 6, 7, 8, 4, 9, 10],
                [10, 0, 1, 4, 1],
            ),
            (
                "three late packets",
                &[1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11],
                [11, 0, 3, 6, 1],
            ),
        ];
        for (name, numbers, expected) in rows {
            let c = fed(numbers);
            let found = [
                c.distinct(),
                c.duplicates(),
                c.reordered(),
                c.extent(),
                c.longest_loss_burst(None),
            ];
            assert_eq!(found, *expected, "{name}");
        }
    }

    #[test]
    fn the_end_of_the_flow_counts_as_loss_where_the_sender_count_is_known() {
        let counters = fed(&[0, 1, 4]);
        assert_eq!(counters.longest_loss_burst(Some(5)), 2);
        assert_eq!(counters.longest_loss_burst(Some(9)), 4);
        assert_eq!(fed(&[]).longest_loss_burst(Some(9)), 9);
        assert_eq!((fed(&[]).highest(), counters.highest()), (None, Some(4)));
    }

    #[test]
    fn a_burst_longer_than_the_window_is_counted_whole() {
        let far = 5 * WINDOW;
        let mut counters = fed(&[0, far]);
        assert_eq!(counters.longest_loss_burst(None), far - 1);
        counters.on_datagram(far + WINDOW + 3);
        assert_eq!(counters.longest_loss_burst(None), far - 1);
    }

    #[test]
    fn what_is_behind_the_window_is_late_or_double_and_counts_as_neither() {
        let far = 2 * WINDOW;
        let counters = fed(&[0, far, 0, far - WINDOW, far - WINDOW + 1]);
        assert_eq!(
            (
                counters.too_late(),
                counters.duplicates(),
                counters.reordered()
            ),
            (2, 0, 1)
        );
        assert_eq!(counters.distinct(), 3);
    }

    #[test]
    fn impossible_numbers_are_ignored() {
        let counters = fed(&[crate::wire::datagram::SEQUENCE_MAX + 1, u64::MAX]);
        assert_eq!((counters.distinct(), counters.highest()), (0, None));
        assert_eq!(fed(&[crate::wire::datagram::SEQUENCE_MAX]).distinct(), 1);
    }

    #[test]
    fn gaps_are_bounded_and_a_forgotten_one_gives_a_lower_bound() {
        let every_second: Vec<u64> = (0..3 * GAPS_MAX as u64).map(|n| 2 * n).collect();
        let mut counters = fed(&every_second);
        assert_eq!(counters.gaps.len(), GAPS_MAX);
        counters.on_datagram(1);

        // The oldest gap that is kept was opened GAPS_MAX - 1 arrivals before the last; this one is
        // one more.
        assert_eq!(counters.extent(), GAPS_MAX as u64);
    }

    /// Reference implementation of RFC 4737 and the counters.
    fn model(numbers: &[u64]) -> [u64; 5] {
        let mut arrived: Vec<u64> = Vec::new();
        let [mut duplicates, mut reordered, mut extent] = [0; 3];

        for number in numbers {
            if arrived.contains(number) {
                duplicates += 1;
                continue;
            }

            arrived.push(*number);
            if let Some(first_larger) = arrived.iter().position(|other| other > number) {
                reordered += 1;
                extent = extent.max((arrived.len() - 1 - first_larger) as u64);
            }
        }

        let seen: BTreeSet<u64> = arrived.iter().copied().collect();
        let (mut burst, mut present) = (0, 0);

        for number in 0..seen.last().map_or(0, |last| last + 1) {
            present = if seen.contains(&number) {
                0
            } else {
                present + 1
            };
            burst = burst.max(present);
        }

        [seen.len() as u64, duplicates, reordered, extent, burst]
    }

    proptest! {
        #[test]
        fn any_order_agrees_with_the_plain_definition(numbers in prop::collection::vec(0_u64..300, 0..250)) {
            let c = fed(&numbers);
            let found = [c.distinct(), c.duplicates(), c.reordered(), c.extent(), c.longest_loss_burst(None)];
            prop_assert_eq!(found, model(&numbers));
        }

        /// Losses and jumps in rising order, over many windows.
        #[test]
        fn bursts_of_loss_are_found_in_any_rising_sequence(steps in prop::collection::vec(
            prop_oneof![8 => 1_u64..4, 1 => 1..3 * WINDOW, 1 => WINDOW - 2..WINDOW + 2], 1..200)) {
            let mut counters = ReceivedSequence::default();
            let (mut at, mut burst) = (0, 0);
            counters.on_datagram(0);
            for step in &steps {
                at += step;
                burst = burst.max(step - 1);
                counters.on_datagram(at);
            }
            prop_assert_eq!(counters.longest_loss_burst(None), burst);
            prop_assert_eq!(counters.longest_loss_burst(Some(at + 1)), burst);
            prop_assert_eq!(counters.distinct(), steps.len() as u64 + 1);
            prop_assert_eq!((counters.duplicates(), counters.reordered()), (0, 0));
        }

        #[test]
        fn any_numbers_are_survived(numbers: Vec<u64>) {
            let counters = fed(&numbers);
            let counted = counters.distinct() + counters.duplicates() + counters.too_late();
            prop_assert!(counted <= numbers.len() as u64);
            prop_assert!(counters.extent() <= counters.distinct());
        }
    }
}
