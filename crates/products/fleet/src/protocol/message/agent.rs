//! Messages of the agent.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::{Fail, Message, PARTS_MAX, Preflighted};
use crate::TaskId;

/// A message of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "body", rename_all = "snake_case")]
pub enum AgentMessage {
    /// First message: the agent and its host.
    Hello(Box<Hello>),
    /// Answer to PLAN.
    Planned(Planned),
    /// Answer to PREFLIGHT.
    Preflighted(Box<Preflighted>),
    /// Answer to CLOCK.
    Clocked(Clocked),
    /// Answer to ARM.
    Armed(Armed),
    /// A task started.
    Started(Started),
    /// A task ended.
    Result(Box<TaskResult>),
    /// A round or the run was ended early.
    Done(Done),
    /// The agent is alive.
    Beat(Heartbeat),
    /// A command was not executed.
    Fail(Fail),
}

/// The agent and its host. Texts are untrusted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Versions of the protocol that the agent has.
    pub protocol: Versions,
    /// Version of the program.
    pub version: String,
    /// Name that the host has for itself.
    #[serde(default)]
    pub host: String,
    /// Public host key; equal keys and boot ids are one machine.
    #[serde(default)]
    pub host_key: Option<String>,
    /// Hash of the boot id and of the network namespace.
    #[serde(default)]
    pub boot_hash: Option<String>,
    /// Addresses of the host.
    #[serde(default)]
    pub addresses: Vec<Address>,
    /// Local address of the control path.
    #[serde(default)]
    pub control_address: Option<IpAddr>,
    /// Agent's monotonic clock.
    #[serde(default)]
    pub mono_ns: u64,
    /// Agent's wall clock since 1970; an annotation.
    #[serde(default)]
    pub unix_ns: u64,
}

/// A range of versions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// Lowest version.
    pub min: u32,
    /// Highest version.
    pub max: u32,
}

/// An address of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// The address.
    pub address: IpAddr,
    /// Device that has it.
    pub device: String,
    /// Speed of the link.
    #[serde(default)]
    pub speed_bps: Option<u64>,
    /// Physical ports that the device sends through; empty where they are not known.
    #[serde(default)]
    pub ports: Vec<String>,
    /// A VLAN lies between the device and its ports.
    #[serde(default)]
    pub has_vlan: bool,
}

/// The plan is accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// Port of the server on each of the plan's addresses, in their order.
    pub ports: Vec<u16>,
}

/// Clock readings of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clocked {
    /// That of the CLOCK.
    pub c1_ns: u64,
    /// CLOCK received, agent's clock.
    pub a2_ns: u64,
    /// CLOCKED sent, agent's clock.
    pub a3_ns: u64,
}

/// The workers of a round are ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Armed {
    /// Number of the round.
    pub round: u32,
}

/// A task started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// Number of the round.
    pub round: u32,
    /// The task.
    pub task: TaskId,
    /// Actual start, agent's clock.
    pub at_ns: u64,
}

/// A part of the result of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskResult {
    /// Number of the round.
    pub round: u32,
    /// The task.
    pub task: TaskId,
    /// Number of this part, from 0.
    pub part: u32,
    /// Number of parts, 1 to [`PARTS_MAX`].
    pub parts: u32,
    /// End of the task; in part 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<TaskEnd>,
    /// Pieces of the record of the test; all pieces of all parts in order are one text of JSON.
    #[serde(default)]
    pub record: Vec<String>,
}

/// End of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEnd {
    /// Done, failed or aborted.
    pub outcome: Outcome,
    /// Why it is not done. Untrusted text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Planned start, agent's clock.
    #[serde(default)]
    pub planned_ns: Option<u64>,
    /// Actual start, agent's clock.
    #[serde(default)]
    pub started_ns: Option<u64>,
    /// Step of the wall clock during the task.
    #[serde(default)]
    pub clock_step_ns: i64,
    /// Payload that arrived in the measured time.
    #[serde(default)]
    pub bytes: u64,
    /// Measured time.
    #[serde(default)]
    pub elapsed_ns: u64,
}

impl TaskEnd {
    /// A task that ran for its time, so far without amounts and times.
    pub fn done() -> Self {
        Self {
            outcome: Outcome::Done,
            reason: None,
            ..Self::aborted("")
        }
    }

    /// The record is too long for its messages. A reason that is there is kept.
    pub(crate) fn leave_out_record(&mut self) {
        self.reason
            .get_or_insert_with(|| "the record is left out: it is too long".to_owned());
    }

    /// A task that was ended before its time.
    pub fn aborted(reason: &str) -> Self {
        Self {
            outcome: Outcome::Aborted,
            reason: Some(reason.to_owned()),
            planned_ns: None,
            started_ns: None,
            clock_step_ns: 0,
            bytes: 0,
            elapsed_ns: 0,
        }
    }
}

/// Outcome of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It ran for its time.
    Done,
    /// It ended with an error.
    Failed,
    /// It was ended: by the lease, a deadline or a CANCEL.
    Aborted,
}

/// The end of all processes of a round or run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// The round; absent for the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
    /// The agent sent this before its processes confirmed their end.
    #[serde(default)]
    pub unconfirmed: bool,
}

/// The sender is alive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {}

impl Message for AgentMessage {
    const KINDS: &'static [&'static str] = &[
        "hello",
        "planned",
        "preflighted",
        "clocked",
        "armed",
        "started",
        "result",
        "done",
        "beat",
        "fail",
    ];

    fn check(&mut self) -> Result<(), String> {
        match self {
            Self::Result(result)
                if !(1..=PARTS_MAX).contains(&result.parts) || result.part >= result.parts =>
            {
                Err(format!(
                    "part {} of {}, at most {PARTS_MAX} are allowed",
                    result.part, result.parts
                ))
            }
            // Part 0 exists of every result, so the end arrives exactly once.
            Self::Result(result) if result.end.is_some() != (result.part == 0) => {
                Err("the end of a task belongs to part 0".to_owned())
            }
            Self::Fail(fail) => {
                fail.cut();
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
