//! Loss, order, duplicates, jitter and one-way delay of one received flow.
//!
//! Called for every datagram: some integer comparisons, one bit, two floating-point updates, no
//! allocation.

/// Statistics of the numbers and times of the datagrams.
///
/// A late datagram is one that was counted lost before; a second copy of one that arrived is a
/// duplicate and changes nothing else. Only copies that come more than [`WINDOW`] numbers late
/// cannot be distinguished from late ones.
///
/// The default is a tracker before the first datagram, whose number is 1.
#[derive(Debug, Clone, Default)]
pub struct SequenceTracker {
    highest: i64,
    lost: u64,
    out_of_order: u64,
    duplicates: u64,
    received: u64,
    seen: SeenWindow,
    jitter_ns: f64,
    jitter_sum_ns: f64,
    jitter_count: u64,
    previous_transit_ns: Option<i64>,
}

/// One bit for each of the last numbers: it has arrived.
#[derive(Debug, Clone)]
struct SeenWindow(Box<[u64; WORDS]>);

/// Numbers for which is remembered whether they arrived.
pub const WINDOW: i64 = (WORDS * 64) as i64;
const WORDS: usize = 256;

impl SequenceTracker {
    /// Takes one datagram with a positive number. `transit_ns` is its arrival on our clock less its
    /// sending on the sender's. The datagram that ends the flow counts with its number negated.
    #[inline]
    pub fn on_datagram(&mut self, number: i64, transit_ns: i64) {
        self.received += 1;
        if number > self.highest {
            self.advance(number);
            self.on_transit(transit_ns);
        } else {
            self.on_late(number);
        }
    }

    /// A frame of an isochronous sender ended: the gap to the next is intended and no jitter.
    pub fn forget_transit(&mut self) {
        self.previous_transit_ns = None;
    }

    /// Highest number seen, which is also the number of datagrams the sender had sent by then.
    pub fn highest(&self) -> u64 {
        self.highest.unsigned_abs()
    }

    /// Numbers below the highest that have not arrived.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Datagrams that came after one with a higher number.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Datagrams that came twice.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Datagrams that came at all.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Smoothed interarrival jitter in s (RFC 1889 section 6.3.1) at this moment.
    pub fn jitter_s(&self) -> f64 {
        self.jitter_ns / 1e9
    }

    /// Mean of the smoothed jitter over all datagrams in s, which is what final reports show.
    pub fn mean_jitter_s(&self) -> f64 {
        match self.jitter_count {
            0 => 0.0,
            n => self.jitter_sum_ns / n as f64 / 1e9,
        }
    }

    fn advance(&mut self, number: i64) {
        let skipped = number - self.highest - 1;
        self.lost = self.lost.saturating_add(skipped.unsigned_abs());

        // A jump over the whole window: none of its numbers has arrived.
        if skipped >= WINDOW {
            self.seen.0.fill(0);
        } else {
            for missing in self.highest + 1..number {
                let (word, bit) = place(missing);
                self.seen.0[word] &= !bit;
            }
        }

        let (word, bit) = place(number);
        self.seen.0[word] |= bit;
        self.highest = number;
    }

    fn on_late(&mut self, number: i64) {
        // Older numbers are taken for late ones: duplicates are rarer than reordering.
        let is_remembered = number > 0 && self.highest - number < WINDOW;
        let (word, bit) = place(number);
        if number <= 0 || (is_remembered && self.seen.0[word] & bit != 0) {
            self.duplicates += 1;
            return;
        }

        if is_remembered {
            self.seen.0[word] |= bit;
        }

        self.out_of_order += 1;
        // It was counted as lost when a later number arrived.
        self.lost = self.lost.saturating_sub(1);
    }

    fn on_transit(&mut self, transit_ns: i64) {
        if let Some(previous) = self.previous_transit_ns {
            let change_ns = transit_ns.abs_diff(previous) as f64;
            // RFC 1889, section 6.3.1: a gain of 1/16.
            self.jitter_ns += (change_ns - self.jitter_ns) / 16.0;
            self.jitter_sum_ns += self.jitter_ns;
            self.jitter_count += 1;
        }

        self.previous_transit_ns = Some(transit_ns);
    }
}

impl Default for SeenWindow {
    fn default() -> Self {
        Self(Box::new([0; WORDS]))
    }
}

/// Word and bit of a number; in range for any number.
fn place(number: i64) -> (usize, u64) {
    let index = number.rem_euclid(WINDOW) as usize;
    (index / 64, 1 << (index % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn fed(numbers: &[i64]) -> SequenceTracker {
        let mut tracker = SequenceTracker::default();
        for number in numbers {
            tracker.on_datagram(*number, 0);
        }
        tracker
    }

    #[test]
    fn loss_reordering_and_duplicates_are_counted_apart() {
        type Row = (&'static str, &'static [i64], (u64, u64, u64, u64));

        let rows: &[Row] = &[
            ("nothing", &[], (0, 0, 0, 0)),
            ("in order", &[1, 2, 3], (3, 0, 0, 0)),
            ("gap", &[1, 2, 5], (5, 2, 0, 0)),
            ("first one missing", &[3], (3, 2, 0, 0)),
            ("late one takes a loss back", &[1, 3, 2], (3, 0, 1, 0)),
            ("duplicate", &[1, 2, 2], (2, 0, 0, 1)),
            ("duplicate hides no loss", &[1, 3, 3], (3, 1, 0, 1)),
            ("late and twice", &[1, 3, 2, 2], (3, 0, 1, 1)),
            ("zero", &[0], (0, 0, 0, 1)),
            (
                "hostile",
                &[i64::MAX, 1, i64::MIN, i64::MAX],
                (i64::MAX as u64, i64::MAX as u64 - 2, 1, 2),
            ),
        ];
        for (name, numbers, expected) in rows {
            let t = fed(numbers);
            let found = (t.highest(), t.lost(), t.out_of_order(), t.duplicates());
            assert_eq!(found, *expected, "{name}");
        }
    }

    #[test]
    fn a_jump_forgets_what_was_seen_before() {
        let far = 5 * WINDOW;
        let tracker = fed(&[1, 2, far, far - 1, far - WINDOW + 2]);
        assert_eq!((tracker.out_of_order(), tracker.duplicates()), (2, 0));
    }

    #[test]
    fn jitter_follows_transit_of_datagrams_in_order() {
        let mut tracker = SequenceTracker::default();
        tracker.on_datagram(1, 5_000_000);
        assert_eq!(
            tracker.jitter_s(),
            0.0,
            "the first datagram has nothing to differ from"
        );
        tracker.on_datagram(3, 6_600_000);
        tracker.on_datagram(2, 900_000_000);
        assert!(
            (tracker.jitter_s() - 0.0001).abs() < 1e-12,
            "1.6 ms / 16, the late one does not count"
        );
        tracker.on_datagram(4, 6_600_000);

        let mean = (100_000.0 + 93_750.0) / 2.0 / 1e9;
        assert!((tracker.mean_jitter_s() - mean).abs() < 1e-12);
    }

    proptest! {
        /// Against a sender that knows what it did: any loss, any order, any copies within the
        /// window.
        #[test]
        fn a_faulty_link_is_counted_exactly(fates in prop::collection::vec((0_u8..10, 0_i64..200), 1..400)) {
            let mut arrivals: Vec<(i64, i64)> = Vec::new();
            for ((fate, delay), number) in fates.iter().zip(1_i64..) {
                match fate {
                    0 => {}
                    1 => arrivals.extend([(number, number), (number + delay, number)]),
                    2 => arrivals.push((number + delay, number)),
                    _ => arrivals.push((number, number)),
                }
            }
            arrivals.sort_by_key(|(when, _)| *when);
            let numbers: Vec<i64> = arrivals.iter().map(|(_, number)| *number).collect();
            let tracker = fed(&numbers);
            let distinct: BTreeSet<i64> = numbers.iter().copied().collect();
            let highest = distinct.last().copied().unwrap_or(0);
            let (mut top, mut late, mut seen) = (0, 0, BTreeSet::new());
            for number in &numbers {
                late += u64::from(*number < top && !seen.contains(number));
                top = top.max(*number);
                seen.insert(*number);
            }
            prop_assert_eq!(tracker.highest(), highest.unsigned_abs());
            prop_assert_eq!(tracker.lost(), highest.unsigned_abs() - distinct.len() as u64);
            prop_assert_eq!(tracker.duplicates(), (numbers.len() - distinct.len()) as u64);
            prop_assert_eq!(tracker.out_of_order(), late);
        }

        #[test]
        fn any_datagrams_are_survived(datagrams: Vec<(i64, i64)>) {
            let mut tracker = SequenceTracker::default();
            for (number, transit) in &datagrams {
                tracker.on_datagram(*number, *transit);
            }
            prop_assert!(tracker.jitter_s().is_finite());
            prop_assert!(tracker.lost() <= tracker.highest());
            prop_assert!(tracker.out_of_order() + tracker.duplicates() <= datagrams.len() as u64);
        }
    }
}
