//! Notices that a running test's client shows no sign of life any more.

use std::time::{Duration, Instant};

use linerate_model::{TestSpec, policy};
use linerate_sys::clock::as_ns;

/// Watches how far a test has come: bytes that arrived, or bytes the client has acknowledged.
#[derive(Clone, Copy)]
pub(crate) struct Liveness {
    limits: policy::Liveness,
    /// Less than this is no progress.
    progress_bytes_min: u64,
    progress_bytes: u64,
    changed_ns: u64,
    checked_ns: u64,
}

/// Rate of the slowest path that is served.
const LEAST_BPS: u64 = 800;
/// A stream that is paced may be silent for the time of a few blocks.
const BLOCKS: u64 = 3;
/// Time between two checks.
const CHECK_PERIOD: Duration = Duration::from_millis(250);
/// Longest time between two checks of a server that runs.
const CHECK_GAP_MAX_NS: u64 = 2_000_000_000;

impl Liveness {
    /// Nothing is expected before `now_ns`, which may lie ahead.
    pub(crate) fn new(limits: policy::Liveness, now_ns: u64) -> Self {
        Self {
            limits,
            progress_bytes_min: 1,
            progress_bytes: 0,
            changed_ns: now_ns,
            checked_ns: now_ns,
        }
    }

    /// For a test that begins at `now_ns`.
    pub(crate) fn of_test(spec: &TestSpec, limits: policy::Liveness, now_ns: u64) -> Self {
        let limits = limits_of(spec, limits);
        let least = progress_bytes_min(spec, limits.while_wanted);
        Self::new(limits, now_ns).demanding(least)
    }

    /// When [`Self::exceeded`] is due again: progress is a counter of the workers, and no event
    /// announces its silence.
    pub(crate) fn next_check() -> Instant {
        Instant::now() + CHECK_PERIOD
    }

    /// Takes only this much for progress.
    pub(crate) fn demanding(mut self, progress_bytes_min: u64) -> Self {
        self.progress_bytes_min = progress_bytes_min.max(1);
        self
    }

    /// The limit that was exceeded without progress. Counters may be read late, so only a new
    /// highest value counts.
    pub(crate) fn exceeded(
        &mut self,
        now_ns: u64,
        progress_bytes: u64,
        is_place_wanted: bool,
    ) -> Option<Duration> {
        // A server that was stopped has not seen what its client did.
        let gap_ns = now_ns.saturating_sub(self.checked_ns);
        // SIGSTOP or a suspended machine: the time counts for neither end.
        if gap_ns > CHECK_GAP_MAX_NS {
            self.changed_ns = self.changed_ns.saturating_add(gap_ns);
        }

        self.checked_ns = self.checked_ns.max(now_ns);

        // More than a byte: a client could otherwise keep a place with a byte per period.
        if progress_bytes >= self.progress_bytes.saturating_add(self.progress_bytes_min) {
            self.progress_bytes = progress_bytes;
            self.changed_ns = self.changed_ns.max(now_ns);
        }

        let limit = if is_place_wanted {
            self.limits.while_wanted
        } else {
            self.limits.otherwise
        };
        (now_ns >= self.changed_ns.saturating_add(as_ns(limit))).then_some(limit)
    }
}

/// The rate of a stream that was agreed, bit/s.
fn agreed_bps(spec: &TestSpec) -> Option<u64> {
    let rates = [spec.pacing.rate_bps, spec.pacing.fq_rate_bps];
    rates.into_iter().flatten().filter(|r| *r > 0).min()
}

/// Bytes that a test must move in the time it may be silent: a tenth of what was agreed, and never
/// more than a path of 800 bit/s allows. A client that trickles keeps no place.
fn progress_bytes_min(spec: &TestSpec, timeout: Duration) -> u64 {
    let rate_bps = agreed_bps(spec).map_or(LEAST_BPS, |rate| (rate / 10).min(LEAST_BPS));
    let bits = u128::from(rate_bps) * timeout.as_millis() / 1000;
    u64::try_from(bits / 8).unwrap_or(u64::MAX).max(1)
}

/// Longest silence of a healthy test of this kind.
pub(crate) fn limits_of(spec: &TestSpec, liveness: policy::Liveness) -> policy::Liveness {
    let Some(rate_bps) = agreed_bps(spec) else {
        return liveness;
    };
    let blocks = u64::from(spec.pacing.burst_blocks.unwrap_or(1)).saturating_mul(BLOCKS);
    let bits = u64::from(spec.block_len_bytes)
        .saturating_mul(8)
        .saturating_mul(blocks);

    liveness.at_least(Duration::from_millis(
        bits.saturating_mul(1000).div_ceil(rate_bps),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Duration = Duration::from_secs(10);

    fn limits(while_wanted_ns: u64, otherwise_ns: u64) -> policy::Liveness {
        let mut limits = policy::Liveness::always(Duration::from_nanos(otherwise_ns));
        limits.while_wanted = Duration::from_nanos(while_wanted_ns);
        limits
    }

    #[test]
    fn only_progress_renews_the_timeout() {
        let mut liveness = Liveness::new(limits(100, 100), 0);
        let mut is_over =
            |now_ns, progress_bytes| liveness.exceeded(now_ns, progress_bytes, false).is_some();
        assert!(!is_over(90, 5));
        assert!(!is_over(150, 4), "a reading that is behind the truth");
        assert!(!is_over(189, 5));
        assert!(is_over(190, 5));
    }

    #[test]
    fn a_place_that_another_client_wants_is_kept_for_a_shorter_time() {
        let mut liveness = Liveness::new(limits(100, 500), 0);
        assert_eq!(liveness.exceeded(499, 0, false), None);
        assert_eq!(
            liveness.exceeded(499, 0, true),
            Some(Duration::from_nanos(100))
        );
        assert_eq!(
            liveness.exceeded(500, 0, false),
            Some(Duration::from_nanos(500))
        );
    }

    #[test]
    fn a_pause_of_the_server_is_no_silence_of_the_client() {
        let second_ns = 1_000_000_000;
        let mut liveness = Liveness::new(limits(10 * second_ns, 20 * second_ns), 0);
        assert_eq!(liveness.exceeded(second_ns, 0, true), None);
        assert_eq!(
            liveness.exceeded(31 * second_ns, 0, true),
            None,
            "30 s without a check"
        );

        let mut seconds = 32..;
        let ends = seconds.find(|second| liveness.exceeded(second * second_ns, 0, true).is_some());
        assert_eq!(ends, Some(40));
    }

    #[test]
    fn a_trickle_is_no_progress() {
        let mut spec = TestSpec::default();
        assert_eq!(progress_bytes_min(&spec, TEN), 1000);
        spec.pacing.rate_bps = Some(1600);
        assert_eq!(progress_bytes_min(&spec, TEN), 200);
        spec.pacing.rate_bps = Some(1);
        assert_eq!(progress_bytes_min(&spec, TEN), 1);

        let mut liveness = Liveness::new(limits(100, 100), 0).demanding(10);
        let mut is_over =
            |now_ns, progress_bytes| liveness.exceeded(now_ns, progress_bytes, false).is_some();
        assert!((1..10).all(|bytes| !is_over(bytes * 10, bytes)));
        assert!(is_over(100, 9));
        assert!(!is_over(100, 10) && !is_over(199, 11));
    }

    #[test]
    fn slow_tests_are_given_the_time_of_three_blocks() {
        let mut spec = TestSpec::default();
        let while_wanted =
            |spec: &TestSpec| limits_of(spec, policy::Liveness::always(TEN)).while_wanted;
        assert_eq!(while_wanted(&spec), TEN);
        spec.pacing.rate_bps = Some(100_000_000);
        assert_eq!(while_wanted(&spec), TEN);

        // One block of 128 KiB every 21 s.
        spec.pacing.rate_bps = Some(50_000);
        assert_eq!(while_wanted(&spec), Duration::from_millis(62_915));
        spec.pacing.burst_blocks = Some(10);
        assert_eq!(while_wanted(&spec), Duration::from_millis(629_146));
    }
}
