//! Specification of a load.

use std::net::{IpAddr, SocketAddr};

use linerate_model::http::{Mode, Ports};
use serde::{Deserialize, Serialize};

use crate::protocol::Protocol;

/// One run of the generator, also the input of worker processes. Durations are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadSpec {
    /// Addresses of the server; connections alternate between them.
    pub destinations: Vec<SocketAddr>,
    /// Local addresses; empty for the kernel's choice.
    pub sources: Vec<IpAddr>,
    /// Choice of local ports.
    pub ports: Ports,
    /// The request as it is sent.
    pub request: Vec<u8>,
    /// The method is `HEAD`.
    pub is_head: bool,
    /// Protocol.
    pub protocol: Protocol,
    /// Concurrent requests per connection of HTTP/2; 1 otherwise.
    pub streams: u32,
    /// When requests are sent.
    pub mode: Mode,
    /// Connections.
    pub connections: u32,
    /// Every connection counts as open after its first response.
    pub sends_first_request: bool,
    /// Connections opened per second; absent for no limit.
    pub ramp_per_s: Option<u32>,
    /// Connections being opened at a time.
    pub connects_in_flight: u32,
    /// Connect timeout.
    pub connect_timeout_ns: u64,
    /// Response timeout.
    pub timeout_ns: u64,
    /// Unrecorded part.
    pub warmup_ns: u64,
    /// Recorded part.
    pub duration_ns: u64,
    /// Times a connection is reopened after an unannounced loss.
    pub reconnects_max: u8,
    /// Connections are reset at the end instead of closed, which leaves no TIME_WAIT.
    pub resets_at_end: bool,
    /// All bodies must equal the first one.
    pub verifies: bool,
    /// Busy-waits for the last 50 µs before a due time.
    pub spins: bool,
    /// TCP keepalive interval of idle connections in seconds; `None` without.
    pub tcp_keepalive_s: Option<u32>,
    /// Seed of Poisson arrivals.
    pub seed: u64,
    /// `net.ipv4.ip_local_port_range`; `None` where it could not be read.
    pub port_range: Option<(u16, u16)>,
    /// Excluded local ports.
    pub ports_skipped: Vec<u16>,
}

impl LoadSpec {
    /// Connections of worker `index` of `workers`.
    pub fn connections_of(&self, index: u32, workers: u32) -> u32 {
        let workers = workers.max(1);
        self.connections / workers + u32::from(index < self.connections % workers)
    }

    /// Requests each connection keeps outstanding.
    pub fn pipeline(&self) -> usize {
        match self.mode {
            Mode::Closed { pipeline, .. } => pipeline.max(1) as usize,
            Mode::Open { .. } | Mode::Idle { .. } => 1,
        }
    }

    /// Pairs of a local address and one of the server, each with its own ports.
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
