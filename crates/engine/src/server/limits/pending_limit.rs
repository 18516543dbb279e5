//! Limits on pending connections: accepted, test not yet known.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use linerate_model::network::Network;

/// Bounds the pending connections of one address and of all. Ids ascend in the order of arrival.
#[derive(Debug)]
pub(crate) struct PendingLimit {
    members: HashMap<u64, Network>,
    by_address: HashMap<Network, BTreeSet<u64>>,
    bounds: PendingBounds,
}

/// Most members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PendingBounds {
    pub(crate) total: usize,
    pub(crate) per_address: usize,
}

impl PendingBounds {
    /// Bounds that leave most of the descriptors to tests. Regular clients are pending for milliseconds, so that even
    /// the smaller bound is far beyond what they need.
    pub(crate) fn of_descriptors(descriptors: u64) -> Self {
        let total = usize::try_from(descriptors / 4).unwrap_or(usize::MAX).clamp(16, 2048);
        Self {
            total,
            per_address: (total / 4).max(8),
        }
    }
}

impl PendingLimit {
    pub(crate) fn new(bounds: PendingBounds) -> Self {
        Self {
            members: HashMap::new(),
            by_address: HashMap::new(),
            bounds,
        }
    }

    /// Adds a connection; returns the one to evict if there are too many: the oldest of this address if it alone has
    /// too many, else the oldest of the address that has most.
    pub(crate) fn enter(&mut self, id: u64, address: IpAddr) -> Option<u64> {
        let address = Network::of_client(address);
        self.members.insert(id, address);
        let own = self.by_address.entry(address).or_default();
        own.insert(id);
        if own.len() > self.bounds.per_address {
            return own.first().copied();
        }
        if self.members.len() > self.bounds.total {
            return self.oldest_of_largest_source();
        }
        None
    }

    pub(crate) fn leave(&mut self, id: u64) {
        let Some(address) = self.members.remove(&id) else {
            return;
        };
        if let Some(own) = self.by_address.get_mut(&address) {
            own.remove(&id);
            if own.is_empty() {
                self.by_address.remove(&address);
            }
        }
    }

    /// The connection to evict when another resource runs out.
    pub(crate) fn oldest_of_largest_source(&self) -> Option<u64> {
        let largest_source = self.by_address.values().max_by_key(|own| own.len())?;
        largest_source.first().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    fn pending_limit() -> PendingLimit {
        PendingLimit::new(PendingBounds {
            total: 6,
            per_address: 3,
        })
    }

    #[test]
    fn one_address_evicts_only_its_own() {
        let mut pending_limit = pending_limit();
        assert_eq!(pending_limit.enter(1, address(9)), None);
        for id in 2..=4 {
            assert_eq!(pending_limit.enter(id, address(1)), None);
        }
        assert_eq!(pending_limit.enter(5, address(1)), Some(2));
    }

    #[test]
    fn many_addresses_evict_the_largest_source() {
        let mut pending_limit = pending_limit();
        pending_limit.enter(1, address(9));
        for id in 2..=4 {
            pending_limit.enter(id, address(1));
        }
        pending_limit.enter(5, address(2));
        pending_limit.enter(6, address(3));
        assert_eq!(pending_limit.enter(7, address(4)), Some(2));
    }

    #[test]
    fn removed_connections_do_not_count() {
        let mut pending_limit = pending_limit();
        for id in 1..=3 {
            pending_limit.enter(id, address(1));
        }
        pending_limit.leave(2);
        pending_limit.leave(2);
        assert_eq!(pending_limit.enter(4, address(1)), None);
        assert_eq!(pending_limit.enter(5, address(1)), Some(1));
        for id in 1..=5 {
            pending_limit.leave(id);
        }
        assert_eq!(pending_limit.oldest_of_largest_source(), None);
        assert!(pending_limit.by_address.is_empty() && pending_limit.members.is_empty());
    }
}
