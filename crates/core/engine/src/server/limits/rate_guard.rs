//! Enforces a server's limit on the average rate of a test.

use std::collections::VecDeque;
use std::time::Duration;

use linerate_model::spec::BitrateLimit;
use linerate_sys::clock::as_ns;

/// Averages the bytes of all streams over the last few steps.
pub(crate) struct RateGuard {
    limit_bps: u64,
    step_ns: u64,
    /// Totals at the last step boundaries, oldest first.
    totals: VecDeque<(u64, u64)>,
    steps: usize,
    next_ns: u64,
}

/// Step of a server that reports no intervals.
const STEP_DEFAULT: Duration = Duration::from_secs(1);
/// Bound of the memory of one guard: a minute in tenths of a second.
const STEPS_MAX: usize = 600;

impl RateGuard {
    pub(crate) fn new(limit: &BitrateLimit, interval: Option<Duration>, now_ns: u64) -> Self {
        let step = interval.filter(|i| !i.is_zero()).unwrap_or(STEP_DEFAULT);
        let steps = (limit.window.as_secs_f64() / step.as_secs_f64()).round() as usize;
        let step_ns = as_ns(step);
        Self {
            limit_bps: limit.rate_bps,
            step_ns,
            totals: VecDeque::from([(now_ns, 0)]),
            steps: steps.clamp(1, STEPS_MAX),
            next_ns: now_ns.saturating_add(step_ns),
        }
    }

    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Evaluates a step boundary; the average in bit/s when it is above the limit.
    pub(crate) fn exceeded_bps(&mut self, now_ns: u64, total_bytes: u64) -> Option<u64> {
        if now_ns < self.next_ns {
            return None;
        }

        self.next_ns = now_ns.saturating_add(self.step_ns);
        self.totals.push_back((now_ns, total_bytes));
        if self.totals.len() <= self.steps {
            return None;
        }

        let (then_ns, then_bytes) = self.totals.pop_front()?;
        let elapsed_ns = u128::from(now_ns.saturating_sub(then_ns)).max(1);
        let bits = u128::from(total_bytes.saturating_sub(then_bytes)) * 8;
        let average_bps = u64::try_from(bits * 1_000_000_000 / elapsed_ns).unwrap_or(u64::MAX);

        (average_bps > self.limit_bps).then_some(average_bps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_short_burst_is_averaged_over_the_window() {
        let limit = BitrateLimit {
            rate_bps: 800,
            window: Duration::from_secs(2),
        };
        let mut guard = RateGuard::new(&limit, Some(Duration::from_secs(1)), 0);
        assert_eq!(
            guard.exceeded_bps(S, 190),
            None,
            "the window is not full yet"
        );
        assert_eq!(guard.exceeded_bps(2 * S, 200), None);
        assert_eq!(guard.exceeded_bps(3 * S, 200), None);
        assert_eq!(guard.exceeded_bps(4 * S, 401), Some(804));
    }
}
