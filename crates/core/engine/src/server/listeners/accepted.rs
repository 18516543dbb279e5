//! An accepted connection.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// A connection for its dialect.
pub(crate) struct Accepted {
    pub id: u64,
    pub fd: OwnedFd,
    pub peer: SocketAddr,
    /// Read from it already; empty for a listener of the dialect's own.
    pub first_bytes: Vec<u8>,
}
