//! Time that addresses took of their turns to open UDP streams.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use linerate_model::network::Network;

/// Longest wait for the next UDP stream of a test while others of the same address wait for their
/// turn; with split addresses for all streams of all tests of an address, while a test of another
/// address waits.
pub(super) const UDP_TURN: Duration = Duration::from_secs(2);
/// An address that has less of its turn left goes behind all others.
const LEFT_MIN: Duration = Duration::from_millis(200);
/// An address has its turn back after this multiple of the time that it took.
const RECOVERY: u32 = 30;
/// Addresses whose turns are remembered.
const ADDRESSES_MAX: usize = 4096;

/// Time that addresses took of their turns.
#[derive(Default)]
pub(super) struct TurnTimes(HashMap<Network, TurnTime>);

#[derive(Clone, Copy)]
struct TurnTime {
    taken: Duration,
    /// End of its last turn.
    ended: Instant,
}

impl TurnTimes {
    /// A client of this address opened its streams, or did not, between these moments.
    pub(super) fn record(&mut self, address: Network, since: Instant, now: Instant) {
        if self.0.len() >= ADDRESSES_MAX {
            self.0.retain(|_, turn| turn.left(now) < UDP_TURN);
        }

        if self.0.len() >= ADDRESSES_MAX && !self.0.contains_key(&address) {
            return;
        }

        let taken =
            UDP_TURN.saturating_sub(self.left(address, now)) + now.saturating_duration_since(since);
        self.0.insert(
            address,
            TurnTime {
                taken: taken.min(UDP_TURN),
                ended: now,
            },
        );
    }

    /// Time that an address has left of its turn.
    pub(super) fn left(&self, address: Network, now: Instant) -> Duration {
        self.0.get(&address).map_or(UDP_TURN, |turn| turn.left(now))
    }

    pub(super) fn is_exhausted(&self, address: Network, now: Instant) -> bool {
        self.left(address, now) < LEFT_MIN
    }

    /// Place among waiting addresses, smallest first: round robin, and behind all others who has
    /// taken its turn.
    pub(super) fn order(&self, address: Network, now: Instant) -> (bool, Option<Instant>) {
        (
            self.is_exhausted(address, now),
            self.0.get(&address).map(|turn| turn.ended),
        )
    }
}

impl TurnTime {
    fn left(self, now: Instant) -> Duration {
        let recovered = now.saturating_duration_since(self.ended) / RECOVERY;
        UDP_TURN.saturating_sub(self.taken.saturating_sub(recovered))
    }
}
