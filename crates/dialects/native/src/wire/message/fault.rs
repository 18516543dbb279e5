//! Errors in messages, and the bounds that messages share.

use linerate_model::json_path;
use linerate_model::printable::printable;
use serde::{Deserialize, Serialize};

/// Most bytes of the body of a request; the message has room for the name beside it.
pub const REQUEST_BODY_MAX_BYTES: usize = 8 << 10;
/// Most objects and arrays inside each other, the message itself included.
pub const NESTING_MAX: usize = 16;
/// Longest text of a peer in characters; longer explanations are cut, longer names are a fault.
pub const TEXT_MAX_CHARS: usize = 256;
/// Most tokens of one phase.
pub const TOKENS_MAX: usize = 256;
/// Most samples of load in one result.
pub const LOAD_SAMPLES_MAX: usize = 6000;
/// Most streams of a phase of transactions; [`super::STREAMS_MAX`] holds for the others.
pub const TRANSACTION_STREAMS_MAX: u32 = 10_000;

/// Error in a message of the peer. It ends the session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{member}: {text}")]
pub struct Fault {
    /// Path of the wrong member, `spec.kind`; `length` for that of the frame, `message` for the
    /// whole.
    pub member: String,
    /// The error.
    pub text: String,
}

impl Fault {
    pub(crate) fn new(member: &str, text: impl Into<String>) -> Self {
        let mut fault = Self {
            member: member.to_owned(),
            text: text.into(),
        };
        fault.cut();
        fault
    }

    pub(super) fn cut(&mut self) {
        cut(&mut self.member);
        cut(&mut self.text);
    }
}

/// An explanation: one line, and cut.
pub(super) fn cut(text: &mut String) {
    let start: String = text.chars().take(TEXT_MAX_CHARS).collect();
    *text = printable(&start);
}

/// Path of the member around the byte at `offset`.
pub(super) fn member_at(text: &[u8], offset: usize) -> String {
    json_path::path_at(text, offset, NESTING_MAX)
}

/// The whole message where there is no member.
pub(super) fn or_message(path: &str) -> &str {
    if path.is_empty() { "message" } else { path }
}
