//! FAIL: a message that this end does not execute.

use serde::{Deserialize, Serialize};

/// Most bytes of the text of a FAIL.
pub const FAIL_TEXT_MAX_BYTES: usize = 1 << 10;

/// A message was not executed. Never answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fail {
    /// Kind of the failure.
    pub code: FailCode,
    /// Explanation, at most [`FAIL_TEXT_MAX_BYTES`]. Untrusted text: not for a terminal as it is.
    #[serde(default)]
    pub text: String,
    /// Number of the message; absent when it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

/// Kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailCode {
    /// The line is no JSON object with the members of a message.
    Json,
    /// A bound is exceeded.
    Limit,
    /// The type is unknown.
    Type,
    /// The body does not fit the type.
    Body,
    /// The version is not supported.
    Version,
    /// Another run than the present one.
    Run,
    /// The epoch is lower than the highest one.
    Epoch,
    /// The number is lower than that of an executed command.
    Order,
    /// The message does not fit the state.
    State,
    /// The start is in the past or too far ahead, or the round is another one.
    Late,
    /// A task is beyond the plan.
    Task,
    /// The host could not carry it out.
    Failed,
    /// A code of a later version.
    #[serde(other)]
    Other,
}

impl Fail {
    /// A failure of the message with this number, where it could be read.
    pub(crate) fn new(code: FailCode, seq: Option<u64>, text: impl Into<String>) -> Self {
        Self {
            code,
            text: shortened(text.into()),
            seq,
        }
    }

    pub(super) fn cut(&mut self) {
        self.text = shortened(std::mem::take(&mut self.text));
    }
}

/// At most [`FAIL_TEXT_MAX_BYTES`] of a text.
pub(crate) fn shortened(mut text: String) -> String {
    let mut end = text.len().min(FAIL_TEXT_MAX_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }

    text.truncate(end);
    text
}
