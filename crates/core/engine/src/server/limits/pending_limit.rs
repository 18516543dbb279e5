//! Limits on pending connections: accepted, test not yet known.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use linerate_model::network::Network;

use super::requirements::PENDING_BYTES;

/// Bounds the pending connections of one source and of all. Ids ascend in the order of arrival.
pub(crate) struct PendingLimit {
    members: HashMap<u64, Source>,
    by_source: HashMap<Source, BTreeSet<u64>>,
    bounds: PendingBounds,
}

/// An address at one listener, so that a flood of one port evicts no client of the same address at
/// another.
type Source = (Network, usize);

/// Most members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PendingBounds {
    pub total: usize,
    pub per_source: usize,
}

impl PendingBounds {
    /// Bounds that leave most of the descriptors and of the memory to tests: a quarter of the one,
    /// an eighth of the other. Regular clients are pending for milliseconds, so that even the
    /// smaller bound is far beyond what they need.
    pub(crate) fn of_host(descriptors: u64, memory_bytes: u64) -> Self {
        let total = (descriptors / 4).min(memory_bytes / 8 / PENDING_BYTES);
        let total = usize::try_from(total).unwrap_or(usize::MAX).clamp(16, 2048);
        Self {
            total,
            per_source: (total / 4).max(8),
        }
    }
}

impl PendingLimit {
    pub(crate) fn new(bounds: PendingBounds) -> Self {
        Self {
            members: HashMap::new(),
            by_source: HashMap::new(),
            bounds,
        }
    }

    /// Adds a connection to this listener; returns the one to evict if there are too many: the
    /// oldest of this source if it alone has too many, else the oldest of the source that has most.
    pub(crate) fn enter(&mut self, id: u64, address: IpAddr, listener: usize) -> Option<u64> {
        let source = (Network::of_client(address), listener);
        self.members.insert(id, source);
        let own = self.by_source.entry(source).or_default();
        own.insert(id);

        if own.len() > self.bounds.per_source {
            return own.first().copied();
        }
        if self.members.len() > self.bounds.total {
            return self.oldest_of_largest_source();
        }

        None
    }

    pub(crate) fn leave(&mut self, id: u64) {
        let Some(source) = self.members.remove(&id) else {
            return;
        };
        if let Some(own) = self.by_source.get_mut(&source) {
            own.remove(&id);
            if own.is_empty() {
                self.by_source.remove(&source);
            }
        }
    }

    /// The connection to evict when another resource runs out.
    pub(crate) fn oldest_of_largest_source(&self) -> Option<u64> {
        let largest_source = self.by_source.values().max_by_key(|own| own.len())?;
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
            per_source: 3,
        })
    }

    #[test]
    fn bounds_follow_the_scarcer_of_descriptors_and_memory() {
        let bounds = PendingBounds::of_host(1024, u64::MAX);
        assert_eq!(
            bounds,
            PendingBounds {
                total: 256,
                per_source: 64
            }
        );
        let bounds = PendingBounds::of_host(1 << 20, 48 << 20);
        assert_eq!(
            bounds,
            PendingBounds {
                total: 128,
                per_source: 32
            }
        );
    }

    #[test]
    fn a_flood_evicts_the_oldest_of_its_own_source() {
        // Addresses and listeners; the last connection is one too many.
        let rows: [(&str, &[(u8, usize)]); 3] = [
            ("one address", &[(9, 0), (1, 0), (1, 0), (1, 0), (1, 0)]),
            ("one listener", &[(1, 0), (1, 1), (1, 1), (1, 1), (1, 1)]),
            (
                "many addresses",
                &[(9, 0), (1, 0), (1, 0), (1, 0), (2, 0), (3, 0), (4, 0)],
            ),
        ];
        for (name, connections) in rows {
            let mut pending_limit = pending_limit();
            let mut enter = |(id, (last, listener)): (u64, &(u8, usize))| {
                pending_limit.enter(id, address(*last), *listener)
            };
            let evicted: Vec<_> = (1..).zip(connections).map(&mut enter).collect();
            let (last, others) = evicted.split_last().expect("several");
            assert!(
                others.iter().all(Option::is_none) && *last == Some(2),
                "{name}: {evicted:?}"
            );
            assert_eq!(pending_limit.oldest_of_largest_source(), Some(2), "{name}");
        }
    }

    #[test]
    fn removed_connections_do_not_count() {
        let mut pending_limit = pending_limit();
        for id in 1..=3 {
            pending_limit.enter(id, address(1), 0);
        }

        pending_limit.leave(2);
        pending_limit.leave(2);
        assert_eq!(pending_limit.enter(4, address(1), 0), None);
        assert_eq!(pending_limit.enter(5, address(1), 0), Some(1));

        for id in 1..=5 {
            pending_limit.leave(id);
        }

        assert_eq!(pending_limit.oldest_of_largest_source(), None);
        assert!(pending_limit.by_source.is_empty() && pending_limit.members.is_empty());
    }
}
