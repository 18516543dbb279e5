//! Needs of a plan, and the two hosts.

use std::net::IpAddr;

use linerate_model::http::{CellKey, Environment, Ports, Side};
use serde::Deserialize;

/// Needs of a plan, and the two hosts.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Preflight {
    /// Cells of the plan.
    pub cells: Vec<CellKey>,
    /// Device the connections must take; absent for any.
    pub device: Option<String>,
    /// Local addresses of the connections, at least 1.
    pub sources: u32,
    /// Choice of local ports.
    pub ports: Ports,
    /// Connections opened per second; absent without a limit.
    pub ramp_per_s: Option<u32>,
    /// Requests at a time on each connection.
    pub streams: u32,
    /// HTTP/1.1 without TLS.
    pub is_plain_http1: bool,
    /// Threads of the generator; absent for one on each CPU.
    pub generator_threads: Option<u32>,
    /// The client's host.
    pub client: Environment,
    /// The server's host; absent without an agent there.
    pub server: Option<Environment>,
    /// Address of the server.
    pub server_address: Option<IpAddr>,
    /// Address of the client on the route there.
    pub client_address: Option<IpAddr>,
    /// Port of the server.
    pub port: u16,
    /// Addresses and ports of the server that connections are spread over.
    pub destinations: u32,
    /// Largest distance between the clocks of the hosts after they were compared, ns; absent when
    /// they could not be.
    pub clock_error_ns: Option<u64>,
}

impl Preflight {
    pub(super) fn hosts(&self) -> impl Iterator<Item = (Side, &Environment)> {
        let server = self.server.iter().map(|server| (Side::Server, server));
        std::iter::once((Side::Client, &self.client)).chain(server)
    }

    /// Most connections of any cell.
    pub(super) fn connections(&self) -> u64 {
        self.largest(|key| u64::from(key.connections))
    }

    /// The largest need of any cell.
    pub(super) fn largest(&self, need: impl Fn(&CellKey) -> u64) -> u64 {
        self.cells.iter().map(need).max().unwrap_or(0)
    }

    /// Names of the cells for which this holds.
    pub(super) fn cells_where(&self, is_affected: impl Fn(&CellKey) -> bool) -> Vec<String> {
        let affected = self.cells.iter().filter(|key| is_affected(key));
        affected.map(CellKey::name).collect()
    }
}
