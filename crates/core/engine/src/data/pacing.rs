//! When the next bytes are due.

/// Schedule of a rate: byte number `n` is due at `start + n * 8 / rate`.
///
/// Deadlines are absolute, computed from the byte count in integers, so the rate neither drifts nor
/// depends on when the sender woke up. A sender that was held up sends what became due at once, as
/// the original does: its rate is an average since the start of the test.
#[derive(Clone, Copy)]
pub(crate) struct Schedule {
    start_ns: u64,
    rate_bps: u64,
}

const NS_PER_S: u128 = 1_000_000_000;

impl Schedule {
    /// `rate_bps` must not be 0.
    pub(crate) fn new(start_ns: u64, rate_bps: u64) -> Self {
        debug_assert!(rate_bps > 0, "a schedule needs a rate");
        Self {
            start_ns,
            rate_bps: rate_bps.max(1),
        }
    }

    /// When the byte after the first `bytes` may be sent, monotonic ns; rounded up, so that it is
    /// allowed then.
    pub(crate) fn due_ns(&self, bytes: u64) -> u64 {
        let after = (u128::from(bytes) * 8 * NS_PER_S).div_ceil(u128::from(self.rate_bps));
        self.start_ns
            .saturating_add(u64::try_from(after).unwrap_or(u64::MAX))
    }

    /// Number of bytes in total due at `now_ns`: the first byte after them is not.
    pub(crate) fn allowed_bytes(&self, now_ns: u64) -> u64 {
        let elapsed = u128::from(now_ns.saturating_sub(self.start_ns));
        let bytes = (elapsed * u128::from(self.rate_bps)) / (8 * NS_PER_S);
        u64::try_from(bytes).unwrap_or(u64::MAX).saturating_add(1)
    }

    /// Bytes that become due in `ns`.
    pub(crate) fn bytes_in(&self, ns: u64) -> u64 {
        u64::try_from(u128::from(self.rate_bps) * u128::from(ns) / (8 * NS_PER_S))
            .unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_do_not_drift() {
        let s = Schedule::new(5, 1_000_000);
        assert_eq!(s.due_ns(0), 5);
        assert_eq!(s.due_ns(125_000), 1_000_000_005);
        assert_eq!(s.due_ns(125_000 * 86_400), 86_400 * 1_000_000_000 + 5);
    }

    #[test]
    fn only_what_is_due_is_allowed() {
        let s = Schedule::new(0, 8_000);
        // One byte per millisecond: at 3.5 ms bytes 0, 1, 2 and 3 are due.
        assert_eq!(s.allowed_bytes(3_500_000), 4);
        assert!(s.due_ns(3) <= 3_500_000 && s.due_ns(4) > 3_500_000);
    }

    #[test]
    fn a_byte_is_allowed_at_its_due_time_and_not_before() {
        let s = Schedule::new(7, 1_048_576);
        for bytes in (0..100).map(|datagrams| datagrams * 1470) {
            assert_eq!(s.allowed_bytes(s.due_ns(bytes)), bytes + 1);
            assert!(bytes == 0 || s.allowed_bytes(s.due_ns(bytes) - 1) == bytes);
        }
    }

    #[test]
    fn extreme_rates_and_amounts_saturate() {
        let s = Schedule::new(u64::MAX - 1, 1);
        assert_eq!(s.due_ns(u64::MAX), u64::MAX);
        assert_eq!(Schedule::new(0, u64::MAX).allowed_bytes(u64::MAX), u64::MAX);
    }
}
