//! Limits of a server on the bytes of a test: rates that its tests share, and an amount.
//!
//! Workers ask before they read or write and charge afterwards, so a limit holds from the first
//! byte. A sender waits; a receiver does not read, which closes the window of a TCP sender and lets
//! the kernel drop datagrams.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The limits of one test; empty for none.
#[derive(Clone, Default)]
pub(crate) struct Quota {
    rates: Vec<Arc<SharedRate>>,
    /// Bytes left.
    amount: Option<Arc<AtomicU64>>,
}

/// Bytes that may be moved now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    /// This many bytes.
    Bytes(usize),
    /// Nothing before this monotonic time, ns.
    NotBefore(u64),
    /// Nothing any more.
    UsedUp,
}

/// Traffic that a rate is shared by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Traffic {
    /// Data of a load.
    Load,
    /// Probes, whose delay is measured: they wait for other probes alone, while the load waits for
    /// both.
    Probes,
}

/// A rate that all tests of a scope share.
pub(crate) struct SharedRate {
    rate_bps: u64,
    /// When everything that was moved had been moved at the rate, monotonic ns.
    paid_until_ns: AtomicU64,
    /// The same of the probes alone.
    probes_paid_until_ns: AtomicU64,
}

/// Time at the rate for which bytes are granted at once: short enough to be smooth, long enough to
/// be cheap.
const PORTION_NS: u64 = 4_000_000;
/// Smallest portion: about one segment on Ethernet.
const PORTION_MIN_BYTES: u64 = 1448;
/// Time that a late worker may catch up with.
const CREDIT_NS: u64 = 10_000_000;

impl Quota {
    pub(crate) fn new(rates: Vec<Arc<SharedRate>>, amount_bytes: Option<u64>) -> Self {
        // The first byte beyond the amount shows that the test is larger; it is counted, and
        // nothing follows it.
        let left = |bytes: u64| Arc::new(AtomicU64::new(bytes.saturating_add(1)));
        Self {
            rates,
            amount: amount_bytes.map(left),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rates.is_empty() && self.amount.is_none()
    }

    /// The strictest rate, bit/s.
    pub(crate) fn rate_bps(&self) -> Option<u64> {
        self.rates.iter().map(|rate| rate.rate_bps).min()
    }

    pub(crate) fn grant(&self, now_ns: u64, traffic: Traffic) -> Grant {
        let left = self
            .amount
            .as_ref()
            .map_or(u64::MAX, |a| a.load(Ordering::Relaxed));
        if left == 0 {
            return Grant::UsedUp;
        }

        let paid_until_ns = self
            .rates
            .iter()
            .map(|rate| rate.paid_until_ns(traffic).load(Ordering::Relaxed));
        match paid_until_ns.max() {
            // The strictest of all rates decides: each has its own time until which it is paid.
            Some(t) if t > now_ns => Grant::NotBefore(t),
            _ => {
                let portion = self.rates.iter().map(|rate| rate.portion_bytes()).min();
                Grant::Bytes(
                    usize::try_from(left.min(portion.unwrap_or(u64::MAX))).unwrap_or(usize::MAX),
                )
            }
        }
    }

    /// Bytes that were moved. Streams granted at the same time may have moved more than was left;
    /// what exceeds a rate is waited for later.
    pub(crate) fn charge(&self, now_ns: u64, traffic: Traffic, bytes: u64) {
        for rate in &self.rates {
            rate.charge(now_ns, traffic, bytes);
        }

        if let Some(left) = &self.amount {
            let _ = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |l| {
                Some(l.saturating_sub(bytes))
            });
        }
    }
}

impl SharedRate {
    pub(crate) fn rate_bps(&self) -> u64 {
        self.rate_bps
    }

    pub(crate) fn new(rate_bps: u64) -> Self {
        Self {
            rate_bps: rate_bps.max(1),
            paid_until_ns: AtomicU64::new(0),
            probes_paid_until_ns: AtomicU64::new(0),
        }
    }

    fn paid_until_ns(&self, traffic: Traffic) -> &AtomicU64 {
        match traffic {
            Traffic::Load => &self.paid_until_ns,
            Traffic::Probes => &self.probes_paid_until_ns,
        }
    }

    fn portion_bytes(&self) -> u64 {
        let bytes = u128::from(self.rate_bps) * u128::from(PORTION_NS) / 8_000_000_000;
        u64::try_from(bytes)
            .unwrap_or(u64::MAX)
            .max(PORTION_MIN_BYTES)
    }

    fn charge(&self, now_ns: u64, traffic: Traffic, bytes: u64) {
        let cost_ns = u128::from(bytes) * 8_000_000_000 / u128::from(self.rate_bps);
        let cost_ns = u64::try_from(cost_ns).unwrap_or(u64::MAX);

        let pay = |paid_until_ns: u64| {
            Some(
                paid_until_ns
                    // Unused time is worth little: a test that paused may not catch up with a
                    // burst.
                    .max(now_ns.saturating_sub(CREDIT_NS))
                    .saturating_add(cost_ns),
            )
        };
        let _ = self
            .paid_until_ns
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, pay);

        if traffic == Traffic::Probes {
            let _ =
                self.probes_paid_until_ns
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, pay);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// Bytes that greedy workers with these quotas move from 1 s to 2 s; each in portions as it is
    /// granted.
    fn moved(quotas: &[Quota]) -> Vec<u64> {
        let mut moved = vec![0; quotas.len()];
        for now_ns in (S..2 * S).step_by(100_000) {
            for (quota, sum) in quotas.iter().zip(&mut moved) {
                if let Grant::Bytes(bytes) = quota.grant(now_ns, Traffic::Load) {
                    quota.charge(now_ns, Traffic::Load, bytes as u64);
                    *sum += bytes as u64;
                }
            }
        }

        moved
    }

    #[test]
    fn shared_rate_holds_from_the_first_byte() {
        let rate = Arc::new(SharedRate::new(80_000_000));
        let quota = || Quota::new(vec![Arc::clone(&rate)], None);
        let sum: u64 = moved(&[quota(), quota(), quota()]).iter().sum();
        // 10 MB in a second, and the credit of 10 ms.
        assert!((9_900_000..10_200_000).contains(&sum), "{sum}");
    }

    #[test]
    fn the_strictest_of_several_rates_decides() {
        let rate = |bps| Arc::new(SharedRate::new(bps));
        let quota = Quota::new(vec![rate(800_000_000), rate(8_000_000)], None);
        assert_eq!(quota.rate_bps(), Some(8_000_000));
        let sum = moved(&[quota])[0];
        assert!((990_000..1_020_000).contains(&sum), "{sum}");
    }

    #[test]
    fn probes_pass_a_load_and_both_together_keep_the_rate() {
        let quota = Quota::new(vec![Arc::new(SharedRate::new(80_000_000))], None);
        let (mut load, mut probes, mut denied) = (0, 0, 0);

        for now_ns in (S..2 * S).step_by(100_000) {
            if let Grant::Bytes(bytes) = quota.grant(now_ns, Traffic::Load) {
                quota.charge(now_ns, Traffic::Load, bytes as u64);
                load += bytes as u64;
            }

            // 8 Mbit/s of probes, a tenth of the rate.
            match quota.grant(now_ns, Traffic::Probes) {
                Grant::Bytes(_) => {
                    quota.charge(now_ns, Traffic::Probes, 100);
                    probes += 100;
                }
                _ => denied += 1,
            }
        }

        assert_eq!(denied, 0);
        assert!(
            (9_900_000..10_200_000).contains(&(load + probes)),
            "{load} {probes}"
        );
    }

    #[test]
    fn probes_alone_keep_the_rate() {
        let quota = Quota::new(vec![Arc::new(SharedRate::new(8_000_000))], None);
        let mut sum = 0;

        for now_ns in (S..2 * S).step_by(10_000) {
            if let Grant::Bytes(_) = quota.grant(now_ns, Traffic::Probes) {
                quota.charge(now_ns, Traffic::Probes, 1000);
                sum += 1000;
            }
        }

        assert!((990_000..1_020_000).contains(&sum), "{sum}");
    }

    #[test]
    fn an_amount_ends_with_the_first_byte_beyond_it() {
        let quota = Quota::new(Vec::new(), Some(1000));
        assert_eq!(quota.grant(0, Traffic::Load), Grant::Bytes(1001));
        quota.charge(0, Traffic::Load, 1000);
        assert_eq!(quota.grant(0, Traffic::Load), Grant::Bytes(1));
        quota.charge(0, Traffic::Load, 1);
        assert_eq!(quota.grant(0, Traffic::Load), Grant::UsedUp);
        assert_eq!(
            Quota::default().grant(0, Traffic::Load),
            Grant::Bytes(usize::MAX)
        );
    }

    #[test]
    fn extreme_rates_saturate() {
        let slow = Quota::new(vec![Arc::new(SharedRate::new(0))], None);
        slow.charge(S, Traffic::Load, u64::MAX);
        assert_eq!(slow.grant(S, Traffic::Load), Grant::NotBefore(u64::MAX));

        let fast = Quota::new(vec![Arc::new(SharedRate::new(u64::MAX))], None);
        fast.charge(S, Traffic::Load, 1 << 40);
        assert!(matches!(fast.grant(S, Traffic::Load), Grant::Bytes(_)));
    }
}
