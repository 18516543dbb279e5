//! The bytes that are still on their way when the test has ended.
//!
//! A stock client that has handed its last block to its kernel ends the test at once; over a slow
//! or a paced path most of the amount may not have arrived by then. A server that sends closes its
//! streams at the end, so its client reads to the end of each. A server whose stock client ends a
//! timed test knows neither: what is under way is cut off.

use std::time::Duration;

use linerate_model::{EndCondition, TestSpec, Transport};

use crate::data::idle_timeout::IdleTimeout;

/// Waits until the amount is there, nothing moves, or the time has passed.
pub(crate) struct Drain {
    /// Bytes that end the wait; `None` when only silence marks the end.
    expected_bytes: Option<u64>,
    silence: IdleTimeout,
    period_ns: u64,
    /// When to call [`Self::is_over`] next.
    pub poll_ns: u64,
    deadline_ns: u64,
}

/// Longest wait after the end of a test with a time.
const TIMEOUT_NS: u64 = 2_000_000_000;
/// Silence of a peer that ends the wait for what it sends.
const RECEIVERS_IDLE: Duration = Duration::from_millis(300);
/// Longest time without an acknowledgement.
const SENDERS_IDLE: Duration = Duration::from_secs(2);
/// Poll periods of the streams and of the send queues.
const RECEIVERS_PERIOD_NS: u64 = 500_000;
const SENDERS_PERIOD_NS: u64 = 200_000;

impl Drain {
    /// Follows the unacknowledged bytes as long as the peer takes anything. What is counted are the
    /// bytes below `u64::MAX`: none are left when all are there.
    pub(super) fn of_senders(now_ns: u64) -> Self {
        Self {
            expected_bytes: Some(u64::MAX),
            silence: IdleTimeout::new(Some(SENDERS_IDLE), now_ns),
            period_ns: SENDERS_PERIOD_NS,
            poll_ns: now_ns,
            deadline_ns: u64::MAX,
        }
    }

    /// With a limit, for a test whose time is up.
    pub(crate) fn of_timed_senders(now_ns: u64) -> Self {
        Self {
            deadline_ns: now_ns.saturating_add(TIMEOUT_NS),
            ..Self::of_senders(now_ns)
        }
    }

    /// Follows what arrives of an amount; `None` when there is nothing to wait for.
    pub(super) fn of_amount(spec: &TestSpec, now_ns: u64) -> Option<Self> {
        let amount = match spec.end {
            EndCondition::Bytes(bytes) => bytes,
            EndCondition::Blocks(blocks) => blocks.saturating_mul(u64::from(spec.block_len_bytes)),
            EndCondition::Duration(_) | EndCondition::Unlimited => return None,
        };
        if spec.transport == Transport::Udp {
            return None;
        }

        Some(Self {
            // The two ends do not count from the same moment when there is a warm-up.
            expected_bytes: spec.omit.is_zero().then_some(amount),
            ..Self::of_closed_streams(now_ns)
        })
    }

    /// Only the end of the streams, an idle stream and the timeout end this wait.
    pub(crate) fn of_closed_streams(now_ns: u64) -> Self {
        Self {
            expected_bytes: None,
            silence: IdleTimeout::new(Some(RECEIVERS_IDLE), now_ns),
            period_ns: RECEIVERS_PERIOD_NS,
            poll_ns: now_ns,
            deadline_ns: now_ns.saturating_add(TIMEOUT_NS),
        }
    }

    /// The wait has ended.
    pub(crate) fn is_over(&mut self, now_ns: u64, bytes: u64) -> bool {
        self.poll_ns = now_ns.saturating_add(self.period_ns);
        self.silence.is_expired(now_ns, bytes)
            || now_ns >= self.deadline_ns
            || self
                .expected_bytes
                .is_some_and(|expected| bytes >= expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECEIVERS_IDLE_NS: u64 = RECEIVERS_IDLE.as_nanos() as u64;
    const SENDERS_IDLE_NS: u64 = SENDERS_IDLE.as_nanos() as u64;

    fn spec(end: EndCondition) -> TestSpec {
        TestSpec {
            end,
            ..TestSpec::default()
        }
    }

    #[test]
    fn an_empty_queue_or_a_stuck_peer_ends_it() {
        let mut drain = Drain::of_senders(0);
        assert!(!drain.is_over(1, u64::MAX - 500));
        assert!(
            !drain.is_over(SENDERS_IDLE_NS, u64::MAX - 400),
            "progress renews the timeout"
        );
        assert!(!drain.is_over(2 * SENDERS_IDLE_NS - 1, u64::MAX - 400));
        assert!(drain.is_over(2 * SENDERS_IDLE_NS, u64::MAX - 400));
        assert!(Drain::of_senders(0).is_over(0, u64::MAX));
    }

    #[test]
    fn a_timed_test_does_not_wait_for_a_slow_path_without_limit() {
        let mut drain = Drain::of_timed_senders(0);
        assert!((1..10).all(|i| !drain.is_over(i * TIMEOUT_NS / 10, u64::MAX - 500 + i)));
        assert!(drain.is_over(TIMEOUT_NS, u64::MAX - 1));
    }

    #[test]
    fn the_announced_amount_ends_the_wait() {
        let mut drain = Drain::of_amount(&spec(EndCondition::Bytes(100)), 0).expect("limited");
        assert!(!drain.is_over(1, 99));
        assert!(drain.is_over(2, 100));
    }

    #[test]
    fn idle_stream_or_timeout_ends_the_wait() {
        let limited = || Drain::of_amount(&spec(EndCondition::Bytes(100)), 0).expect("limited");
        let mut drain = limited();
        assert!(!drain.is_over(RECEIVERS_IDLE_NS - 1, 1));
        assert!(!drain.is_over(RECEIVERS_IDLE_NS + 1, 1));
        assert!(drain.is_over(2 * RECEIVERS_IDLE_NS, 1));

        let mut trickle = limited();
        assert!(
            (1..)
                .take_while(|i| i * RECEIVERS_IDLE_NS / 2 < TIMEOUT_NS)
                .all(|i| !trickle.is_over(i * RECEIVERS_IDLE_NS / 2, i))
        );
        assert!(trickle.is_over(TIMEOUT_NS, 50));
    }

    #[test]
    fn the_receiver_of_a_timed_test_knows_no_amount() {
        let timed = spec(EndCondition::Duration(Duration::from_secs(1)));
        assert!(Drain::of_amount(&timed, 0).is_none());
    }
}
