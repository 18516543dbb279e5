//! Bounds of a session.

/// Bytes that a peer may send in one flight of its handshake: its ClientHello, or what the server
/// answers to it. Those of this crate have less than 1 KiB.
pub const HANDSHAKE_BYTES_MAX: usize = 16 * 1024;

/// Plaintext that a session keeps in each direction: a message of 1 MiB, and short ones beside it.
pub const PLAINTEXT_BYTES_MAX: usize = 1024 * 1024 + 4 * 1024;
