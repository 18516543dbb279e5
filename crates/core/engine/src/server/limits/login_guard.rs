//! Limits password guessing: an address whose logins keep failing is locked out for a while.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use linerate_model::network::Network;

/// Failed logins by address. Each is forgotten after a while; with too many of them logins are
/// refused unseen.
#[derive(Default)]
pub(crate) struct LoginGuard {
    failures: HashMap<Network, Failures>,
}

struct Failures {
    count: u32,
    /// When the count was last true.
    at: Instant,
}

/// Time from the credentials to the answer when a login fails, whatever the reason: it must not
/// reveal how far the check came. Checks take a few milliseconds.
const LOGIN_REFUSAL_DELAY: Duration = Duration::from_millis(250);

/// Failures without an attack: a class of people who mistype their password behind one address.
const FAILURES_MAX: u32 = 10;
/// Time after which one failure is forgotten: 10 guesses a minute from then on.
const FORGET_ONE: Duration = Duration::from_secs(6);
/// Addresses that are remembered.
const ADDRESSES_MAX: usize = 4096;

/// Time from the credentials to the answer of a refused login: the shortest multiple of the fixed
/// time that is longer than the check took. Behind many others it takes longer.
pub(crate) fn refusal_delay(taken: Duration) -> Duration {
    let turns = taken.as_millis() / LOGIN_REFUSAL_DELAY.as_millis() + 1;
    LOGIN_REFUSAL_DELAY.saturating_mul(u32::try_from(turns).unwrap_or(u32::MAX))
}

impl LoginGuard {
    pub(crate) fn is_locked_out(&self, address: IpAddr, now: Instant) -> bool {
        let failures = self.failures.get(&Network::of_client(address));
        failures.is_some_and(|f| f.count_at(now) >= FAILURES_MAX)
    }

    pub(crate) fn note_failure(&mut self, address: IpAddr, now: Instant) {
        if self.failures.len() >= ADDRESSES_MAX {
            self.make_room(now);
        }

        let failures = self
            .failures
            .entry(Network::of_client(address))
            .or_insert(Failures { count: 0, at: now });
        *failures = Failures {
            count: failures.count_at(now).saturating_add(1),
            at: now,
        };
    }

    fn make_room(&mut self, now: Instant) {
        self.failures.retain(|_, f| f.count_at(now) > 0);
        if self.failures.len() >= ADDRESSES_MAX {
            // A client with more addresses than this is not slowed down by this table.
            self.failures.retain(|_, f| f.count_at(now) >= FAILURES_MAX);
        }

        if self.failures.len() >= ADDRESSES_MAX {
            self.failures.clear();
        }
    }
}

impl Failures {
    fn count_at(&self, now: Instant) -> u32 {
        let forgotten = now.saturating_duration_since(self.at).as_secs() / FORGET_ONE.as_secs();
        self.count
            .saturating_sub(u32::try_from(forgotten).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARIO: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const LUIGI: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    #[test]
    fn an_address_is_locked_out_after_failed_logins() {
        let (mut guard, now) = (LoginGuard::default(), Instant::now());
        for _ in 0..FAILURES_MAX {
            assert!(!guard.is_locked_out(MARIO, now));
            guard.note_failure(MARIO, now);
        }

        assert!(guard.is_locked_out(MARIO, now) && !guard.is_locked_out(LUIGI, now));
        assert!(!guard.is_locked_out(MARIO, now + FORGET_ONE));
        guard.note_failure(MARIO, now + FORGET_ONE);
        assert!(
            guard.is_locked_out(MARIO, now + FORGET_ONE),
            "one guess per period from then on"
        );
        assert!(!guard.is_locked_out(MARIO, now + FORGET_ONE * (FAILURES_MAX + 2)));
    }

    #[test]
    fn memory_is_bounded_and_the_locked_out_stay_so() {
        let (mut guard, now) = (LoginGuard::default(), Instant::now());
        for _ in 0..FAILURES_MAX {
            guard.note_failure(MARIO, now);
        }

        for n in 0..3 * ADDRESSES_MAX as u32 {
            guard.note_failure(std::net::Ipv4Addr::from_bits(0x0a00_0000 + n).into(), now);
        }

        assert!(guard.failures.len() <= ADDRESSES_MAX);
        assert!(guard.is_locked_out(MARIO, now));
    }
}
