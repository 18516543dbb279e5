//! Turns of UDP tests. UDP streams carry no name, so tests from one address open their streams one after another.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use linerate_iperf3::ErrorCode;
use linerate_iperf3::server::ServerInput;

use super::{Client, SessionRegistry};

/// Longest wait for the next UDP stream of a test while others of the same address wait for their turn; with split
/// addresses for all streams of a test while any other waits.
pub(super) const UDP_TURN: Duration = Duration::from_secs(2);

impl SessionRegistry {
    /// Tests that hold up others of their address, and how long they may.
    pub(super) fn udp_turns(&self) -> impl Iterator<Item = (u64, Instant)> {
        let waiting: BTreeSet<Option<IpAddr>> =
            self.udp_queue.iter().filter_map(|id| self.clients.get(id)).map(|g| self.udp_scope(g)).collect();
        let openers = (!waiting.is_empty()).then_some(&self.clients).into_iter().flatten();
        openers
            .filter(move |(_, g)| g.opens_udp() && waiting.contains(&self.udp_scope(g)))
            .filter_map(|(&id, g)| Some((id, self.turn_since(g)?.checked_add(UDP_TURN)?)))
    }

    pub(super) fn end_long_udp_turns(&mut self, now: Instant) {
        let over: Vec<u64> = self.udp_turns().filter(|(_, end)| *end <= now).map(|(id, _)| id).collect();
        for id in over {
            let input = ServerInput::Failed {
                code: ErrorCode::StreamAccept,
                errno: 0,
                cause: Some("others of this address wait for their turn".to_owned()),
            };
            self.handle_local(now, id, input);
        }
    }

    /// Whose stream a UDP hello from this address opens. A hello can be forged, and the dialect has no way to challenge its
    /// sender, so the server sends data only to addresses that have completed a TCP handshake.
    pub(crate) fn udp_stream_owner(&self, from: IpAddr) -> Option<u64> {
        let may_split = |g: &Client| self.allow_split_address && g.agreed.is_some_and(|t| !t.sends);
        let claims = |g: &Client| g.opens_udp() && (g.peer.ip() == from || may_split(g));
        self.clients.iter().find(|(_, g)| claims(g)).map(|(&id, _)| id)
    }

    /// UDP streams carry no name. Only their source address identifies them, so that of the sessions
    /// with one address only one at a time may open its streams.
    pub(super) fn advance_udp_queue(&mut self, now: Instant) {
        let mut blocked: BTreeSet<Option<IpAddr>> =
            self.clients.values().filter(|g| g.opens_udp()).map(|g| self.udp_scope(g)).collect();
        let mut called = Vec::new();
        for &id in &self.udp_queue {
            let Some(client) = self.clients.get(&id) else { continue };
            if blocked.insert(self.udp_scope(client)) {
                called.push(id);
            }
        }
        self.udp_queue.retain(|id| !called.contains(id));
        for id in called {
            if let Some(client) = self.clients.get_mut(&id) {
                client.input(now, ServerInput::Prepared);
            }
            self.take_actions(now, id);
        }
    }

    /// Where all addresses share one turn, a stream from time to time does not extend it.
    pub(super) fn turn_since(&self, client: &Client) -> Option<Instant> {
        if self.allow_split_address { client.opens_since } else { client.awaits_since }
    }

    pub(super) fn udp_scope(&self, client: &Client) -> Option<IpAddr> {
        (!self.allow_split_address).then(|| client.peer.ip())
    }
}
