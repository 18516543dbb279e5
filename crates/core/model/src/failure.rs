//! Why a test did not end well, in words and in numbers.

use std::fmt;

use linerate_macros::stored;

/// Whose doing it was; decides prefix and exit code of the dialects.
#[stored(Eq)]
pub enum FailureKind {
    /// Something failed here, or the peer broke the protocol.
    Error,
    /// The peer reported an error of its own.
    Peer {
        /// Operating system error number of the peer, 0 for none.
        errno: i32,
        /// Its text, when `errno` is not 0.
        errno_text: Option<String>,
    },
    /// A signal ended this process's work.
    Interrupted,
    /// The peer reported that a signal ended it.
    PeerTerminated,
    /// The peer closed the control connection without a word.
    PeerClosed,
}

/// A test that ended early.
#[stored(Eq)]
pub struct Failure {
    /// Whose doing it was.
    pub kind: FailureKind,
    /// Operation and reason, in the wording of the dialect.
    pub message: String,
    /// The dialect's number for it (iperf3: IE code).
    pub code: Option<i32>,
}

impl Failure {
    /// A failure without a number.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            code: None,
        }
    }

    /// A failure on this end.
    pub fn error(code: i32, message: impl Into<String>) -> Self {
        Self {
            kind: FailureKind::Error,
            message: message.into(),
            code: Some(code),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
