//! Loss, order and jitter of one received UDP stream.
//!
//! Called for every datagram: some integer comparisons and one floating-point update, no
//! allocation. At eight million datagrams per second there are 125 ns for everything, of which this
//! takes a few.

/// Statistics of the counters of the datagrams.
///
/// The arithmetic is that of iperf3, defects included, because both ends print them: a duplicate
/// counts as reordered and takes back a loss, and datagrams lost at the very end go unnoticed. Any
/// counter from any peer is handled without overflow.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SequenceTracker {
    wide: bool,
    highest: u64,
    lost: u64,
    out_of_order: u64,
    jitter_ns: f64,
    previous_transit_ns: Option<u64>,
}

impl SequenceTracker {
    /// A tracker for a stream whose counters are 64 bits wide, or 32.
    pub fn new(wide: bool) -> Self {
        Self {
            wide,
            ..Self::default()
        }
    }

    /// Takes one datagram: its counter, its time of sending on the sender's clock, its arrival on
    /// ours, both in ns.
    #[inline]
    pub fn on_datagram(&mut self, counter: u64, sent_ns: u64, arrival_ns: u64) {
        self.on_counter(if self.wide {
            counter
        } else {
            self.unwrap(counter)
        });
        // The clocks have different origins; only the change of the difference means anything.
        let transit_ns = arrival_ns.abs_diff(sent_ns);
        let change_ns = self
            .previous_transit_ns
            .map_or(0, |previous| transit_ns.abs_diff(previous));

        self.previous_transit_ns = Some(transit_ns);
        // RFC 3550, section 6.4.1: a gain of 1/16.
        self.jitter_ns += (change_ns as f64 - self.jitter_ns) / 16.0;
    }

    /// Forgets the jitter, as happens when the warm-up ends. The counters continue.
    pub fn reset_jitter(&mut self) {
        self.jitter_ns = 0.0;
        self.previous_transit_ns = None;
    }

    /// Highest counter seen, 32-bit counters continued beyond their wrap; 0 before the first
    /// datagram.
    #[inline]
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// Datagrams missing below the highest one.
    #[inline]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Datagrams that came late or twice.
    #[inline]
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Smoothed interarrival jitter in s (RFC 3550 section 6.4.1).
    #[inline]
    pub fn jitter_s(&self) -> f64 {
        self.jitter_ns / 1e9
    }

    #[inline]
    fn on_counter(&mut self, counter: u64) {
        if counter > self.highest {
            self.lost = self.lost.saturating_add(counter - self.highest - 1);
            self.highest = counter;
        } else {
            // As in the original: a duplicate takes a loss back, too.
            self.out_of_order += 1;
            self.lost = self.lost.saturating_sub(1);
        }
    }

    /// Continues a 32-bit counter: of all numbers that end in these 32 bits, the one nearest to the
    /// highest.
    #[inline]
    fn unwrap(&self, counter: u64) -> u64 {
        const SPAN: u64 = 1 << 32;

        let near = (self.highest & !(SPAN - 1)) | (counter & (SPAN - 1));
        if near.saturating_add(SPAN / 2) < self.highest {
            near + SPAN
        } else if near > self.highest.saturating_add(SPAN / 2) && near >= SPAN {
            near - SPAN
        } else {
            near
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fed(wide: bool, counters: &[u64]) -> SequenceTracker {
        let mut tracker = SequenceTracker::new(wide);
        for counter in counters {
            tracker.on_datagram(*counter, 0, 0);
        }
        tracker
    }

    #[test]
    fn loss_and_order_follow_the_counters() {
        type Row = (&'static str, &'static [u64], (u64, u64, u64));

        let rows: &[Row] = &[
            ("nothing", &[], (0, 0, 0)),
            ("in order", &[1, 2, 3], (3, 0, 0)),
            ("gap", &[1, 2, 5], (5, 2, 0)),
            ("first one missing", &[3], (3, 2, 0)),
            ("late one takes a loss back", &[1, 3, 2], (3, 0, 1)),
            ("duplicate", &[1, 2, 2], (2, 0, 1)),
            ("duplicate hides a loss", &[1, 3, 3], (3, 0, 1)),
            ("zero", &[0], (0, 0, 1)),
            (
                "hostile",
                &[u64::MAX, 1, u64::MAX, 0],
                (u64::MAX, u64::MAX - 4, 3),
            ),
        ];
        for (name, counters, expected) in rows {
            let t = fed(true, counters);
            assert_eq!(
                (t.highest(), t.lost(), t.out_of_order()),
                *expected,
                "{name}"
            );
        }
    }

    #[test]
    fn narrow_counters_continue_beyond_their_wrap() {
        let top = u64::from(u32::MAX);
        let mut tracker = fed(false, &[]);
        tracker.highest = top - 1;

        for counter in [top, 0, 1, 3] {
            tracker.on_datagram(counter, 0, 0);
        }

        assert_eq!(
            (tracker.highest(), tracker.lost(), tracker.out_of_order()),
            (top + 4, 1, 0)
        );
        tracker.on_datagram(top, 0, 0);
        assert_eq!(
            (tracker.highest(), tracker.out_of_order()),
            (top + 4, 1),
            "late from before the wrap"
        );
    }

    #[test]
    fn jitter_is_smoothed_and_forgotten_after_the_warm_up() {
        let mut tracker = SequenceTracker::new(false);
        tracker.on_datagram(1, 0, 5_000_000);
        assert_eq!(
            tracker.jitter_s(),
            0.0,
            "the first datagram has nothing to differ from"
        );
        tracker.on_datagram(2, 10_000_000, 16_600_000);
        assert!((tracker.jitter_s() - 0.0001).abs() < 1e-12, "1.6 ms / 16");
        tracker.reset_jitter();
        assert_eq!(tracker.jitter_s(), 0.0);
        tracker.on_datagram(3, 0, 900_000_000);
        assert_eq!((tracker.jitter_s(), tracker.highest()), (0.0, 3));
    }

    proptest! {
        #[test]
        fn any_datagrams_are_survived(wide: bool, datagrams: Vec<(u64, u64, u64)>) {
            let mut tracker = SequenceTracker::new(wide);
            for (counter, sent_ns, arrival_ns) in &datagrams {
                tracker.on_datagram(*counter, *sent_ns, *arrival_ns);
            }
            prop_assert!(tracker.jitter_s().is_finite());
            prop_assert!(tracker.lost() <= tracker.highest());
            prop_assert!(tracker.out_of_order() <= datagrams.len() as u64);
        }
    }
}
