//! Turns of UDP tests. UDP streams carry no name, so tests from one address open their streams one
//! after another. With split addresses a stream may come from any address, so only one test at all
//! opens its streams.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use linerate_iperf3::wire::ErrorCode;
use linerate_iperf3::wire::server::ServerInput;
use linerate_model::network::Network;

use super::{Client, SessionRegistry};

/// Longest wait for the next UDP stream of a test while others of the same address wait for their
/// turn; with split addresses for all streams of all tests of an address, while a test of another
/// address waits.
pub(super) const UDP_TURN: Duration = Duration::from_secs(2);
/// An address that has less of its turn left goes behind all others.
const LEFT_MIN: Duration = Duration::from_millis(200);
/// An address has its turn back after so many times the time that it took.
const RECOVERY: u32 = 30;
/// Addresses whose turns are remembered.
const ADDRESSES_MAX: usize = 4096;

/// What addresses took of their turns.
#[derive(Debug, Default)]
pub(super) struct TurnTimes(HashMap<Network, TurnTime>);

#[derive(Debug, Clone, Copy)]
struct TurnTime {
    taken: Duration,
    /// End of its last turn.
    ended: Instant,
}

impl TurnTimes {
    /// A client of this address opened its streams, or did not, between these moments.
    fn note(&mut self, address: Network, since: Instant, now: Instant) {
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

    /// How much of its turn an address has left.
    fn left(&self, address: Network, now: Instant) -> Duration {
        self.0.get(&address).map_or(UDP_TURN, |turn| turn.left(now))
    }

    fn is_exhausted(&self, address: Network, now: Instant) -> bool {
        self.left(address, now) < LEFT_MIN
    }

    /// Place among waiting addresses, smallest first: round robin, and behind all others who has
    /// taken its turn.
    fn order(&self, address: Network, now: Instant) -> (bool, Option<Instant>) {
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

impl SessionRegistry {
    /// Tests that hold up others, and how long they may.
    pub(super) fn udp_turns(&self) -> impl Iterator<Item = (u64, Instant)> {
        let waiting: BTreeSet<Option<IpAddr>> = self
            .udp_queue
            .iter()
            .filter_map(|id| self.clients.get(id))
            .map(|g| self.udp_scope(g))
            .collect();
        let openers = (!waiting.is_empty())
            .then_some(&self.clients)
            .into_iter()
            .flatten();
        openers
            .filter(move |(_, g)| g.opens_udp() && waiting.contains(&self.udp_scope(g)))
            .filter_map(|(&id, g)| Some((id, self.turn_end(g)?)))
    }

    /// When a test that holds up others has to have opened its streams.
    fn turn_end(&self, client: &Client) -> Option<Instant> {
        if !self.allow_split_address {
            return client.awaits_since?.checked_add(UDP_TURN);
        }

        // Where all addresses share one turn, a stream from time to time does not extend it.
        let since = client.opens_since?;
        let address = client.network();

        let mut waiting = self
            .udp_queue
            .iter()
            .filter_map(|id| self.clients.get(id))
            .map(Client::network);
        let holds_up_another =
            waiting.any(|other| other != address && !self.turn_times.is_exhausted(other, since));
        let time = if holds_up_another {
            self.turn_times.left(address, since)
        } else {
            UDP_TURN
        };

        since.checked_add(time)
    }

    /// A test opens no streams any more, so another one may.
    pub(super) fn end_udp_turn(&mut self, now: Instant, id: u64) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if let Some(since) = client.opens_since.take() {
            self.turn_times.note(client.network(), since, now);
        }

        self.advance_udp_queue(now);
    }

    pub(super) fn end_long_udp_turns(&mut self, now: Instant) {
        let over: Vec<u64> = self
            .udp_turns()
            .filter(|(_, end)| *end <= now)
            .map(|(id, _)| id)
            .collect();
        for id in over {
            let input = ServerInput::Failed {
                code: ErrorCode::StreamAccept,
                errno: 0,
                cause: Some("others wait for their turn".to_owned()),
            };
            self.handle_local(now, id, input);
        }
    }

    /// Whose stream a UDP hello from this address opens. A hello can be forged, and the dialect has
    /// no way to challenge its sender, so the server sends data only to addresses that have
    /// completed a TCP handshake.
    pub(crate) fn udp_stream_owner(&self, from: IpAddr) -> Option<u64> {
        let may_split = |g: &Client| self.allow_split_address && g.agreed.is_some_and(|t| !t.sends);
        let claims = |g: &Client| g.opens_udp() && (g.peer.ip() == from || may_split(g));
        self.clients
            .iter()
            .find(|(_, g)| claims(g))
            .map(|(&id, _)| id)
    }

    /// Calls the tests whose turn has come.
    pub(super) fn advance_udp_queue(&mut self, now: Instant) {
        let mut blocked: BTreeSet<Option<IpAddr>> = self
            .clients
            .values()
            .filter(|g| g.opens_udp())
            .map(|g| self.udp_scope(g))
            .collect();
        let mut waiting: Vec<(u64, &Client)> = self
            .udp_queue
            .iter()
            .filter_map(|id| Some((*id, self.clients.get(id)?)))
            .collect();
        waiting.sort_by_key(|(_, client)| self.turn_times.order(client.network(), now));
        waiting.retain(|(_, client)| blocked.insert(self.udp_scope(client)));

        let called: Vec<u64> = waiting.into_iter().map(|(id, _)| id).collect();
        self.udp_queue.retain(|id| !called.contains(id));

        for id in called {
            if let Some(client) = self.clients.get_mut(&id) {
                client.input(now, ServerInput::Prepared);
            }
            self.take_actions(now, id);
        }
    }

    /// Tests of one scope open their streams one after another.
    fn udp_scope(&self, client: &Client) -> Option<IpAddr> {
        (!self.allow_split_address).then(|| client.peer.ip())
    }
}
