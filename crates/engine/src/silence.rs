//! Notices that nothing arrives any more.

use std::time::Duration;

/// Watches the received bytes of a test (`--rcv-timeout`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct SilenceGuard {
    patience_ns: Option<u64>,
    seen_bytes: u64,
    changed_ns: u64,
}

impl SilenceGuard {
    /// `patience` is `None` on an end that receives nothing.
    pub(crate) fn new(patience: Option<Duration>, now_ns: u64) -> Self {
        let patience_ns = patience.map(|p| u64::try_from(p.as_nanos()).unwrap_or(u64::MAX));
        Self {
            patience_ns,
            seen_bytes: 0,
            changed_ns: now_ns,
        }
    }

    /// When to look next.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.patience_ns.map(|p| self.changed_ns.saturating_add(p))
    }

    /// Nothing came for the whole patience.
    pub(crate) fn is_silent(&mut self, now_ns: u64, received_bytes: u64) -> bool {
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
    fn silence_is_measured_from_the_last_byte() {
        let mut guard = SilenceGuard::new(Some(Duration::from_nanos(100)), 0);
        assert!(!guard.is_silent(90, 1));
        assert!(!guard.is_silent(180, 1));
        assert!(guard.is_silent(190, 1));
    }

    #[test]
    fn a_pure_sender_is_never_silent() {
        assert!(!SilenceGuard::new(None, 0).is_silent(u64::MAX, 0));
    }
}
