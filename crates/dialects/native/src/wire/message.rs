//! Messages of the control connection, inside TLS: a length of four bytes and one JSON object each.
//!
//! `type` names the message, `n` numbers the messages of a direction from 1, `got` is the highest
//! number that arrived in order from the other end. Messages without a number are not repeated
//! after a resumption. Unknown members are ignored; an unknown type and a value that does not fit
//! its member are a [`Fault`].

mod bounds;
mod client;
mod fault;
mod frame;
mod json_text;
mod server;
mod tagged;

use linerate_model::json_path;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use client::{ClientMessage, Hello, Resume, TokenProof};
pub use fault::{
    Fault, LOAD_SAMPLES_MAX, NESTING_MAX, REQUEST_BODY_MAX_BYTES, TEXT_MAX_CHARS, TOKENS_MAX,
    TRANSACTION_STREAMS_MAX,
};
use fault::{member_at, or_message};
pub use frame::FrameReader;
pub use json_text::JsonText;
pub use server::{ClockReply, FlowGrant, Limits, Ready, Refusal, ServerMessage, Turn, Welcome};

/// Most bytes of a message from the client, without its length.
pub const CLIENT_MESSAGE_MAX_BYTES: u32 = 16 << 10;
/// Most bytes of a message from the server, without its length.
pub const SERVER_MESSAGE_MAX_BYTES: u32 = 1 << 20;
/// Minor version of this implementation.
pub const MINOR: u32 = 0;
/// Feature of a server that handles [`ClientMessage::Request`].
pub const REQUESTS: &str = "requests";
/// Feature of a server whose streams and flows may come from another address than the control
/// connection.
pub const SPLIT_ADDRESS: &str = "split-address";
/// Most streams of a phase per direction.
pub const STREAMS_MAX: u32 = 128;

/// A message with its numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope<M> {
    /// Number of the message; 0 of one that is not repeated.
    pub number: u64,
    /// Highest number that arrived in order from the other end.
    pub received: u64,
    /// The message.
    pub message: M,
}

/// Messages of one direction.
pub trait Message: Serialize + DeserializeOwned {
    /// Most bytes of a message without its length.
    const MAX_BYTES: u32;

    /// The message has a number, and is repeated after a resumption if it did not arrive.
    fn is_numbered(&self) -> bool;

    /// Checks lengths and texts, and cuts explanations to [`TEXT_MAX_CHARS`].
    ///
    /// # Errors
    /// The first member beyond its bound.
    fn check(&mut self) -> Result<(), Fault>;

    /// The message does not fit the state of its receiver.
    fn unexpected(&self) -> Fault {
        let text = serde_json::to_string(self).unwrap_or_default();
        Fault::new("type", format!("{} is not expected here", split(&text).0))
    }
}

/// The message as a frame.
///
/// # Errors
/// When it is longer than its direction allows.
pub fn encode<M: Message>(envelope: &Envelope<M>) -> Result<Vec<u8>, Fault> {
    let text = serde_json::to_string(&envelope.message)
        .map_err(|error| Fault::new("message", error.to_string()))?;
    let (kind, members) = split(&text);
    let mut frame = vec![0; 4];
    frame.extend(format!("{{\"type\":\"{kind}\"").into_bytes());

    if envelope.number > 0 {
        frame.extend(format!(",\"n\":{}", envelope.number).into_bytes());
    }

    frame.extend(format!(",\"got\":{}", envelope.received).into_bytes());
    if !members.is_empty() {
        frame.push(b',');
        frame.extend(members.as_bytes());
    }

    frame.push(b'}');
    let len = u32::try_from(frame.len() - 4)
        .ok()
        .filter(|len| *len <= M::MAX_BYTES);
    let len = len.ok_or_else(|| {
        Fault::new(
            "length",
            format!("message longer than {} bytes", M::MAX_BYTES),
        )
    })?;
    for (to, from) in frame.iter_mut().zip(len.to_be_bytes()) {
        *to = from;
    }

    Ok(frame)
}

/// Type and members of a message that was written as `"type"` or `{"type":{members}}`.
fn split(text: &str) -> (&str, &str) {
    let within =
        |text, first, last| str::strip_prefix(text, first).and_then(|text| text.strip_suffix(last));
    if let Some((kind, body)) = within(text, "{\"", "}").and_then(|text| text.split_once("\":")) {
        return (kind, within(body, "{", "}").unwrap_or_default());
    }

    (within(text, "\"", "\"").unwrap_or_default(), "")
}

/// Reads the text of a frame.
///
/// # Errors
/// When it is no message of this direction; the fault names the member.
pub fn decode<M: Message>(text: &[u8]) -> Result<Envelope<M>, Fault> {
    let text = std::str::from_utf8(text).map_err(|error| {
        let member = member_at(text, error.valid_up_to());
        Fault::new(or_message(&member), "not UTF-8")
    })?;
    if let Some(at) = json_path::nested_too_deep(text.as_bytes(), NESTING_MAX) {
        let member = member_at(text.as_bytes(), at);
        return Err(Fault::new(
            or_message(&member),
            format!("nested deeper than {NESTING_MAX}"),
        ));
    }

    let tag: tagged::Tag<'_> = tagged::whole(text)?;
    let mut message: M = tagged::message(&tag.kind, text)?;
    if message.is_numbered() != (tag.number > 0) {
        let text = if tag.number > 0 {
            "a number where none belongs"
        } else {
            "no number"
        };
        return Err(Fault::new("n", text));
    }

    message.check()?;
    Ok(Envelope {
        number: tag.number,
        received: tag.received,
        message,
    })
}

#[cfg(test)]
mod tests;
