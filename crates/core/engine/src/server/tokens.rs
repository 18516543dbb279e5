//! Tokens of event loops: a kind, and the number of a connection, a session or a listener.

// Kinds of the server's own event loop.
pub(super) const LISTENER: u64 = 0;
pub(super) const PENDING: u64 = 1;
pub(super) const DIALECT: u64 = 2;
pub(super) const INTERRUPT: u64 = 3;
pub(super) const CLOSING: u64 = 4;
pub(super) const UDP_LISTENER: u64 = 5;

/// More than any event loop has.
const KINDS: u64 = 8;

pub(crate) fn token(number: u64, kind: u64) -> u64 {
    number * KINDS + kind
}

/// Number and kind of a token.
pub(super) fn parts(token: u64) -> (u64, u64) {
    (token / KINDS, token % KINDS)
}
