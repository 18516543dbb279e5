//! Messages of both ends: one JSON object per line,
//! `{"v":1,"run":"…","epoch":7,"seq":42,"type":"arm","body":{…}}`.
//!
//! Unknown members are ignored.

mod agent;
mod coordinator;
mod delivery;
mod fail;
mod peers;
mod task;

use std::borrow::Cow;

use linerate_model::record::RunId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use agent::{
    Address, AgentMessage, BridgePort, Hello, Outcome, Preflighted, ProbeOutcome, ProbeReport,
    TaskEnd, TaskResult, Versions,
};
pub use coordinator::{CoordinatorMessage, Plan, Preflight, PrepareRound, ProbeTarget, StartRound};
pub use delivery::{Delivery, delivery};
pub(crate) use fail::shortened;
pub use fail::{FAIL_TEXT_MAX_BYTES, Fail, FailCode};
pub use peers::AddressRange;
pub(crate) use task::is_name;
pub use task::{ArmTask, PathAddress, Ports, Role, TaskFault};

use crate::protocol::line::limits;

/// Version of the envelope, and of the protocol.
pub const VERSION: u32 = 1;
/// First line of an agent on a byte stream; it ends whatever a login shell printed before.
pub const PREAMBLE: &str = "LRFLEET/1";
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

/// Messages of one direction. Each variant has a name, in `type`, and a body.
pub trait Message: Serialize + DeserializeOwned {
    /// Names of the variants.
    const KINDS: &'static [&'static str];

    /// Checks what types do not express, and cuts explanations.
    ///
    /// # Errors
    /// The first bound that is exceeded.
    fn check(&mut self) -> Result<(), String>;
}

/// The message as a line without its end.
///
/// # Errors
/// When the line is beyond a bound that the peer checks.
pub fn encode<M: Message>(envelope: &Envelope<M>) -> Result<String, Fail> {
    let wrong = |text: String| Fail::new(FailCode::Limit, Some(envelope.seq), text);
    let line = serde_json::to_string(&Written {
        version: VERSION,
        run: envelope.run,
        epoch: envelope.epoch,
        seq: envelope.seq,
        message: &envelope.message,
    })
    .map_err(|error| wrong(error.to_string()))?;
    limits::check(line.as_bytes()).map_err(|excess| wrong(excess.to_string()))?;

    Ok(line)
}

/// Reads a line. Bounds of the text are checked before anything of it is stored.
///
/// # Errors
/// When it is no message of this direction.
pub fn decode<M: Message>(line: &[u8]) -> Result<Envelope<M>, Fail> {
    limits::check(line).map_err(|excess| Fail::new(FailCode::Limit, None, excess.to_string()))?;
    let head: Head<'_> = serde_json::from_slice(line)
        .map_err(|error| Fail::new(FailCode::Json, None, error.to_string()))?;
    // The head is read first, so that the refusal of a body can name the number of its message.
    let refused = |code, text: String| Fail::new(code, Some(head.seq), text);
    if head.version != VERSION {
        return Err(refused(
            FailCode::Version,
            format!("version {}, this end has {VERSION}", head.version),
        ));
    }

    // An unknown type has its own code, so a newer peer can distinguish it from a malformed body.
    let kind = &*head.kind;
    if !M::KINDS.contains(&kind) {
        return Err(refused(
            FailCode::Type,
            format!("unknown type {:?}", shown(kind)),
        ));
    }

    // Messages without members may leave out the body.
    let body = head.body.map_or("{}", RawValue::get);
    let mut message: M = serde_json::from_str(&format!(r#"{{"type":"{kind}","body":{body}}}"#))
        .map_err(|error| refused(FailCode::Body, format!("{kind}: {error}")))?;
    message
        .check()
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
    // A name of the peer is repeated in a FAIL, whose text is bounded.
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
    #[serde(flatten)]
    message: &'a M,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(rename = "v")]
    version: u32,
    run: Option<RunId>,
    #[serde(default)]
    epoch: u64,
    seq: u64,
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
}

#[cfg(test)]
mod tests;
