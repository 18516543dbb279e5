//! Detects that nothing arrives any more.

use std::time::Duration;

use linerate_sys::clock::as_ns;

/// Watches the received bytes of a test (`--rcv-timeout`).
pub(crate) struct IdleTimeout {
    timeout_ns: Option<u64>,
    seen_bytes: u64,
    changed_ns: u64,
}

impl IdleTimeout {
    /// `timeout` is `None` on an end that receives nothing.
    pub(crate) fn new(timeout: Option<Duration>, now_ns: u64) -> Self {
        let timeout_ns = timeout.map(as_ns);
        Self {
            timeout_ns,
            seen_bytes: 0,
            changed_ns: now_ns,
        }
    }

    /// When it expires.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.timeout_ns.map(|p| self.changed_ns.saturating_add(p))
    }

    /// Nothing arrived for the whole timeout.
    pub(crate) fn is_expired(&mut self, now_ns: u64, received_bytes: u64) -> bool {
        if received_bytes != self.seen_bytes {
            self.seen_bytes = received_bytes;
            self.changed_ns = now_ns;
        }
        self.next_ns().is_some_and(|t| now_ns >= t)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_measured_from_the_last_byte() {
        let mut guard = IdleTimeout::new(Some(Duration::from_nanos(100)), 0);
        assert!(!guard.is_expired(90, 1));
        assert!(!guard.is_expired(180, 1));
        assert!(guard.is_expired(190, 1));
    }

    #[test]
    fn sender_never_times_out() {
        assert!(!IdleTimeout::new(None, 0).is_expired(u64::MAX, 0));
    }
}
