//! Order of addresses at a server with one place: who has had it goes behind those who found it
//! taken.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use linerate_model::network::Network;

/// Who has the place, who had it, and who found it taken.
#[derive(Default)]
pub(crate) struct FairTurns {
    holder: Option<(u64, Network)>,
    freed_at: Option<Instant>,
    /// End of the last turn of an address.
    turn_ends: HashMap<Network, Instant>,
    /// When an address was refused last.
    refusals: HashMap<Network, Instant>,
}

/// Time for which the free place is kept for clients that were refused.
const KEPT_FOR: Duration = Duration::from_secs(3);
/// A client that was refused comes again within this time, or has given up.
const COMES_AGAIN: Duration = Duration::from_secs(10);
/// Turns are forgotten after this time.
const REMEMBERED: Duration = Duration::from_secs(60);
/// Addresses that are remembered.
const ADDRESSES_MAX: usize = 4096;

impl FairTurns {
    /// True if the free place is for this address: no other one, whose last turn is longer ago, was
    /// refused a moment ago.
    pub(crate) fn admits(&self, address: Network, now: Instant) -> bool {
        let is_kept = self
            .freed_at
            .is_some_and(|freed_at| is_within(KEPT_FOR, freed_at, now));
        if !is_kept {
            return true;
        }

        let own = self.turn_ends.get(&address);
        let mut waiting = self
            .refusals
            .iter()
            .filter(|(_, refused_at)| is_within(COMES_AGAIN, **refused_at, now));

        // Without a turn comes before any turn.
        !waiting.any(|(other, _)| *other != address && self.turn_ends.get(other) < own)
    }

    /// A client has the place.
    pub(crate) fn begin(&mut self, id: u64, address: Network) {
        self.holder = Some((id, address));
        self.refusals.remove(&address);
    }

    /// A client is gone.
    pub(crate) fn end(&mut self, id: u64, now: Instant) {
        if let Some((_, address)) = self.holder.take_if(|(holder, _)| *holder == id) {
            self.freed_at = Some(now);
            note(&mut self.turn_ends, REMEMBERED, address, now);
        }
    }

    /// A client found the place taken, or kept for another one.
    pub(crate) fn refuse(&mut self, address: Network, now: Instant) {
        note(&mut self.refusals, COMES_AGAIN, address, now);
    }
}

fn note(
    times: &mut HashMap<Network, Instant>,
    remembered: Duration,
    address: Network,
    now: Instant,
) {
    if times.len() >= ADDRESSES_MAX {
        times.retain(|_, time| is_within(remembered, *time, now));
    }

    if times.len() < ADDRESSES_MAX || times.contains_key(&address) {
        times.insert(address, now);
    }
}

fn is_within(time: Duration, since: Instant, now: Instant) -> bool {
    now.saturating_duration_since(since) < time
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> Network {
        Network::of_client([192, 0, 2, last].into())
    }

    /// A turn of each of these addresses, in this order.
    fn after_turns(addresses: &[u8], now: Instant) -> FairTurns {
        let mut turns = FairTurns::default();
        for (id, last) in (1..).zip(addresses) {
            turns.begin(id, address(*last));
            turns.end(id, now + Duration::from_millis(id));
        }
        turns
    }

    #[test]
    fn who_has_had_the_place_goes_behind_those_who_found_it_taken() {
        let now = Instant::now();
        let mut turns = after_turns(&[1, 2], now);
        assert!(turns.admits(address(1), now), "no other address wants it");
        turns.refuse(address(3), now);
        assert!(
            !turns.admits(address(1), now)
                && !turns.admits(address(2), now)
                && turns.admits(address(3), now)
        );
        turns.begin(3, address(3));
        turns.end(3, now + Duration::from_secs(1));
        turns.refuse(address(1), now);
        turns.refuse(address(2), now);

        let admitted: Vec<u8> = (1..=4)
            .filter(|last| turns.admits(address(*last), now))
            .collect();
        assert_eq!(admitted, [1, 4], "the longest ago, and who never had it");
    }

    #[test]
    fn place_is_not_kept_for_clients_that_do_not_come_again() {
        let now = Instant::now();
        let mut turns = after_turns(&[1], now);
        turns.refuse(address(2), now);
        assert!(turns.admits(address(1), now + KEPT_FOR + Duration::from_millis(1)));
        turns.begin(2, address(1));
        turns.end(2, now + COMES_AGAIN);
        assert!(
            turns.admits(address(1), now + COMES_AGAIN),
            "the refusal is too long ago"
        );
    }

    #[test]
    fn memory_is_bounded() {
        let now = Instant::now();
        let mut turns = FairTurns::default();

        for number in 0..10_000_u32 {
            turns.refuse(
                Network::of_client(std::net::Ipv4Addr::from(number).into()),
                now,
            );
        }

        assert_eq!(turns.refusals.len(), ADDRESSES_MAX);
        turns.refuse(Network::of_client([192, 0, 2, 1].into()), now + COMES_AGAIN);
        assert_eq!(turns.refusals.len(), 1);
    }
}
