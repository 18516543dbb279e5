//! Amounts that a load transferred: per sample, stream and subflow.

use std::net::SocketAddr;

use linerate_macros::stored;

use super::PathDirection;
use crate::interval::TcpInterval;

/// Bytes of a phase's load so far, read ten times a second.
#[stored(Copy, Default, Eq)]
pub struct LoadSample {
    /// Since the start of the phase, ns.
    pub at_ns: u64,
    /// Payload from the server to the client so far.
    pub down_bytes: u64,
    /// Payload from the client to the server so far; at the client what its kernel knows to be
    /// acknowledged.
    pub up_bytes: u64,
    /// Streams that carry load.
    pub streams: u32,
}

/// Bytes of one stream.
#[stored(Default)]
pub struct StreamTotals {
    /// Number of the stream in its phase.
    pub stream: u32,
    /// Direction of its load.
    pub direction: Option<PathDirection>,
    /// Payload bytes.
    pub bytes: u64,
    /// Local address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<SocketAddr>,
    /// Remote address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<SocketAddr>,
    /// The kernel's values at the end (`TCP_INFO`, tcp(7)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpInterval>,
    /// Bytes in the socket that were not sent yet, median over the phase (`tcpi_notsent_bytes`); of
    /// a sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notsent_bytes: Option<u64>,
    /// Congestion control in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
}

/// One subflow of a Multipath TCP connection.
#[stored(Default)]
pub struct SubflowRow {
    /// Number of the stream.
    pub stream: u32,
    /// Local address.
    pub local: String,
    /// Remote address.
    pub remote: String,
    /// Bytes that its sender saw acknowledged; at a receiver those that arrived.
    pub bytes: u64,
    /// Its part of the bytes of the stream, 0 to 1.
    pub share: f64,
    /// Smoothed round trip in µs.
    pub rtt_us: u32,
    /// Segments sent again.
    pub retransmits: u32,
    /// Used only when no other subflow is; absent where the kernel does not report it (no socket
    /// option does).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_backup: Option<bool>,
}
