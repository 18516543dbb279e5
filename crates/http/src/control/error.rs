//! Failures of the client of the control channel.

use std::io;
use std::net::SocketAddr;

/// Failure of the control channel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The address is invalid or cannot be resolved.
    #[error("{0}")]
    Address(String),
    /// No response in any attempt.
    #[error("the control channel at {server} does not respond: {why}")]
    Lost {
        /// Address.
        server: SocketAddr,
        /// Failure of the last attempt.
        why: String,
    },
    /// The token is missing or wrong.
    #[error("the control channel refuses the token; give the one the server printed")]
    Unauthorized,
    /// The responder does not prove that it knows the token. It has not learned it.
    #[error("the control channel does not prove that it knows the token")]
    Unproved,
    /// The server refused the request.
    #[error("the control channel refuses: {text} (status {status})")]
    Refused {
        /// Status code.
        status: u16,
        /// Reason.
        text: String,
    },
    /// The responder is no control channel of linerate.
    #[error("this is no control channel of linerate: {0}")]
    Foreign(String),
}

/// Text of a connection failure.
pub(super) fn text(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut => "no response in time".to_owned(),
        io::ErrorKind::UnexpectedEof => "the connection was closed".to_owned(),
        _ => linerate_sys::error::io_text(error),
    }
}
