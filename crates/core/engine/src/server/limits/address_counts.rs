//! Events per client network and period.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use linerate_model::network::Network;

/// Counts events by the network of a client: an address of IPv4, or 64 bit of IPv6, which one host
/// may have as a whole.
pub(crate) struct AddressCounts {
    max: u32,
    period: Duration,
    /// Events since this time.
    counts: HashMap<Network, (u32, Instant)>,
}

/// Networks whose events are counted.
const ADDRESSES_MAX: usize = 4096;

impl AddressCounts {
    /// At most `max` events of one address per period; with more it waits for the rest of the
    /// period.
    pub(crate) fn new(max: u32, period: Duration) -> Self {
        Self {
            max,
            period,
            counts: HashMap::new(),
        }
    }

    /// The address had as many events as it may.
    pub(crate) fn is_exhausted(&self, address: IpAddr, now: Instant) -> bool {
        self.counts
            .get(&Network::of_client(address))
            .is_some_and(|(count, since)| *count >= self.max && now < *since + self.period)
    }

    /// An event of this address.
    pub(crate) fn record(&mut self, address: IpAddr, now: Instant) {
        let network = Network::of_client(address);
        let period = self.period;
        if self.counts.len() >= ADDRESSES_MAX {
            self.counts.retain(|_, (_, since)| now < *since + period);
        }

        if self.counts.len() < ADDRESSES_MAX || self.counts.contains_key(&network) {
            let (count, since) = self.counts.entry(network).or_insert((0, now));
            if now >= *since + period {
                *count = 0;
                *since = now;
            }
            *count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_with_too_many_events_waits_for_the_rest_of_the_period() {
        let (period, now) = (Duration::from_secs(1), Instant::now());
        let address = |last| IpAddr::from([192, 0, 2, last]);
        let mut counts = AddressCounts::new(2, period);
        counts.record(address(1), now);
        assert!(!counts.is_exhausted(address(1), now));
        counts.record(address(1), now);
        assert!(counts.is_exhausted(address(1), now) && !counts.is_exhausted(address(2), now));
        assert!(!counts.is_exhausted(address(1), now + period));
        counts.record(address(1), now + period);
        assert!(
            !counts.is_exhausted(address(1), now + period),
            "counted again"
        );
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_client() {
        let (period, now) = (Duration::from_secs(1), Instant::now());
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let mut counts = AddressCounts::new(1, period);
        counts.record(address("2001:db8::1"), now);
        assert!(counts.is_exhausted(address("2001:db8::2"), now));
        assert!(!counts.is_exhausted(address("2001:db8:0:1::1"), now));
    }
}
