//! An accepted connection.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// A connection for its dialect.
pub(crate) struct Accepted {
    pub(crate) id: u64,
    pub(crate) fd: OwnedFd,
    pub(crate) peer: SocketAddr,
    /// Read from it already; empty for a listener of the dialect's own.
    pub(crate) first_bytes: Vec<u8>,
}
