//! The bytes that are still on their way when the test has ended.
//!
//! A stock client that has handed its last block to its kernel ends the test at once; over a slow
//! or a paced path most of the amount may not have arrived by then. A server that sends closes its
//! streams at the end, so its client reads to the end of each. A server whose stock client ends a
//! timed test knows neither: what is under way is cut off.

use linerate_model::{EndCondition, TestSpec, Transport};

/// Waits until the amount is there, the stream is idle, or the timeout ends.
#[derive(Debug)]
pub(crate) struct ReceiverDrain {
    /// Bytes the peer announced; `None` when only an idle stream marks the end.
    expected_bytes: Option<u64>,
    seen_bytes: u64,
    changed_ns: u64,
    poll_ns: u64,
    deadline_ns: u64,
}

/// Longest wait after the end of the test.
const TIMEOUT_NS: u64 = 2_000_000_000;
/// Idle time that ends the wait.
const IDLE_NS: u64 = 300_000_000;
/// Poll period.
const POLL_NS: u64 = 500_000;

impl ReceiverDrain {
    /// `None` when there is nothing to wait for.
    pub(super) fn of(spec: &TestSpec, now_ns: u64) -> Option<Self> {
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
            seen_bytes: 0,
            changed_ns: now_ns,
            poll_ns: now_ns,
            deadline_ns: now_ns.saturating_add(TIMEOUT_NS),
        }
    }

    /// When to call [`ReceiverDrain::is_over`] again.
    pub(crate) fn poll_ns(&self) -> u64 {
        self.poll_ns
    }

    /// The wait has ended.
    pub(crate) fn is_over(&mut self, now_ns: u64, received_bytes: u64) -> bool {
        if received_bytes != self.seen_bytes {
            self.seen_bytes = received_bytes;
            self.changed_ns = now_ns;
        }

        self.poll_ns = now_ns.saturating_add(POLL_NS);
        self.expected_bytes
            .is_some_and(|expected| received_bytes >= expected)
            || now_ns >= self.deadline_ns
            || now_ns.saturating_sub(self.changed_ns) >= IDLE_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn spec(end: EndCondition) -> TestSpec {
        TestSpec {
            end,
            ..TestSpec::default()
        }
    }

    #[test]
    fn the_announced_amount_ends_the_wait() {
        let mut drain =
            ReceiverDrain::of(&spec(EndCondition::Bytes(100)), 0).expect("a limited test");
        assert!(!drain.is_over(1, 99));
        assert!(drain.is_over(2, 100));
    }

    #[test]
    fn idle_stream_or_timeout_ends_the_wait() {
        let mut drain =
            ReceiverDrain::of(&spec(EndCondition::Bytes(100)), 0).expect("a limited test");
        assert!(!drain.is_over(IDLE_NS - 1, 1));
        assert!(!drain.is_over(IDLE_NS + 1, 1));
        assert!(drain.is_over(2 * IDLE_NS, 1));

        let mut trickle =
            ReceiverDrain::of(&spec(EndCondition::Bytes(100)), 0).expect("a limited test");
        assert!(
            (1..)
                .take_while(|i| i * IDLE_NS / 2 < TIMEOUT_NS)
                .all(|i| !trickle.is_over(i * IDLE_NS / 2, i))
        );
        assert!(trickle.is_over(TIMEOUT_NS, 50));
    }

    #[test]
    fn the_receiver_of_a_timed_test_knows_no_amount() {
        assert!(
            ReceiverDrain::of(&spec(EndCondition::Duration(Duration::from_secs(1))), 0).is_none()
        );
    }
}
