//! Turns: how much a connection sends before the next ready one of its thread is served.
//!
//! Reception needs no bound of its own: one call of recv(2), of a buffer or of [`super::worker`]'s
//! bytes to discard. A connection sends as long as its client takes it, and a client of the same
//! speed takes all of it.

/// Remainder of the turn of a connection.
#[derive(Debug)]
pub(crate) struct Turn {
    bytes_left: u64,
    calls_left: u32,
}

impl Turn {
    /// A turn that begins.
    pub(crate) const fn new() -> Self {
        Self {
            bytes_left: TURN_BYTES,
            calls_left: TURN_CALLS,
        }
    }

    #[cfg(test)]
    pub(crate) const fn of(bytes_left: u64, calls_left: u32) -> Self {
        Self {
            bytes_left,
            calls_left,
        }
    }

    /// True if the next connection is to be served.
    pub(crate) const fn is_over(&self) -> bool {
        self.bytes_left == 0 || self.calls_left == 0
    }

    /// Accounts for a call that sent `bytes`.
    pub(crate) fn charge(&mut self, bytes: usize) {
        self.bytes_left = self.bytes_left.saturating_sub(bytes as u64);
        self.calls_left = self.calls_left.saturating_sub(1);
    }
}

/// Bytes of a turn, but for the rest of its last call: a block of a large body, so that a turn
/// costs an epoll_wait(2) per sendfile(2) of a mebibyte.
const TURN_BYTES: u64 = 1 << 20;
/// System calls of a turn: as many as a chunked body needs for these bytes.
const TURN_CALLS: u32 = 16;
