//! Tables that remote peers fill: the bounds hold for any input.

use std::collections::HashSet;
use std::net::SocketAddr;

use linerate_iperf2::wire::{DatagramHead, Timestamp};
use linerate_model::network::Network;

use crate::dialect::iperf2::server::half_open::{HalfOpenFlows, Step};
use crate::server::limits::pending_limit::PendingBounds;
use crate::server::limits::requirements::Requirements;
use crate::server::limits::resource_quota::{Capacity, ResourceQuota};

/// Datagrams of any addresses in any order never make the table of half-open flows larger than its
/// bound, and open only flows whose first datagram was held. Returns how many were opened.
pub fn half_open_flows(script: &[u8]) -> usize {
    let bounds = PendingBounds {
        total: 8,
        per_source: 3,
    };
    let mut table = HalfOpenFlows::new(bounds);
    let (mut held, mut opened, mut now_ns) = (HashSet::new(), 0, 0);

    let mut rest = script;
    while let Some(([peer, number, wait, len], tail)) = rest.split_first_chunk() {
        rest = tail;
        now_ns += u64::from(*wait) * 50_000_000;
        let peer = SocketAddr::from(([192, 0, 2, peer >> 6], u16::from(peer & 3)));
        let raw = tail.get(..usize::from(*len)).filter(|_| number % 16 == 0);
        let datagram = raw.map_or_else(|| datagram(*number, *len), <[u8]>::to_vec);
        match table.take(now_ns, peer, &datagram) {
            Step::Held => drop(held.insert(peer)),
            Step::Follows(first, arrived_ns) => {
                assert!(held.remove(&peer), "its first datagram was held");
                assert!(!first.is_empty() && arrived_ns <= now_ns);
                opened += 1;
            }
            Step::Foreign => {}
        }

        assert!(table.len() <= bounds.total);
    }

    opened
}

/// Whatever is taken and released in whatever order, the sums stay within the capacity, and nothing
/// is left when all is released. Returns how many tests were admitted.
pub fn quotas(script: &[u8]) -> usize {
    let capacity = Capacity {
        descriptors: 40,
        address_descriptors: 20,
        unproven_descriptors: 15,
        memory_bytes: 100,
        address_memory_bytes: 60,
        unproven_tests: 3,
    };
    let mut quota = ResourceQuota::new(capacity);
    let (mut next_id, mut admitted) = (0, 0);

    let mut rest = script;
    while let Some(([kind, amount], tail)) = rest.split_first_chunk() {
        rest = tail;
        if kind & 3 == 0 {
            quota.release(u64::from(*amount));
        } else {
            let requirements = Requirements {
                descriptors: u64::from(amount & 15),
                allotted: 0,
                memory_bytes: if *amount == u8::MAX {
                    u64::MAX
                } else {
                    u64::from(amount >> 4)
                },
                is_unproven: kind & 4 != 0,
            };
            let address = Network::of_client([192, 0, 2, kind >> 5].into());
            admitted += usize::from(quota.take(next_id, address, requirements).is_ok());
            next_id += 1;
        }

        check(&quota, &capacity);
    }

    (0..next_id).for_each(|id| quota.release(id));
    assert_eq!(quota.taken().count(), 0);
    admitted
}

fn check(quota: &ResourceQuota, capacity: &Capacity) {
    let sum = |of: &dyn Fn(&(Network, Requirements)) -> u64| {
        quota.taken().map(|taken| of(&taken)).sum::<u64>()
    };
    assert!(sum(&|(_, requirements)| requirements.descriptors) <= capacity.descriptors);
    assert!(sum(&|(_, requirements)| requirements.memory_bytes) <= capacity.memory_bytes);
    assert!(
        sum(&|(_, requirements)| u64::from(requirements.is_unproven)) <= capacity.unproven_tests
    );

    let unproven = |requirements: &Requirements| {
        if requirements.is_unproven {
            requirements.descriptors
        } else {
            0
        }
    };
    assert!(sum(&|(_, requirements)| unproven(requirements)) <= capacity.unproven_descriptors);

    for (address, _) in quota.taken() {
        let own = |of: &dyn Fn(&Requirements) -> u64| {
            sum(&|(a, requirements)| if *a == address { of(requirements) } else { 0 })
        };
        assert!(own(&|requirements| requirements.memory_bytes) <= capacity.address_memory_bytes);
        assert!(own(&|requirements| requirements.descriptors) <= capacity.address_descriptors);
    }
}

/// A datagram without a header, of a flow's usual numbers.
fn datagram(number: u8, len: u8) -> Vec<u8> {
    let mut bytes = vec![0; usize::from(len)];
    let number = i64::from(number.cast_signed());
    let sent = Timestamp { sec: 1, usec: 0 };
    DatagramHead { number, sent }.write(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scripts as a fuzzer begins with.
    fn scripts() -> impl Iterator<Item = Vec<u8>> {
        let mut state = 7_u64;
        (0..500).map(move |len| {
            let byte = |_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            };
            (0..len).map(byte).collect()
        })
    }

    #[test]
    fn half_open_flows_stay_within_their_bounds() {
        assert!(
            scripts()
                .map(|script| half_open_flows(&script))
                .sum::<usize>()
                > 100
        );
    }

    #[test]
    fn quotas_add_up() {
        assert!(scripts().map(|script| quotas(&script)).sum::<usize>() > 1000);
    }
}
