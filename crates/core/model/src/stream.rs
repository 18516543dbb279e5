//! Data streams as they really are.

use std::net::{IpAddr, SocketAddr};

use linerate_macros::stored;

/// Position of a stream in its test, in creation order from 0, the same number at both ends.
#[stored(Copy, Default, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

/// Role of this end on a stream.
#[stored(Copy, Default, Eq, Hash)]
pub enum StreamRole {
    /// This end sends.
    #[default]
    Sender,
    /// This end receives.
    Receiver,
}

/// Direction of a stream, seen from the client.
#[stored(Copy, Default, Eq, Hash)]
pub enum Flow {
    /// Client to server.
    #[default]
    Forward,
    /// Server to client.
    Reverse,
}

/// One data connection or UDP flow.
#[stored]
pub struct Stream {
    /// Its position in the test.
    pub id: StreamId,
    /// Role of this end on it.
    pub role: StreamRole,
    /// Its direction.
    pub flow: Flow,
    /// Local address, IPv4-mapped addresses already unmapped.
    pub local: SocketAddr,
    /// Remote address, IPv4-mapped addresses already unmapped.
    pub remote: SocketAddr,
    /// Values that the kernel granted.
    pub effective: EffectiveOptions,
    /// Further facts of its connection; dialects that show it.
    pub facts: Option<Box<StreamFacts>>,
}

impl Stream {
    /// A stream of which nothing but its addresses is known.
    pub fn new(
        id: StreamId,
        role: StreamRole,
        flow: Flow,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Self {
        Self {
            id,
            role,
            flow,
            local,
            remote,
            effective: EffectiveOptions::default(),
            facts: None,
        }
    }
}

/// Socket options as the kernel reports them after set-up.
#[stored(Default, Eq)]
pub struct EffectiveOptions {
    /// `SO_SNDBUF` in bytes.
    pub send_buffer_bytes: Option<u32>,
    /// `SO_RCVBUF` in bytes.
    pub receive_buffer_bytes: Option<u32>,
    /// Congestion control algorithm in use, TCP only.
    pub congestion: Option<String>,
}

/// A socket before it is used.
#[stored(Default, Eq)]
pub struct SocketFacts {
    /// Options as the kernel reports them.
    pub effective: EffectiveOptions,
    /// Maximum segment size in bytes (`TCP_MAXSEG`).
    pub mss_bytes: Option<u32>,
}

/// A listening socket.
#[stored(Eq)]
pub struct ListenerFacts {
    /// First port.
    pub port: u16,
    /// Last port of a range.
    pub last_port: Option<u16>,
    /// The socket.
    pub socket: SocketFacts,
    /// It takes IPv6.
    pub is_v6: bool,
    /// Multicast group it has joined.
    pub group: Option<IpAddr>,
}

impl ListenerFacts {
    /// A socket that listens on one port.
    pub const fn new(port: u16, socket: SocketFacts, is_v6: bool) -> Self {
        Self {
            port,
            last_port: None,
            socket,
            is_v6,
            group: None,
        }
    }
}

/// A stream that was opened.
#[stored(Default)]
pub struct StreamFacts {
    /// Number in reports, from 1. Both directions of a shared connection have the same.
    pub number: u32,
    /// File descriptor.
    pub descriptor: Option<u32>,
    /// Device of the local address.
    pub device: Option<String>,
    /// When it was opened, in µs since 1970.
    pub opened_at_unix_us: Option<u64>,
    /// Time `connect(2)` took in µs.
    pub connect_us: Option<u32>,
    /// Congestion window directly after connecting, in bytes.
    pub initial_cwnd_bytes: Option<u64>,
    /// Maximum segment size in bytes.
    pub mss_bytes: Option<u32>,
    /// Smoothed round-trip time directly after connecting, in µs.
    pub initial_rtt_us: Option<u32>,
    /// Release of the peer.
    pub peer_version: Option<String>,
    /// The connection was made by the server.
    pub is_connected_back: bool,
}
