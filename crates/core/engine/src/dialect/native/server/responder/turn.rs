//! Result of a turn of a probe connection.

/// Result of a turn of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Requests that were answered; the event loop says when there is more to do.
    Answered(u64),
    /// A limit of the server leaves no room before this monotonic time, ns.
    NotBefore(u64),
}
