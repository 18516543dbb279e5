//! Tokens of the server's event loop: the low bits are the kind, the others an index or the number
//! of a connection.

pub(super) const LISTENER: u64 = 0;
pub(super) const PENDING: u64 = 1;
pub(super) const DIALECT: u64 = 2;
pub(super) const INTERRUPT: u64 = 3;
pub(super) const CLOSING: u64 = 4;
pub(super) const UDP_LISTENER: u64 = 5;
pub(super) const KINDS: u64 = 8;
