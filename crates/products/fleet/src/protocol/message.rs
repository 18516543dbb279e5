//! Messages of both ends: one JSON object per line,
//! `{"v":1,"run":"…","epoch":7,"seq":42,"type":"arm","body":{…}}`.
//!
//! Unknown members are ignored. New behaviour is requested by the names in [`Hello::caps`].

mod agent;
mod coordinator;
mod delivery;
mod fail;
mod json_text;
mod peers;
mod preflighted;
mod task;

use std::borrow::Cow;

use linerate_model::record::RunId;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use agent::{
    Address, AgentMessage, AgentState, Armed, Clocked, Done, Ended, Heartbeat, Hello, Outcome,
    Planned, Sample, Started, TaskEnd, TaskRate, TaskResult, Versions,
};
pub use coordinator::{
    Cancel, Clock, CoordinatorMessage, FactsDepth, Plan, Preflight, PrepareRound, ProbeTarget,
    Solicit, StartRound,
};
pub use delivery::{Delivery, delivery};
pub(crate) use fail::shortened;
pub use fail::{Fail, FailCode};
pub use json_text::JsonText;
pub use peers::AddressRange;
pub use preflighted::{BridgePort, Preflighted, ProbeOutcome, ProbeReport};
pub(crate) use task::is_name;
pub use task::{ArmTask, Caps, PathAddress, Ports, Role, TaskFault};

use crate::protocol::line::limits;

/// Version of the envelope, and of the protocol.
pub const VERSION: u32 = 1;
/// First line of an agent on a byte stream; it ends whatever a login shell printed before.
pub const PREAMBLE: &str = "LRFLEET/1";
/// Most bytes of a line without its end.
pub const LINE_MAX_BYTES: usize = 256 << 10;
/// Most objects and arrays inside each other, the message itself included.
pub const NESTING_MAX: usize = 16;
/// Most bytes of a string or member name, as written.
pub const STRING_MAX_BYTES: usize = 4 << 10;
/// Most elements of an array, and members of an object.
pub const ELEMENTS_MAX: usize = 4096;
/// Most bytes of the text of a FAIL.
pub const FAIL_TEXT_MAX_BYTES: usize = 1 << 10;
/// Most bytes of the line of a SAMPLE.
pub const SAMPLE_MAX_BYTES: usize = 512;
/// Most parts of a RESULT.
pub const PARTS_MAX: u32 = 16;
/// Most tasks of an ARM.
pub const TASKS_MAX: usize = 256;
/// Most tasks of an ARM in which the host is the client.
pub const CLIENT_TASKS_MAX: usize = 64;
/// Most lines of a peer in a run that are no message.
pub const FAULTS_MAX: u32 = 16;

/// A message with what all messages have.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope<M> {
    /// The run; absent before the agent received a plan.
    pub run: Option<RunId>,
    /// Term of the coordinator, ascending; 1 on ssh. That of the latest command in messages of an
    /// agent.
    pub epoch: u64,
    /// Number of the message, ascending per sender.
    pub seq: u64,
    /// The message.
    pub message: M,
}

/// Why a line is no message. It is answered by a FAIL with the same code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    /// Code of the error.
    pub code: FailCode,
    /// Number of the message, where it could be read.
    pub seq: Option<u64>,
    /// Explanation, at most [`FAIL_TEXT_MAX_BYTES`].
    pub text: String,
}

impl Refusal {
    pub(crate) fn new(code: FailCode, seq: Option<u64>, text: impl Into<String>) -> Self {
        Self {
            code,
            seq,
            text: fail::shortened(text.into()),
        }
    }
}

/// Messages of one direction.
pub trait Message: Serialize + Sized {
    /// The name in `type`.
    fn kind(&self) -> &'static str;

    /// The message that `kind` names, from its body; `None` for an unknown name.
    fn from_body(kind: &str, body: &str) -> Option<Result<Self, serde_json::Error>>;

    /// Checks what types do not express, and cuts explanations.
    ///
    /// # Errors
    /// The first bound that is exceeded.
    fn check(&mut self, line_bytes: usize) -> Result<(), String>;
}

/// The message as a line without its end.
///
/// # Errors
/// When the line is beyond a bound that the peer checks.
pub fn encode<M: Message>(envelope: &Envelope<M>) -> Result<String, Refusal> {
    let wrong = |text: String| Refusal::new(FailCode::Limit, Some(envelope.seq), text);
    let line = serde_json::to_string(&Written {
        version: VERSION,
        run: envelope.run,
        epoch: envelope.epoch,
        seq: envelope.seq,
        kind: envelope.message.kind(),
        body: &envelope.message,
    })
    .map_err(|error| wrong(error.to_string()))?;
    limits::check(line.as_bytes()).map_err(|excess| wrong(excess.to_string()))?;

    Ok(line)
}

/// Reads a line. Bounds of the text are checked before anything of it is stored.
///
/// # Errors
/// When it is no message of this direction.
pub fn decode<M: Message>(line: &[u8]) -> Result<Envelope<M>, Refusal> {
    limits::check(line)
        .map_err(|excess| Refusal::new(FailCode::Limit, None, excess.to_string()))?;
    let head: Head<'_> = serde_json::from_slice(line)
        .map_err(|error| Refusal::new(FailCode::Json, None, error.to_string()))?;
    let refused = |code, text: String| Refusal::new(code, Some(head.seq), text);
    if head.version != VERSION {
        return Err(refused(
            FailCode::Version,
            format!("version {}, this end has {VERSION}", head.version),
        ));
    }

    let body = head.body.map_or("{}", RawValue::get);
    let read = M::from_body(&head.kind, body).ok_or_else(|| {
        refused(
            FailCode::Type,
            format!("unknown type {:?}", shown(&head.kind)),
        )
    })?;
    let mut message =
        read.map_err(|error| refused(FailCode::Body, format!("{}: {error}", shown(&head.kind))))?;
    message
        .check(line.len())
        .map_err(|text| refused(FailCode::Limit, text))?;

    Ok(Envelope {
        run: head.run,
        epoch: head.epoch,
        seq: head.seq,
        message,
    })
}

/// The begin of a name for an error.
fn shown(name: &str) -> String {
    name.chars().take(64).collect()
}

#[derive(Serialize)]
struct Written<'a, M> {
    #[serde(rename = "v")]
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunId>,
    epoch: u64,
    seq: u64,
    #[serde(rename = "type")]
    kind: &'static str,
    body: &'a M,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(rename = "v")]
    version: u32,
    #[serde(default)]
    run: Option<RunId>,
    #[serde(default)]
    epoch: u64,
    seq: u64,
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    body: Option<&'a RawValue>,
}

#[cfg(test)]
mod tests;
