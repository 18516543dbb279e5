//! Notices that a running test's client shows no sign of life any more.

use std::time::Duration;

use linerate_model::TestSpec;
use linerate_sys::clock::as_ns;

/// Watches how far a test has come: bytes that arrived, or bytes the client has acknowledged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Liveness {
    timeout_ns: u64,
    /// Less than this is no progress.
    progress_bytes_min: u64,
    progress_bytes: u64,
    changed_ns: u64,
}

/// Rate of the slowest path that is served.
const LEAST_BPS: u64 = 800;
/// A stream that is paced may be silent for the time of a few blocks.
const BLOCKS: u64 = 3;

impl Liveness {
    /// Nothing is expected before `now_ns`, which may lie ahead.
    pub(crate) fn new(timeout: Duration, now_ns: u64) -> Self {
        Self { timeout_ns: as_ns(timeout), progress_bytes_min: 1, progress_bytes: 0, changed_ns: now_ns }
    }

    /// Takes only this much for progress.
    pub(crate) fn demanding(mut self, progress_bytes_min: u64) -> Self {
        self.progress_bytes_min = progress_bytes_min.max(1);
        self
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_nanos(self.timeout_ns)
    }

    /// There was no progress for the whole timeout. Counters may be read late, so only a new
    /// highest value counts.
    pub(crate) fn is_over(&mut self, now_ns: u64, progress_bytes: u64) -> bool {
        if progress_bytes >= self.progress_bytes.saturating_add(self.progress_bytes_min) {
            self.progress_bytes = progress_bytes;
            self.changed_ns = self.changed_ns.max(now_ns);
        }
        now_ns >= self.changed_ns.saturating_add(self.timeout_ns)
    }
}

/// The rate of a stream that was agreed, bit/s.
fn agreed_bps(spec: &TestSpec) -> Option<u64> {
    let rates = [spec.pacing.rate_bps, spec.pacing.fq_rate_bps];
    rates.into_iter().flatten().filter(|r| *r > 0).min()
}

/// What a test must move in the time it may be silent: a tenth of what was agreed, and never more than a path of
/// 800 bit/s allows. A client that trickles keeps no place.
pub(crate) fn progress_bytes_min(spec: &TestSpec, timeout: Duration) -> u64 {
    let rate_bps = agreed_bps(spec).map_or(LEAST_BPS, |rate| (rate / 10).min(LEAST_BPS));
    let bits = u128::from(rate_bps) * timeout.as_millis() / 1000;
    u64::try_from(bits / 8).unwrap_or(u64::MAX).max(1)
}

/// How long a healthy test of this kind may be silent.
pub(crate) fn liveness_timeout(spec: &TestSpec, liveness: Duration) -> Duration {
    let Some(rate_bps) = agreed_bps(spec) else {
        return liveness;
    };
    let blocks = u64::from(spec.pacing.burst_blocks.unwrap_or(1)).saturating_mul(BLOCKS);
    let bits = u64::from(spec.block_len_bytes).saturating_mul(8).saturating_mul(blocks);
    liveness.max(Duration::from_millis(bits.saturating_mul(1000).div_ceil(rate_bps)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_progress_renews_the_timeout() {
        let mut liveness = Liveness::new(Duration::from_nanos(100), 0);
        assert!(!liveness.is_over(90, 5));
        assert!(!liveness.is_over(150, 4), "a reading that is behind the truth");
        assert!(!liveness.is_over(189, 5));
        assert!(liveness.is_over(190, 5));
    }

    #[test]
    fn a_trickle_is_no_progress() {
        let ten = Duration::from_secs(10);
        let mut spec = TestSpec::default();
        assert_eq!(progress_bytes_min(&spec, ten), 1000);
        spec.pacing.rate_bps = Some(1600);
        assert_eq!(progress_bytes_min(&spec, ten), 200);
        spec.pacing.rate_bps = Some(1);
        assert_eq!(progress_bytes_min(&spec, ten), 1);
        let mut liveness = Liveness::new(Duration::from_nanos(100), 0).demanding(10);
        assert!((1..10).all(|bytes| !liveness.is_over(bytes * 10, bytes)));
        assert!(liveness.is_over(100, 9));
        assert!(!liveness.is_over(100, 10) && !liveness.is_over(199, 11));
    }

    #[test]
    fn slow_tests_are_given_the_time_of_three_blocks() {
        let ten = Duration::from_secs(10);
        let mut spec = TestSpec::default();
        assert_eq!(liveness_timeout(&spec, ten), ten);
        spec.pacing.rate_bps = Some(100_000_000);
        assert_eq!(liveness_timeout(&spec, ten), ten);
        // One block of 128 KiB every 21 s.
        spec.pacing.rate_bps = Some(50_000);
        assert_eq!(liveness_timeout(&spec, ten), Duration::from_millis(62_915));
        spec.pacing.burst_blocks = Some(10);
        assert_eq!(liveness_timeout(&spec, ten), Duration::from_millis(629_146));
    }
}
