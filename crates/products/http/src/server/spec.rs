//! Configuration of a server.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use linerate_model::network::Network;
use linerate_sys::interfaces;

/// A server of fixed payloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSpec {
    /// Listening addresses.
    pub listen: Listen,
    /// Threads, each with its own listeners; `None` for one per CPU the process may use.
    pub threads: Option<usize>,
    /// Accept queue per listener; the kernel limits it to `net.core.somaxconn`.
    pub backlog: u32,
    /// Limit of concurrent connections; others get 503. `None` for 90 % of the descriptor limit.
    pub connections_max: Option<usize>,
    /// Idle timeout.
    pub idle_timeout: Duration,
    /// Longest request body in bytes.
    pub body_bytes_max: u64,
    /// Clients may request chunks of less than [`super::CHUNK_BYTES_MIN`] bytes, whose framing
    /// costs more than their payload.
    pub allow_tiny_chunks: bool,
    /// Access list.
    pub access: Access,
    /// Value of a `Server` field in every response.
    pub server_header: Option<String>,
    /// Omits the `Date` field.
    pub without_date: bool,
    /// Socket options.
    pub socket: SocketSpec,
}

/// Listening addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// This port on every address, IPv4 and, if available, IPv6. 0: chosen by the kernel.
    Everywhere(u16),
    /// These addresses.
    At(Vec<SocketAddr>),
}

/// Who is served. Other connections are closed without a response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Access {
    /// Networks of this host and private addresses: loopback, link-local, RFC 1918 and RFC 4193.
    #[default]
    LocalNetworks,
    /// These networks only.
    Networks(Vec<Network>),
}

/// Socket options; `None` for the kernel's default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SocketSpec {
    /// `SO_SNDBUF` in bytes.
    pub send_buffer_bytes: Option<u32>,
    /// `SO_RCVBUF` in bytes.
    pub receive_buffer_bytes: Option<u32>,
    /// Congestion control.
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
            allow_tiny_chunks: false,
            access: Access::LocalNetworks,
            server_header: None,
            without_date: false,
            socket: SocketSpec::default(),
        }
    }
}

impl ServerSpec {
    /// The default on a port of the loopback address chosen by the kernel.
    pub fn on_loopback() -> Self {
        Self {
            listen: Listen::At(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))]),
            ..Self::default()
        }
    }
}

impl Listen {
    /// The addresses, and whether an unsupported one is skipped.
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

impl Access {
    /// Networks that are served; addresses of this host are read at the call.
    pub fn networks(&self) -> Vec<Network> {
        match self {
            Self::Networks(networks) => networks.clone(),
            Self::LocalNetworks => local_networks(&interfaces::addresses()).collect(),
        }
    }
}

/// Private ranges, and the networks of these addresses with their prefix lengths. A prefix of no
/// bits would be every address.
pub(crate) fn local_networks(addresses: &[(IpAddr, u8)]) -> impl Iterator<Item = Network> {
    let on_link = addresses.iter().filter(|(_, prefix_len)| *prefix_len > 0);
    let on_link = on_link.filter_map(|(address, prefix_len)| Network::new(*address, *prefix_len));
    PRIVATE_NETWORKS
        .iter()
        .filter_map(|range| range.parse().ok())
        .chain(on_link)
}

/// Ranges that are not routed (RFC 1122, RFC 1918, RFC 3927, RFC 4193, RFC 4291).
const PRIVATE_NETWORKS: [&str; 8] = [
    "127.0.0.0/8",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "169.254.0.0/16",
    "::1/128",
    "fc00::/7",
    "fe80::/10",
];

/// Default port.
pub const PORT: u16 = 8080;
