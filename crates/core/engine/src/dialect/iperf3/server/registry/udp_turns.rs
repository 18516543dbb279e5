//! Turns of UDP tests. UDP streams carry no name, so tests from one address open their streams one
//! after another. With split addresses a stream may come from any address, so only one test at all
//! opens its streams.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Instant;

use linerate_iperf3::wire::ErrorCode;
use linerate_iperf3::wire::server::ServerInput;

use super::SessionRegistry;
use super::client::Client;
use super::turn_times::UDP_TURN;

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
            self.turn_times.record(client.network(), since, now);
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
        if self.udp_queue.is_empty() {
            return;
        }

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
