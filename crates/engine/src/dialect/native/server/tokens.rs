//! Tokens that bind streams and flows to the phase they were granted for.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use linerate_native::stream_head::StreamKind;

use super::address_counts::AddressCounts;

/// Token of a stream or a flow.
pub(super) type Token = [u8; 16];

/// What a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grant {
    /// A stream of this kind.
    Stream(StreamKind),
    /// A UDP flow with this number.
    Flow(u32),
}

#[derive(Debug)]
struct Entry {
    session: u64,
    grant: Grant,
    origin: Origin,
    uses_left: u32,
    expires: Option<Instant>,
}

/// From where tokens may be used.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    /// Address of the control connection.
    pub(super) client: IpAddr,
    /// Any other one as well.
    pub(super) allows_others: bool,
}

impl Entry {
    fn is_valid(&self, now: Instant) -> bool {
        self.uses_left > 0 && self.expires.is_none_or(|expires| now < expires)
    }
}

/// All tokens of a server.
#[derive(Debug)]
pub(super) struct Tokens {
    entries: HashMap<Token, Entry>,
    wrong: AddressCounts,
}

/// A token of a flow is to be used within this time.
const FLOW_TIMEOUT: Duration = Duration::from_secs(10);
/// Wrong tokens of one address per period; more make it wait for the rest of the period.
const WRONG_MAX: u32 = 20;
const WRONG_PERIOD: Duration = Duration::from_secs(60);

impl Tokens {
    pub(super) fn new() -> Self {
        Self { entries: HashMap::new(), wrong: AddressCounts::new(WRONG_MAX, WRONG_PERIOD) }
    }

    /// Makes a token for a stream; `uses` connections may begin with it.
    pub(super) fn grant_stream(&mut self, session: u64, kind: StreamKind, origin: Origin, uses: u32) -> Token {
        self.grant(Entry { session, grant: Grant::Stream(kind), origin, uses_left: uses, expires: None })
    }

    /// Makes a token for a flow.
    pub(super) fn grant_flow(&mut self, session: u64, flow: u32, origin: Origin, now: Instant) -> Token {
        let expires = Some(now + FLOW_TIMEOUT);
        self.grant(Entry { session, grant: Grant::Flow(flow), origin, uses_left: 1, expires })
    }

    fn grant(&mut self, entry: Entry) -> Token {
        let token = linerate_trust::random();
        self.entries.insert(token, entry);
        token
    }

    /// Uses a token; returns its session and what it is for. `None` for one that is wrong, used, too old or of another
    /// address, and while the address waits.
    pub(super) fn take(&mut self, token: &Token, from: IpAddr, now: Instant) -> Option<(u64, Grant)> {
        if self.wrong.is_exhausted(from, now) {
            return None;
        }
        let entry = self
            .entries
            .get_mut(token)
            .filter(|entry| entry.is_valid(now) && (entry.origin.allows_others || entry.origin.client == from));
        let Some(entry) = entry else {
            self.wrong.note(from, now);
            return None;
        };
        entry.uses_left -= 1;
        Some((entry.session, entry.grant))
    }

    /// Session of a token that may be used from here, though its client connected from another address.
    pub(super) fn owner_elsewhere(&self, token: &Token, from: IpAddr, now: Instant) -> Option<u64> {
        let entry = self.entries.get(token).filter(|entry| entry.is_valid(now))?;
        (entry.origin.allows_others && entry.origin.client != from).then_some(entry.session)
    }

    /// A phase or a session is over: its tokens are worth nothing any more.
    pub(super) fn revoke(&mut self, session: u64) {
        self.entries.retain(|_, entry| entry.session != session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    const CLIENT_ALONE: Origin = Origin { client: CLIENT, allows_others: false };
    const ANYBODY: Origin = Origin { client: CLIENT, allows_others: true };

    #[test]
    fn token_is_used_once_by_its_address_and_in_time() {
        let (mut tokens, now) = (Tokens::new(), Instant::now());
        let stream = tokens.grant_stream(7, StreamKind::Load, CLIENT_ALONE, 1);
        let flow = tokens.grant_flow(7, 3, CLIENT_ALONE, now);
        assert_eq!(tokens.take(&stream, OTHER, now), None, "another address");
        assert_eq!(tokens.take(&stream, CLIENT, now), Some((7, Grant::Stream(StreamKind::Load))));
        assert_eq!(tokens.take(&stream, CLIENT, now), None, "used");
        assert_eq!(tokens.take(&flow, CLIENT, now + FLOW_TIMEOUT), None, "too old");
        assert_eq!(tokens.take(&[0; 16], CLIENT, now), None, "never granted");
        let late = tokens.grant_stream(8, StreamKind::Crr, ANYBODY, 2);
        tokens.revoke(8);
        assert_eq!(tokens.take(&late, CLIENT, now), None, "its session is over");
    }

    #[test]
    fn owner_of_a_token_is_elsewhere_where_that_is_allowed() {
        let (mut tokens, now) = (Tokens::new(), Instant::now());
        let bound = tokens.grant_flow(7, 1, CLIENT_ALONE, now);
        let free = tokens.grant_flow(7, 2, ANYBODY, now);
        assert_eq!(tokens.owner_elsewhere(&bound, OTHER, now), None);
        assert_eq!(tokens.owner_elsewhere(&free, CLIENT, now), None);
        assert_eq!(tokens.owner_elsewhere(&free, OTHER, now), Some(7));
        assert_eq!(tokens.owner_elsewhere(&[0; 16], OTHER, now), None);
        assert_eq!(tokens.owner_elsewhere(&free, OTHER, now + FLOW_TIMEOUT), None);
        assert_eq!(tokens.take(&free, OTHER, now), Some((7, Grant::Flow(2))));
        assert_eq!(tokens.owner_elsewhere(&free, OTHER, now), None);
    }

    #[test]
    fn address_with_many_wrong_tokens_waits_and_no_other_does() {
        let (mut tokens, now) = (Tokens::new(), Instant::now());
        for _ in 0..WRONG_MAX {
            assert_eq!(tokens.take(&[1; 16], CLIENT, now), None);
        }
        let good = tokens.grant_stream(1, StreamKind::Load, ANYBODY, 3);
        assert_eq!(tokens.take(&good, CLIENT, now), None);
        assert!(tokens.take(&good, OTHER, now).is_some());
        assert!(tokens.take(&good, CLIENT, now + WRONG_PERIOD).is_some());
    }
}
