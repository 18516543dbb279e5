//! The lease of an agent: what runs on its host ends when the coordinator has been silent for too
//! long.

use crate::MS_NS;

/// Shortest lease that an agent accepts, in ms.
pub const LEASE_MIN_MS: u64 = 500;
/// Longest lease that an agent accepts, in ms.
pub const LEASE_MAX_MS: u64 = 60_000;

/// Time until which an agent may continue without a message of the coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    period_ns: u64,
    expires_at_ns: u64,
}

impl Lease {
    /// A lease that begins now. The period is clamped to [`LEASE_MIN_MS`] to [`LEASE_MAX_MS`].
    pub fn new(now_ns: u64, period_ms: u64) -> Self {
        let period_ns = period_ms.clamp(LEASE_MIN_MS, LEASE_MAX_MS) * MS_NS;
        Self {
            period_ns,
            expires_at_ns: now_ns.saturating_add(period_ns),
        }
    }

    /// A message arrived. An expired lease is not renewed: what it protects has ended.
    pub fn renew(&mut self, now_ns: u64) {
        if !self.is_expired(now_ns) {
            self.expires_at_ns = self
                .expires_at_ns
                // A message cannot shorten the lease, whatever the order in which times arrive.
                .max(now_ns.saturating_add(self.period_ns));
        }
    }

    /// Nothing arrived in time.
    pub fn is_expired(&self, now_ns: u64) -> bool {
        now_ns >= self.expires_at_ns
    }

    /// When the lease expires if nothing arrives.
    pub fn expires_at_ns(&self) -> u64 {
        self.expires_at_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renewed_lease_expires_one_period_after_the_last_message() {
        let mut lease = Lease::new(0, 3000);
        lease.renew(2_000 * MS_NS);
        lease.renew(1_000 * MS_NS);
        assert_eq!(lease.expires_at_ns(), 5_000 * MS_NS);
        assert!(!lease.is_expired(5_000 * MS_NS - 1) && lease.is_expired(5_000 * MS_NS));
        lease.renew(5_000 * MS_NS);
        assert!(
            lease.is_expired(5_000 * MS_NS),
            "an expired lease stays expired"
        );
    }

    #[test]
    fn periods_have_bounds() {
        assert_eq!(Lease::new(0, 0).expires_at_ns(), LEASE_MIN_MS * MS_NS);
        assert_eq!(
            Lease::new(0, u64::MAX).expires_at_ns(),
            LEASE_MAX_MS * MS_NS
        );
    }
}
