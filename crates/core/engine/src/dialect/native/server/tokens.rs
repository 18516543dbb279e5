//! Tokens that bind streams and flows to the phase they were granted for.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use linerate_native::wire::stream_head::StreamKind;

use crate::server::limits::address_counts::AddressCounts;

/// Token of a stream or a flow.
pub(super) type Token = [u8; 16];

/// Purpose of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grant {
    /// A stream of this kind.
    Stream(StreamKind),
    /// A UDP flow with this number.
    Flow(u32),
}

/// Why a stream is not taken.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum StreamRefusal {
    /// Its token is wrong, used, too old, of another address or for something else.
    #[error("a stream without a valid token")]
    Token,
    /// Its address waits.
    #[error("a stream of an address that has used {WRONG_MAX} wrong tokens within a minute")]
    Address,
}

struct Entry {
    session: u64,
    grant: Grant,
    origin: Origin,
    uses_left: u32,
    expires: Option<Instant>,
}

/// From where tokens may be used.
#[derive(Clone, Copy)]
pub(super) struct Origin {
    /// Address of the control connection.
    pub client: IpAddr,
    /// Any other one as well.
    pub allows_others: bool,
}

impl Entry {
    fn is_valid(&self, now: Instant) -> bool {
        self.uses_left > 0 && self.expires.is_none_or(|expires| now < expires)
    }
}

/// All tokens of a server.
pub(super) struct Tokens {
    entries: HashMap<Token, Entry>,
    /// Tokens of streams.
    wrong: AddressCounts,
}

/// A token of a flow is to be used within this time.
const FLOW_TIMEOUT: Duration = Duration::from_secs(10);
/// Wrong tokens of one address per period; more make it wait for the rest of the period.
const WRONG_MAX: u32 = 20;
const WRONG_PERIOD: Duration = Duration::from_secs(60);

impl Tokens {
    pub(super) fn new() -> Self {
        Self {
            entries: HashMap::new(),
            wrong: AddressCounts::new(WRONG_MAX, WRONG_PERIOD),
        }
    }

    /// Makes a token for a stream; `uses` connections may begin with it.
    pub(super) fn grant_stream(
        &mut self,
        session: u64,
        kind: StreamKind,
        origin: Origin,
        uses: u32,
    ) -> Token {
        self.grant(Entry {
            session,
            grant: Grant::Stream(kind),
            origin,
            uses_left: uses,
            expires: None,
        })
    }

    /// Makes a token for a flow.
    pub(super) fn grant_flow(
        &mut self,
        session: u64,
        flow: u32,
        origin: Origin,
        now: Instant,
    ) -> Token {
        let expires = Some(now + FLOW_TIMEOUT);
        self.grant(Entry {
            session,
            grant: Grant::Flow(flow),
            origin,
            uses_left: 1,
            expires,
        })
    }

    fn grant(&mut self, entry: Entry) -> Token {
        let token = linerate_trust::random();
        self.entries.insert(token, entry);
        token
    }

    /// Uses the token of a stream; returns its session. The TCP handshake is complete, so the
    /// address is that of the sender: its wrong tokens count, and after too many it waits.
    pub(super) fn take_stream(
        &mut self,
        token: &Token,
        kind: StreamKind,
        from: IpAddr,
        now: Instant,
    ) -> Result<u64, StreamRefusal> {
        if self.wrong.is_exhausted(from, now) {
            return Err(StreamRefusal::Address);
        }

        let taken = self.take(token, Grant::Stream(kind), from, now);
        if taken.is_none() {
            self.wrong.record(from, now);
        }

        taken.ok_or(StreamRefusal::Token)
    }

    /// Uses the token of a flow; returns its session. Nothing is counted: anybody can write any
    /// address into a datagram, and would have others wait.
    pub(super) fn take_flow(
        &mut self,
        token: &Token,
        flow: u32,
        from: IpAddr,
        now: Instant,
    ) -> Option<u64> {
        self.take(token, Grant::Flow(flow), from, now)
    }

    /// A token that is for something else stays as it is.
    fn take(&mut self, token: &Token, grant: Grant, from: IpAddr, now: Instant) -> Option<u64> {
        let entry = self
            .entries
            .get_mut(token)
            .filter(|entry| entry.grant == grant && entry.is_valid(now))?;
        if !entry.origin.allows_others && entry.origin.client != from {
            return None;
        }

        entry.uses_left -= 1;
        Some(entry.session)
    }

    /// Session of a flow that may be opened from here, though its client connected from another
    /// address.
    pub(super) fn owner_elsewhere(
        &self,
        token: &Token,
        flow: u32,
        from: IpAddr,
        now: Instant,
    ) -> Option<u64> {
        let entry = self.entries.get(token)?;
        let is_good = entry.grant == Grant::Flow(flow) && entry.is_valid(now);
        (is_good && entry.origin.allows_others && entry.origin.client != from)
            .then_some(entry.session)
    }

    /// A phase or a session has ended: its tokens are invalid.
    pub(super) fn revoke(&mut self, session: u64) {
        self.entries.retain(|_, entry| entry.session != session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    const CLIENT_ALONE: Origin = Origin {
        client: CLIENT,
        allows_others: false,
    };
    const ANYBODY: Origin = Origin {
        client: CLIENT,
        allows_others: true,
    };

    #[test]
    fn token_is_used_once_by_its_address_and_in_time() {
        let (mut tokens, now) = (Tokens::new(), Instant::now());
        let stream = tokens.grant_stream(7, StreamKind::Load, CLIENT_ALONE, 1);
        let refused = Err(StreamRefusal::Token);
        let mut take = |token, kind, from| tokens.take_stream(token, kind, from, now);
        assert_eq!(
            take(&stream, StreamKind::Load, OTHER),
            refused,
            "another address"
        );
        assert_eq!(
            take(&stream, StreamKind::Rr, CLIENT),
            refused,
            "another kind"
        );
        assert_eq!(take(&stream, StreamKind::Load, CLIENT), Ok(7));
        assert_eq!(take(&stream, StreamKind::Load, CLIENT), refused, "used");
        assert_eq!(
            take(&[0; 16], StreamKind::Load, CLIENT),
            refused,
            "never granted"
        );

        let flow = tokens.grant_flow(7, 3, CLIENT_ALONE, now);
        assert_eq!(
            tokens.take_flow(&flow, 3, OTHER, now),
            None,
            "another address"
        );
        assert_eq!(
            tokens.take_flow(&flow, 4, CLIENT, now),
            None,
            "another flow"
        );
        assert_eq!(
            tokens.take_stream(&flow, StreamKind::Load, CLIENT, now),
            refused,
            "of a flow"
        );
        assert_eq!(
            tokens.take_flow(&flow, 3, CLIENT, now + FLOW_TIMEOUT),
            None,
            "too old"
        );
        assert_eq!(tokens.take_flow(&flow, 3, CLIENT, now), Some(7));
        assert_eq!(tokens.take_flow(&flow, 3, CLIENT, now), None, "used");

        let late = tokens.grant_stream(8, StreamKind::Crr, ANYBODY, 2);
        tokens.revoke(8);
        assert_eq!(
            tokens.take_stream(&late, StreamKind::Crr, CLIENT, now),
            refused,
            "its session has ended"
        );
    }

    #[test]
    fn owner_of_a_token_is_elsewhere_where_that_is_allowed() {
        let (mut tokens, now) = (Tokens::new(), Instant::now());
        let bound = tokens.grant_flow(7, 1, CLIENT_ALONE, now);
        let free = tokens.grant_flow(7, 2, ANYBODY, now);

        assert_eq!(tokens.owner_elsewhere(&bound, 1, OTHER, now), None);
        assert_eq!(tokens.owner_elsewhere(&free, 2, CLIENT, now), None);
        assert_eq!(tokens.owner_elsewhere(&free, 1, OTHER, now), None);
        assert_eq!(tokens.owner_elsewhere(&free, 2, OTHER, now), Some(7));
        assert_eq!(tokens.owner_elsewhere(&[0; 16], 2, OTHER, now), None);
        assert_eq!(
            tokens.owner_elsewhere(&free, 2, OTHER, now + FLOW_TIMEOUT),
            None
        );
        assert_eq!(tokens.take_flow(&free, 2, OTHER, now), Some(7));
        assert_eq!(tokens.owner_elsewhere(&free, 2, OTHER, now), None);
    }

    #[test]
    fn streams_of_an_address_with_many_wrong_tokens_wait_and_nothing_else_does() {
        let (mut tokens, now) = (Tokens::new(), Instant::now());
        let take = |tokens: &mut Tokens, token, from, now| {
            tokens.take_stream(token, StreamKind::Load, from, now)
        };

        for _ in 0..WRONG_MAX {
            assert_eq!(
                take(&mut tokens, &[1; 16], CLIENT, now),
                Err(StreamRefusal::Token)
            );
        }

        let good = tokens.grant_stream(1, StreamKind::Load, ANYBODY, 3);
        let flow = tokens.grant_flow(1, 1, ANYBODY, now);
        assert_eq!(
            take(&mut tokens, &good, CLIENT, now),
            Err(StreamRefusal::Address)
        );
        assert_eq!(take(&mut tokens, &good, OTHER, now), Ok(1));
        assert_eq!(tokens.take_flow(&flow, 1, CLIENT, now), Some(1));
        assert_eq!(take(&mut tokens, &good, CLIENT, now + WRONG_PERIOD), Ok(1));
    }

    /// Their source may be forged.
    #[test]
    fn wrong_tokens_in_datagrams_do_not_count() {
        let (mut tokens, now) = (Tokens::new(), Instant::now());
        for _ in 0..2 * WRONG_MAX {
            assert_eq!(tokens.take_flow(&[1; 16], 1, CLIENT, now), None);
        }

        let good = tokens.grant_stream(1, StreamKind::Load, CLIENT_ALONE, 1);
        assert_eq!(
            tokens.take_stream(&good, StreamKind::Load, CLIENT, now),
            Ok(1)
        );
    }
}
