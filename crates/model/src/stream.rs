//! Data streams as they really are.

use std::net::SocketAddr;

/// Position of a stream in its test, in creation order from 0, the same number at both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

/// What this end does on a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamRole {
    /// This end sends.
    Sender,
    /// This end receives.
    Receiver,
}

/// Direction of a stream, seen from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flow {
    /// Client to server.
    Forward,
    /// Server to client.
    Reverse,
}

/// One data connection or UDP flow.
#[derive(Debug, Clone, PartialEq)]
pub struct Stream {
    /// Its position in the test.
    pub id: StreamId,
    /// What this end does on it.
    pub role: StreamRole,
    /// Its direction.
    pub flow: Flow,
    /// Local address, IPv4-mapped addresses already unmapped.
    pub local: SocketAddr,
    /// Remote address, IPv4-mapped addresses already unmapped.
    pub remote: SocketAddr,
    /// What the kernel granted.
    pub effective: EffectiveOptions,
}

/// Socket options as the kernel reports them after set-up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EffectiveOptions {
    /// `SO_SNDBUF` in bytes.
    pub send_buffer_bytes: Option<u32>,
    /// `SO_RCVBUF` in bytes.
    pub receive_buffer_bytes: Option<u32>,
    /// Congestion control algorithm in use, TCP only.
    pub congestion: Option<String>,
}
