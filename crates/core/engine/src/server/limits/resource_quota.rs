//! Resources of this host for tests: descriptors, memory, and places for flows whose address
//! nothing proves. Every test takes its share when it is admitted, so that what remains serves the
//! control connections.

use std::collections::BTreeMap;

use linerate_model::network::Network;
use linerate_model::service::RefusalReason;
use linerate_sys::{memory, process};

use super::requirements::Requirements;

/// Bounds of all tests together; `u64::MAX` for no bound.
#[derive(Clone, Copy)]
pub(crate) struct Capacity {
    pub descriptors: u64,
    /// Descriptors for the tests of one address.
    pub address_descriptors: u64,
    /// Descriptors for flows whose address nothing proves.
    pub unproven_descriptors: u64,
    pub memory_bytes: u64,
    /// Memory for the tests of one address.
    pub address_memory_bytes: u64,
    pub unproven_tests: u64,
}

/// Resources in use.
pub(crate) struct ResourceQuota {
    pub capacity: Capacity,
    taken: BTreeMap<u64, (Network, Requirements)>,
}

/// Descriptors of the server itself: listeners, event loops, signals, log, statistics.
const DESCRIPTORS_OF_SERVER: u64 = 16;

impl Capacity {
    pub(crate) const UNBOUNDED: Self = Self {
        descriptors: u64::MAX,
        address_descriptors: u64::MAX,
        unproven_descriptors: u64::MAX,
        memory_bytes: u64::MAX,
        address_memory_bytes: u64::MAX,
        unproven_tests: u64::MAX,
    };

    /// Three quarters of the descriptors, the rest being for connections that have no test yet; a
    /// quarter of the memory. One address has a quarter of both, so that three addresses leave room
    /// for a fourth. Flows have a quarter of the descriptors and of the places.
    pub(crate) fn of_host(tests_max: u32) -> Self {
        // Raising the limit again returns the limit in force.
        let descriptors = process::raise_fd_limit().unwrap_or(1024);
        // Socket buffers are charged to the control group as well (cgroups v2, `memory.stat` sock),
        // so tests get a quarter of its limit.
        let memory_bytes = memory::limit_bytes().map_or(u64::MAX, |bytes| bytes / 4);
        // A quarter stays for pending connections and those that wait for their peer to close.
        let descriptors = (descriptors / 4)
            .saturating_mul(3)
            .saturating_sub(DESCRIPTORS_OF_SERVER);

        Self {
            descriptors,
            address_descriptors: descriptors / 4,
            unproven_descriptors: descriptors / 4,
            memory_bytes,
            address_memory_bytes: memory_bytes / 4,
            unproven_tests: u64::from(tests_max / 4).max(1),
        }
    }
}

impl ResourceQuota {
    pub(crate) fn new(capacity: Capacity) -> Self {
        Self {
            capacity,
            taken: BTreeMap::new(),
        }
    }

    /// Takes what a test needs.
    ///
    /// # Errors
    /// The exhausted resource; then nothing is taken.
    pub(crate) fn take(
        &mut self,
        id: u64,
        address: Network,
        requirements: Requirements,
    ) -> Result<(), RefusalReason> {
        let capacity = &self.capacity;
        let has_descriptors = |taken: Requirements, max: u64| {
            taken.descriptors.saturating_add(requirements.descriptors) <= max
        };
        let has_memory = |taken: Requirements, max: u64| {
            taken.memory_bytes.saturating_add(requirements.memory_bytes) <= max
        };
        let all = self.reserved();
        let (_, own) = self.sum(|a, _| a == address);
        let (unproven_tests, unproven) = self.sum(|_, n| n.is_unproven);
        // Sources of UDP can be forged: what they may hold is bounded apart, so that they cannot
        // exhaust the places of others.
        if requirements.is_unproven
            && !(unproven_tests < capacity.unproven_tests
                && has_descriptors(unproven, capacity.unproven_descriptors))
        {
            return Err(RefusalReason::Flows);
        }
        if !(has_descriptors(all, capacity.descriptors)
            && has_descriptors(own, capacity.address_descriptors))
        {
            return Err(RefusalReason::Descriptors);
        }
        if !(has_memory(all, capacity.memory_bytes)
            && has_memory(own, capacity.address_memory_bytes))
        {
            return Err(RefusalReason::Memory);
        }

        self.taken.insert(id, (address, requirements));
        Ok(())
    }

    /// The sum of all tests.
    pub(crate) fn reserved(&self) -> Requirements {
        self.sum(|_, _| true).1
    }

    pub(crate) fn release(&mut self, id: u64) {
        self.taken.remove(&id);
    }

    /// Reserved resources by address.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn taken(&self) -> impl Iterator<Item = (Network, Requirements)> {
        self.taken.values().copied()
    }

    /// Number of tests that `covers` selects, and the resources they have taken.
    fn sum(&self, covers: impl Fn(Network, Requirements) -> bool) -> (u64, Requirements) {
        let covered = self
            .taken
            .values()
            .filter(|&&(address, requirements)| covers(address, requirements));
        covered.fold(
            (0, Requirements::default()),
            |(tests, mut sum), (_, requirements)| {
                sum.descriptors = sum.descriptors.saturating_add(requirements.descriptors);
                sum.memory_bytes = sum.memory_bytes.saturating_add(requirements.memory_bytes);
                (tests + 1, sum)
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> Network {
        Network::of_client([192, 0, 2, last].into())
    }

    fn requirements(descriptors: u64, memory_bytes: u64) -> Requirements {
        Requirements {
            descriptors,
            memory_bytes,
            ..Requirements::default()
        }
    }

    fn quota() -> ResourceQuota {
        ResourceQuota::new(Capacity {
            descriptors: 10,
            address_descriptors: 8,
            unproven_descriptors: 5,
            memory_bytes: 100,
            address_memory_bytes: 60,
            unproven_tests: 1,
        })
    }

    #[test]
    fn reserved_resources_are_missing_until_released() {
        let mut quota = quota();
        let take = |quota: &mut ResourceQuota, id, last, descriptors| {
            quota.take(id, address(last), requirements(descriptors, 10))
        };
        assert_eq!(take(&mut quota, 1, 1, 6), Ok(()));
        assert_eq!(take(&mut quota, 2, 2, 5), Err(RefusalReason::Descriptors));
        assert_eq!(take(&mut quota, 2, 2, 4), Ok(()));
        quota.release(1);
        quota.release(1);
        assert_eq!(take(&mut quota, 3, 1, 6), Ok(()));
        assert_eq!(quota.taken().count(), 2);
        quota.release(2);
        assert_eq!(take(&mut quota, 4, 1, 3), Err(RefusalReason::Descriptors));
        assert_eq!(take(&mut quota, 4, 2, 3), Ok(()));
    }

    #[test]
    fn memory_has_a_bound_for_one_address_and_for_all() {
        let mut quota = quota();
        let mut take = |id, last, bytes| quota.take(id, address(last), requirements(1, bytes));
        assert_eq!(take(1, 1, 50), Ok(()));
        assert_eq!(take(2, 1, 11), Err(RefusalReason::Memory));
        assert_eq!(take(2, 1, 10), Ok(()));
        assert_eq!(take(3, 2, 41), Err(RefusalReason::Memory));
        assert_eq!(take(3, 2, 40), Ok(()));
    }

    #[test]
    fn flows_have_a_share_of_the_places() {
        let mut quota = quota();
        let mut take = |id, last, descriptors, is_unproven| {
            let requirements = Requirements {
                is_unproven,
                ..requirements(descriptors, 1)
            };
            quota.take(id, address(last), requirements)
        };
        assert_eq!(take(1, 1, 6, true), Err(RefusalReason::Flows));
        assert_eq!(take(1, 1, 1, true), Ok(()));
        assert_eq!(take(2, 2, 1, true), Err(RefusalReason::Flows));
        assert_eq!(take(2, 2, 1, false), Ok(()));
    }
}
