//! Maximum IP-layer capacity, RFC 9097: search for the rate with the algorithm of type B (section
//! 8.1 and appendix A), driven by the receiver's feedback.

use linerate_model::path::{CapacityFeedback, PathDirection, PhaseKind, RateControl, RateLadder};
use linerate_model::units::{ns_to_s, rate_bps};

/// Errors of a report that are no sign of congestion.
const ERRORS_MAX: u64 = 10;

/// Below this range of the delay the rate grows, ns.
const DELAY_LOW_NS: u64 = 30_000_000;

/// Above this range of the delay the rate falls, ns.
const DELAY_HIGH_NS: u64 = 90_000_000;

/// Reports of congestion in a row, less one, after which the rate falls fast and no longer grows
/// fast.
const CONGESTED_REPORTS: u32 = 3;

/// Rows by which the rate grows at first.
const FAST_ROWS: usize = 10;

/// A rate of which so little arrives, without loss and delay, is one that the sender does not
/// reach: it grows no further. RFC 9097 has no such rule. The second figure is what is under way
/// while the rate grows.
const REACHED_FACTOR: f64 = 2.0;
const REACHED_SLACK_BPS: f64 = 100e6;

/// Row of 1 Gbit/s, up to which the rate changes fast.
const GIGABIT_ROW: usize = 1000;

/// Row of 10 Gbit/s.
const TEN_GIGABIT_ROW: usize = GIGABIT_ROW + 90;

/// Last row, of 100 Gbit/s.
const LAST_ROW: usize = TEN_GIGABIT_ROW + 90;

/// Time over which capacity is a mean (dt), ns.
const SUBINTERVAL_NS: u64 = 1_000_000_000;

/// Most steps that are kept for the report.
const STEPS_MAX: usize = 3600;

/// A search for capacity; it begins at its lowest rate.
#[derive(Debug, Clone, Default)]
pub struct CapacitySearch {
    row: usize,
    congested: u32,
    open: CapacityFeedback,
    highest_bps: Option<f64>,
    is_limited_by_sender: bool,
    steps: Vec<(f64, f64)>,
}

impl CapacitySearch {
    /// The search of a report: capacity is the highest rate at which IP packets arrived over a
    /// second.
    pub fn result(&self, direction: PathDirection) -> RateLadder {
        RateLadder {
            highest: self.highest_bps,
            limit: self
                .is_limited_by_sender
                .then(|| "the sending host sends no faster: CPU, NIC or qdisc".to_owned()),
            ..RateLadder::new(PhaseKind::Capacity, Some(direction), self.steps.clone())
        }
    }

    fn grow(&mut self) {
        let is_fast = self.row < GIGABIT_ROW && self.congested < CONGESTED_REPORTS;
        // RFC 9097 appendix A: a clear report ends a row of congested ones while the rate grows
        // fast.
        if is_fast {
            self.congested = 0;
        }
        self.row = (self.row + if is_fast { FAST_ROWS } else { 1 }).min(LAST_ROW);
    }

    fn fall(&mut self) {
        self.congested = self.congested.saturating_add(1);
        // RFC 9097 appendix A: once, with the third congested report in a row.
        let is_fast = self.row < GIGABIT_ROW && self.congested == CONGESTED_REPORTS;
        self.row = self
            .row
            .saturating_sub(if is_fast { 3 * FAST_ROWS } else { 1 });
    }

    fn count(&mut self, feedback: &CapacityFeedback) {
        let open = &mut self.open;
        open.elapsed_ns = open.elapsed_ns.saturating_add(feedback.elapsed_ns);
        open.bytes = open.bytes.saturating_add(feedback.bytes);
        open.datagrams = open.datagrams.saturating_add(feedback.datagrams);
        open.errors = open.errors.saturating_add(feedback.errors);

        if open.elapsed_ns < SUBINTERVAL_NS {
            return;
        }

        let bps = rate_bps(open.bytes, ns_to_s(open.elapsed_ns));
        // A subinterval in which nothing arrived and nothing failed has a share of 0.
        let all = open.datagrams.saturating_add(open.errors).max(1);
        let failed_share = open.errors as f64 / all as f64;

        self.highest_bps = Some(self.highest_bps.unwrap_or(0.0).max(bps));
        // The highest rate counts for every subinterval, the list of steps has an end.
        if self.steps.len() < STEPS_MAX {
            self.steps.push((rate_of(self.row) as f64, failed_share));
        }

        // Subintervals follow each other without overlap.
        self.open = CapacityFeedback::default();
    }
}

impl RateControl for CapacitySearch {
    fn rate_bps(&self) -> u64 {
        rate_of(self.row)
    }

    /// The absence of a report counts as congestion.
    fn take(&mut self, feedback: Option<&CapacityFeedback>) {
        if let Some(feedback) = feedback {
            self.count(feedback);
        }

        let is_clear =
            |f: &CapacityFeedback| f.errors <= ERRORS_MAX && f.delay_range_ns < DELAY_LOW_NS;
        let is_congested =
            |f: &CapacityFeedback| f.errors > ERRORS_MAX || f.delay_range_ns > DELAY_HIGH_NS;

        let is_reached = |f: &CapacityFeedback| {
            let bps = rate_bps(f.bytes, ns_to_s(f.elapsed_ns));
            rate_of(self.row) as f64 <= REACHED_FACTOR * bps + REACHED_SLACK_BPS
        };
        // RFC 9097 appendix A: a delay between both limits leaves the rate as it is.
        if feedback.is_some_and(|f| is_clear(f) && !is_reached(f)) {
            // The rate stays: a higher one would not leave the sender either.
            self.is_limited_by_sender = true;
        } else if feedback.is_some_and(is_clear) {
            self.grow();
        } else if feedback.is_none_or(is_congested) {
            self.fall();
        }
    }
}

/// Rate of a row in bit/s: 0.5 Mbit/s, then steps of 1 Mbit/s to 1 Gbit/s, of 100 Mbit/s to 10
/// Gbit/s, of 1 Gbit/s beyond.
fn rate_of(row: usize) -> u64 {
    const MEGABIT: u64 = 1_000_000;

    let rows = |row: usize| row as u64;
    match row {
        0 => MEGABIT / 2,
        low if low <= GIGABIT_ROW => rows(low) * MEGABIT,
        middle if middle <= TEN_GIGABIT_ROW => (1000 + 100 * rows(middle - GIGABIT_ROW)) * MEGABIT,
        high => (10_000 + 1000 * rows(high - TEN_GIGABIT_ROW)) * MEGABIT,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rows_have_the_rates_of_the_table() {
        let table = [
            (0, 0.5),
            (1, 1.0),
            (1000, 1000.0),
            (1001, 1100.0),
            (1090, 10_000.0),
            (1091, 11_000.0),
            (LAST_ROW, 100_000.0),
        ];
        for (row, mbit) in table {
            assert_eq!(rate_of(row) as f64, mbit * 1e6, "row {row}");
        }
    }

    /// Rates in Mbit/s after each report of: nothing wrong, delay in between, congestion.
    #[test]
    fn the_rate_moves_as_in_appendix_a() {
        let clear = CapacityFeedback::default();
        let between = CapacityFeedback {
            delay_range_ns: 50_000_000,
            ..clear
        };
        let lossy = CapacityFeedback {
            errors: 11,
            ..clear
        };
        let slow = CapacityFeedback {
            delay_range_ns: 91_000_000,
            ..clear
        };
        let few = CapacityFeedback {
            errors: 10,
            ..clear
        };
        let script = [
            (clear, 10),
            (few, 20),
            (clear, 30),
            (clear, 40),
            (between, 40),
            (lossy, 39),
            (slow, 38),
            // A clear report in time: growth is fast again.
            (clear, 48),
            (lossy, 47),
            (lossy, 46),
            // The third in a row: 30 rows back, and growth is slow from now on.
            (lossy, 16),
            (lossy, 15),
            (clear, 16),
            (clear, 17),
        ];

        let mut search = CapacitySearch::default();
        for (at, (report, mbit)) in script.iter().enumerate() {
            search.take(Some(report));
            assert_eq!(search.rate_bps(), mbit * 1_000_000, "report {at}");
        }

        search.take(None);
        assert_eq!(search.rate_bps(), 16_000_000);
    }

    /// A bottleneck of 50 Mbit/s with a queue of 100 ms, in simulated time.
    #[test]
    fn the_capacity_of_a_bottleneck_is_found() {
        let (mut search, mut queue_bits) = (CapacitySearch::default(), 0.0_f64);
        let (link_bps, seconds) = (50e6, 0.05);

        for _ in 0..200 {
            queue_bits += search.rate_bps() as f64 * seconds;
            let sent_on = queue_bits.min(link_bps * seconds);
            queue_bits -= sent_on;

            let dropped = (queue_bits - link_bps * 0.1).max(0.0);
            queue_bits -= dropped;
            search.take(Some(&CapacityFeedback {
                elapsed_ns: 50_000_000,
                bytes: (sent_on / 8.0) as u64,
                datagrams: (sent_on / 10_000.0) as u64,
                errors: (dropped / 10_000.0) as u64,
                delay_range_ns: (queue_bits / link_bps * 1e9) as u64,
            }));
        }

        let found = search.result(PathDirection::Down);
        assert!(
            found.highest.is_some_and(|bps| (bps - 50e6).abs() < 0.5e6),
            "{found:?}"
        );
        assert_eq!(found.steps.len(), 10);
    }

    /// The socket of a sender of 30 Mbit/s is full: it waits, and nothing is lost or delayed on the
    /// path.
    #[test]
    fn rate_that_the_sender_does_not_reach_grows_no_further() {
        let mut search = CapacitySearch::default();
        for _ in 0..200 {
            let bytes = (search.rate_bps().min(30_000_000) / 160).max(1);
            let elapsed_ns = 50_000_000;
            search.take(Some(&CapacityFeedback {
                elapsed_ns,
                bytes,
                datagrams: 1,
                ..CapacityFeedback::default()
            }));
        }

        assert!(search.rate_bps() <= 170_000_000, "{}", search.rate_bps());
        let found = search.result(PathDirection::Up);
        assert!(
            found.highest.is_some_and(|bps| (bps - 30e6).abs() < 0.3e6),
            "{found:?}"
        );
        assert_eq!(
            found.limit.as_deref(),
            Some("the sending host sends no faster: CPU, NIC or qdisc")
        );
    }

    proptest! {
        #[test]
        fn rates_stay_in_the_table(reports in prop::collection::vec(any::<Option<(u64, u64, u64)>>(), 0..300)) {
            let mut search = CapacitySearch::default();
            for report in reports {
                let report = report.map(|(elapsed_ns, errors, delay_range_ns)| CapacityFeedback {
                    elapsed_ns,
                    errors,
                    delay_range_ns,
                    ..CapacityFeedback::default()
                });
                search.take(report.as_ref());
                prop_assert!((500_000..=100_000_000_000).contains(&search.rate_bps()));
            }
        }
    }
}
