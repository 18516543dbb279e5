//! Simple Two-Way Active Measurement Protocol (RFC 8762, RFC 8972) in unauthenticated mode, without
//! I/O.
//!
//! A session [`sender`] sends [`packet`]s with a [`timestamp`]; a session [`reflector`] answers each
//! with its own times.

pub mod packet;
pub mod reflector;
pub mod sender;
pub mod timestamp;

/// UDP port of a session reflector (RFC 8762 section 4.1).
pub const PORT: u16 = 862;
