//! The period that tests which started together have in common.

/// Amounts that one test moved over time. Times are in ns of one clock.
#[derive(Debug, Clone)]
pub struct TestIntervals {
    /// Actual start.
    pub start_ns: u64,
    /// End of the test.
    pub end_ns: u64,
    /// Intervals in order.
    pub intervals: Vec<ByteInterval>,
}

/// Bytes of a part of a test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ByteInterval {
    /// Begin.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// Payload received.
    pub bytes: u64,
}

/// A span of time in ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Period {
    /// Begin.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
}

/// The period from the latest start and the warm-up to the earliest end. `test_ns` is the length of
/// a test without the warm-up. `None` where that is less than half of a test, and of no tests.
pub fn common(tests: &[TestIntervals], omit_ns: u64, test_ns: u64) -> Option<Period> {
    let start_ns = tests.iter().map(|test| test.start_ns).max()?;
    let start_ns = start_ns.saturating_add(omit_ns);
    let end_ns = tests.iter().map(|test| test.end_ns).min()?;
    let common_ns = end_ns.saturating_sub(start_ns);
    let is_enough = common_ns > 0 && common_ns >= test_ns.div_ceil(2);

    is_enough.then_some(Period { start_ns, end_ns })
}

impl TestIntervals {
    /// Rate in a period in bit/s. Of an interval that is partly in it, the same part of its bytes
    /// counts.
    pub fn rate_bps(&self, period: Period) -> f64 {
        let mut bytes = 0.0;
        for interval in &self.intervals {
            let from_ns = interval.start_ns.max(period.start_ns);
            let to_ns = interval.end_ns.min(period.end_ns);
            // An interval of no length would divide by 0; its bytes then count in no part.
            let whole_ns = interval.end_ns.saturating_sub(interval.start_ns).max(1);
            let part = to_ns.saturating_sub(from_ns) as f64 / whole_ns as f64;
            bytes += interval.bytes as f64 * part;
        }

        // Bytes per nanosecond times 8e9 is bit/s.
        match period.end_ns.saturating_sub(period.start_ns) {
            0 => 0.0,
            length_ns => bytes * 8e9 / length_ns as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A test of 100 Mbit/s in intervals of 100 ms.
    fn series(start_ms: u64, length_ms: u64) -> TestIntervals {
        let begins = (0..length_ms / 100).map(|at| (start_ms + 100 * at) * MS);
        let intervals = begins
            .map(|start_ns| ByteInterval {
                start_ns,
                end_ns: start_ns + 100 * MS,
                bytes: 1_250_000,
            })
            .collect();
        TestIntervals {
            start_ns: start_ms * MS,
            end_ns: (start_ms + length_ms) * MS,
            intervals,
        }
    }

    #[test]
    fn period_is_from_the_latest_start_to_the_earliest_end() {
        let tests = [series(0, 3000), series(130, 3000)];
        let period = common(&tests, 1000 * MS, 2000 * MS).expect("a common period");
        assert_eq!(
            period,
            Period {
                start_ns: 1130 * MS,
                end_ns: 3000 * MS
            }
        );

        for test in &tests {
            let rate = test.rate_bps(period);
            assert!((rate - 1e8).abs() < 1.0, "edges are prorated: {rate}");
        }
    }

    #[test]
    fn tests_with_less_than_half_in_common_are_not_compared() {
        let late = common(&[series(0, 3000), series(1200, 3000)], 1000 * MS, 2000 * MS);
        assert_eq!(late, None, "800 of 2000 ms");
        let half = common(&[series(0, 3000), series(1000, 3000)], 1000 * MS, 2000 * MS);
        assert!(half.is_some());
        assert_eq!(common(&[], 0, 0), None);
    }
}
