//! What a server is asked to be.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use linerate_model::network::Network;

/// A server of fixed payloads.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerSpec {
    /// Where it listens.
    pub listen: Listen,
    /// Threads, each with listeners of its own; `None` for one per CPU the process may use.
    pub threads: Option<usize>,
    /// Connections the kernel may hold before they are accepted, per listener; it clips this to `net.core.somaxconn`.
    pub backlog: u32,
    /// Most connections at a time; above it a connection is answered 503 and closed. `None` for 90 % of the
    /// descriptors the process may open.
    pub connections_max: Option<usize>,
    /// A connection that makes no progress for this long is closed.
    pub idle_timeout: Duration,
    /// Longest request body in bytes.
    pub body_bytes_max: u64,
    /// Whom it serves.
    pub access: Access,
    /// Adds `Server: linerate/VERSION` with this value to every answer.
    pub server_header: Option<String>,
    /// Leaves the `Date` out, for the smallest answers.
    pub without_date: bool,
    /// Options of the sockets.
    pub socket: SocketSpec,
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// On this port of every address, IPv4 and, where the host has it, IPv6. 0 lets the kernel choose.
    Everywhere(u16),
    /// On each of these.
    At(Vec<SocketAddr>),
}

/// Whom a server serves. Others are closed without an answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Access {
    /// Addresses of the networks this host is on, and private ones: loopback, link-local, RFC 1918 and RFC 4193.
    #[default]
    Neighbours,
    /// Addresses of these networks only.
    Networks(Vec<Network>),
}

/// Options of the sockets; `None` leaves the kernel's defaults.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SocketSpec {
    /// `SO_SNDBUF` in bytes.
    pub send_buffer_bytes: Option<u32>,
    /// `SO_RCVBUF` in bytes.
    pub receive_buffer_bytes: Option<u32>,
    /// Name of the congestion control.
    pub congestion: Option<String>,
}

impl Default for ServerSpec {
    fn default() -> Self {
        Self {
            listen: Listen::Everywhere(PORT),
            threads: None,
            backlog: 65_535,
            connections_max: None,
            idle_timeout: Duration::from_secs(600),
            body_bytes_max: 64 << 20,
            access: Access::Neighbours,
            server_header: None,
            without_date: false,
            socket: SocketSpec::default(),
        }
    }
}

impl ServerSpec {
    /// The default on one port of the loopback address, chosen by the kernel.
    #[must_use]
    pub fn on_loopback() -> Self {
        Self {
            listen: Listen::At(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))]),
            ..Self::default()
        }
    }
}

impl Listen {
    /// The addresses, and whether one the host does not know may be left out.
    pub(crate) fn addresses(&self) -> Vec<(SocketAddr, bool)> {
        match self {
            Self::Everywhere(port) => vec![
                (SocketAddr::from((Ipv4Addr::UNSPECIFIED, *port)), false),
                (SocketAddr::from((Ipv6Addr::UNSPECIFIED, *port)), true),
            ],
            Self::At(addresses) => addresses.iter().map(|address| (*address, false)).collect(),
        }
    }
}

/// The port of the HTTP lab.
pub const PORT: u16 = 8080;
