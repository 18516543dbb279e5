//! What a load is to be.

use std::net::{IpAddr, SocketAddr};

use linerate_model::http::Mode;
use serde::{Deserialize, Serialize};

use super::ports::PortChoice;
use crate::protocol::Protocol;

/// One run of the generator. Durations are nanoseconds. The form is also what worker processes are given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadSpec {
    /// Addresses of the server; connections are dealt over them in turn.
    pub destinations: Vec<SocketAddr>,
    /// Local addresses; empty for the kernel's choice.
    pub sources: Vec<IpAddr>,
    /// Who chooses local ports.
    pub ports: PortChoice,
    /// The request, as it goes over the wire.
    pub request: Vec<u8>,
    /// It is a `HEAD`, so answers have no body.
    pub is_head: bool,
    /// How the server is spoken to.
    pub protocol: Protocol,
    /// Requests at a time on a connection of HTTP/2; 1 otherwise.
    pub streams: u32,
    /// When requests are sent.
    pub mode: Mode,
    /// Connections.
    pub connections: u32,
    /// Every connection sends one request before it counts as open.
    pub touches: bool,
    /// Connections opened per second; absent for no limit.
    pub ramp_per_s: Option<u32>,
    /// Most connections on their way at once.
    pub connects_in_flight: u32,
    /// Longest wait for a connection.
    pub connect_timeout_ns: u64,
    /// Longest wait for an answer.
    pub timeout_ns: u64,
    /// Load that is not recorded.
    pub warmup_ns: u64,
    /// Load that is.
    pub duration_ns: u64,
    /// Times a connection that was lost without notice is opened again.
    pub reconnects_max: u8,
    /// Connections are reset at the end instead of closed, which leaves no TIME_WAIT.
    pub resets_at_end: bool,
    /// Bodies must be the same as the first one.
    pub verifies: bool,
    /// The last 50 µs before a due time are spent awake.
    pub spins: bool,
    /// Pause after which an idle connection is probed by TCP, in seconds; absent for never.
    pub tcp_keepalive_s: Option<u32>,
    /// Decides Poisson arrivals.
    pub seed: u64,
    /// `net.ipv4.ip_local_port_range`; absent where it could not be read.
    pub port_range: Option<(u16, u16)>,
    /// Local ports that must not be used.
    pub ports_skipped: Vec<u16>,
}

impl LoadSpec {
    /// Connections of lane `index` of `lanes`.
    #[must_use]
    pub fn connections_of(&self, index: u32, lanes: u32) -> u32 {
        let lanes = lanes.max(1);
        self.connections / lanes + u32::from(index < self.connections % lanes)
    }

    /// Requests that each connection keeps outstanding.
    #[must_use]
    pub fn pipeline(&self) -> usize {
        match self.mode {
            Mode::Closed { pipeline, .. } => pipeline.max(1) as usize,
            Mode::Open { .. } | Mode::Idle { .. } => 1,
        }
    }

    /// Pairs of a local address and one of the server's, each of which has ports of its own.
    #[must_use]
    pub fn tuples(&self) -> u64 {
        let fitting = |destination: &SocketAddr| {
            let sources = self.sources.iter();
            sources
                .filter(|source| source.is_ipv4() == destination.is_ipv4())
                .count()
                .max(1) as u64
        };
        self.destinations.iter().map(fitting).sum::<u64>().max(1)
    }
}
