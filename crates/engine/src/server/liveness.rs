//! Notices that a running test's client shows no sign of life any more.

use std::time::Duration;

use linerate_model::TestSpec;

/// Watches how far a test has come: bytes that arrived, or bytes the client has acknowledged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Liveness {
    patience_ns: u64,
    progress_bytes: u64,
    changed_ns: u64,
}

/// A stream that is paced may be silent for the time of a few blocks.
const BLOCKS: u64 = 3;

impl Liveness {
    /// Nothing is expected before `now_ns`, which may lie ahead.
    pub(crate) fn new(patience: Duration, now_ns: u64) -> Self {
        Self {
            patience_ns: u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX),
            progress_bytes: 0,
            changed_ns: now_ns,
        }
    }

    pub(crate) fn patience(&self) -> Duration {
        Duration::from_nanos(self.patience_ns)
    }

    /// There was no progress for the whole patience. Readings may fall behind the truth for a moment, so only a new
    /// highest value counts.
    pub(crate) fn is_over(&mut self, now_ns: u64, progress_bytes: u64) -> bool {
        if progress_bytes > self.progress_bytes {
            self.progress_bytes = progress_bytes;
            self.changed_ns = self.changed_ns.max(now_ns);
        }
        now_ns >= self.changed_ns.saturating_add(self.patience_ns)
    }
}

/// How long a healthy test of this kind may be silent.
pub(crate) fn patience(spec: &TestSpec, liveness: Duration) -> Duration {
    let rate_bps = [spec.pacing.rate_bps, spec.pacing.fq_rate_bps]
        .into_iter()
        .flatten()
        .filter(|r| *r > 0)
        .min();
    let Some(rate_bps) = rate_bps else { return liveness };
    let blocks = u64::from(spec.pacing.burst_blocks.unwrap_or(1)).saturating_mul(BLOCKS);
    let bits = u64::from(spec.block_len_bytes).saturating_mul(8).saturating_mul(blocks);
    liveness.max(Duration::from_millis(bits.saturating_mul(1000).div_ceil(rate_bps)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_progress_is_a_sign_of_life() {
        let mut liveness = Liveness::new(Duration::from_nanos(100), 0);
        assert!(!liveness.is_over(90, 5));
        assert!(!liveness.is_over(150, 4), "a reading that is behind the truth");
        assert!(!liveness.is_over(189, 5));
        assert!(liveness.is_over(190, 5));
    }

    #[test]
    fn slow_tests_are_given_the_time_of_three_blocks() {
        let ten = Duration::from_secs(10);
        let mut spec = TestSpec::default();
        assert_eq!(patience(&spec, ten), ten);
        spec.pacing.rate_bps = Some(100_000_000);
        assert_eq!(patience(&spec, ten), ten);
        // One block of 128 KiB every 21 s.
        spec.pacing.rate_bps = Some(50_000);
        assert_eq!(patience(&spec, ten), Duration::from_millis(62_915));
        spec.pacing.burst_blocks = Some(10);
        assert_eq!(patience(&spec, ten), Duration::from_millis(629_146));
    }
}
