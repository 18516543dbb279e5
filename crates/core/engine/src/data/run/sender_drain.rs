//! The last bytes of a test on their way to the peer.

/// Follows the unacknowledged bytes until there are none, or the peer takes no more.
#[derive(Debug)]
pub(crate) struct SenderDrain {
    outstanding_bytes: u64,
    progress_ns: u64,
    poll_ns: u64,
    deadline_ns: u64,
}

/// Poll period of the send queues.
const POLL_NS: u64 = 200_000;
/// Longest time without an acknowledgement.
const TIMEOUT_NS: u64 = 2_000_000_000;

/// Longest wait after the time of a timed test.
const TIMED_TIMEOUT_NS: u64 = 2_000_000_000;

impl SenderDrain {
    /// As long as the peer takes anything.
    pub(super) fn new(now_ns: u64) -> Self {
        Self {
            outstanding_bytes: u64::MAX,
            progress_ns: now_ns,
            poll_ns: now_ns,
            deadline_ns: u64::MAX,
        }
    }

    /// With a limit, for a test whose time is up.
    pub(crate) fn timed(now_ns: u64) -> Self {
        Self {
            deadline_ns: now_ns.saturating_add(TIMED_TIMEOUT_NS),
            ..Self::new(now_ns)
        }
    }

    /// When to call [`SenderDrain::is_over`] next.
    pub(crate) fn poll_ns(&self) -> u64 {
        self.poll_ns
    }

    /// Nothing is left, or nothing moves.
    pub(crate) fn is_over(&mut self, now_ns: u64, outstanding_bytes: u64) -> bool {
        if outstanding_bytes < self.outstanding_bytes {
            self.outstanding_bytes = outstanding_bytes;
            self.progress_ns = now_ns;
        }

        self.poll_ns = now_ns.saturating_add(POLL_NS);
        let is_stuck = now_ns.saturating_sub(self.progress_ns) > TIMEOUT_NS;
        outstanding_bytes == 0 || is_stuck || now_ns >= self.deadline_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_queue_or_a_stuck_peer_ends_it() {
        let mut drain = SenderDrain::new(0);
        assert!(!drain.is_over(1, 500));
        assert!(
            !drain.is_over(TIMEOUT_NS, 400),
            "progress renews the timeout"
        );
        assert!(!drain.is_over(2 * TIMEOUT_NS, 400));
        assert!(drain.is_over(2 * TIMEOUT_NS + 1, 400));
        assert!(SenderDrain::new(0).is_over(0, 0));
    }

    #[test]
    fn a_timed_test_does_not_wait_for_a_slow_path_without_limit() {
        let mut drain = SenderDrain::timed(0);
        assert!((1..10).all(|i| !drain.is_over(i * TIMED_TIMEOUT_NS / 10, 500 - i)));
        assert!(drain.is_over(TIMED_TIMEOUT_NS, 1));
    }
}
