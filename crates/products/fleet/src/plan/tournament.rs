//! Circle method of round-robin tournaments, as a formula.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use linerate_model::fleet::HostId;

/// Positions of hosts in a tournament, drawn by lot. Of an even number of hosts each plays each
/// other in one round less than there are hosts, of an odd number each has one bye.
pub(super) struct Draw {
    positions: BTreeMap<HostId, usize>,
}

impl Draw {
    pub(super) fn new(hosts: &BTreeSet<HostId>, seed: u64) -> Self {
        let mut order: Vec<usize> = (0..hosts.len()).collect();
        Rng::with_seed(seed).shuffle(&mut order);
        Self {
            positions: hosts.iter().cloned().zip(order).collect(),
        }
    }

    pub(super) fn position(&self, host: &HostId) -> Option<usize> {
        self.positions.get(host).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.positions.len()
    }

    /// The round in which two positions meet.
    pub(super) fn round_of(&self, a: usize, b: usize) -> usize {
        round_of(a, b, self.positions.len())
    }
}

/// The round, from 0, in which two of `players` meet: the last one, or a bye, is fixed and the
/// others are on a circle of an odd number of places, where those meet whose places add up to the
/// number of the round.
fn round_of(a: usize, b: usize, players: usize) -> usize {
    // An odd number of hosts gets a bye as the last place, which makes the number of places even.
    let fixed = players.next_multiple_of(2).saturating_sub(1);
    let sum = match (a == fixed, b == fixed) {
        // The fixed place meets the one whose own double is the number of the round.
        (true, _) => 2 * b,
        (_, true) => 2 * a,
        _ => a + b,
    };
    // One host has no partner and a modulus of 0; the maximum avoids the division by it.
    sum % fixed.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_meets_once_and_every_round_is_disjoint() {
        for players in 2..=33_usize {
            let mut rounds: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
            for a in 0..players {
                for b in a + 1..players {
                    let round = rounds.entry(round_of(a, b, players)).or_default();
                    assert!(
                        round.insert(a) && round.insert(b),
                        "{a} and {b} of {players}"
                    );
                }
            }

            assert_eq!(
                rounds.len(),
                players.next_multiple_of(2) - 1,
                "{players} players"
            );
        }
    }
}
