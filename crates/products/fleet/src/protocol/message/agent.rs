//! Messages of the agent.

use std::net::IpAddr;

use linerate_model::snapshot::Snapshot;
use serde::{Deserialize, Serialize};

use super::{Fail, Message, PARTS_MAX};
use crate::TaskId;

/// A message of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "body", rename_all = "snake_case")]
pub enum AgentMessage {
    /// First message: the agent and its host.
    Hello(Box<Hello>),
    /// Answer to PLAN, which is accepted.
    Planned {
        /// Port of the server on each of the plan's addresses, in their order.
        ports: Vec<u16>,
    },
    /// Answer to PREFLIGHT.
    Preflighted(Box<Preflighted>),
    /// Answer to CLOCK.
    Clocked {
        /// That of the CLOCK.
        c1_ns: u64,
        /// CLOCK received, agent's clock.
        a2_ns: u64,
        /// CLOCKED sent, agent's clock.
        a3_ns: u64,
    },
    /// Answer to ARM: the workers of the round are ready.
    Armed {
        /// Number of the round.
        round: u32,
    },
    /// A task started. Coordinators read the time from RESULT.
    Started {
        /// Number of the round.
        round: u32,
        /// The task.
        task: TaskId,
        /// Actual start, agent's clock.
        at_ns: u64,
    },
    /// A task ended.
    Result(Box<TaskResult>),
    /// All processes of a round or run have ended.
    Done {
        /// The round; absent for the whole run.
        #[serde(skip_serializing_if = "Option::is_none")]
        round: Option<u32>,
        /// The agent sent this before its processes confirmed their end.
        #[serde(default)]
        unconfirmed: bool,
    },
    /// The agent is alive.
    Beat {},
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
    pub host_key: Option<String>,
    /// Hash of the boot id and of the network namespace.
    pub boot_hash: Option<String>,
    /// Addresses of the host.
    #[serde(default)]
    pub addresses: Vec<Address>,
    /// Local address of the control path.
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
    pub speed_bps: Option<u64>,
    /// Physical ports that the device sends through; empty where they are not known.
    #[serde(default)]
    pub ports: Vec<String>,
    /// A VLAN lies between the device and its ports.
    #[serde(default)]
    pub has_vlan: bool,
}

/// Findings of an agent before the first round: paths to the partners.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Preflighted {
    /// One entry per probed port.
    pub peers: Vec<ProbeReport>,
    /// Facts of the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<Box<Snapshot>>,
}

/// A probed port and the route to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// Address of the partner.
    pub peer: IpAddr,
    /// Probed port.
    pub port: u16,
    /// Outcome of the probe.
    pub outcome: ProbeOutcome,
    /// Round trip of the handshake.
    pub rtt_ns: Option<u64>,
    /// Device of the route.
    pub device: Option<String>,
    /// MTU of the route in bytes.
    pub mtu_bytes: Option<u32>,
    /// Port of a bridge that leads to the partner.
    pub bridge_port: Option<BridgePort>,
}

/// A port of a bridge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BridgePort {
    /// Its device.
    pub name: String,
    /// Bridge of the bus that its card is behind; absent of a device without a bus.
    pub slot: Option<String>,
}

/// Outcome of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeOutcome {
    /// The port is open.
    Ok,
    /// The partner refused the connection.
    Refused,
    /// No answer.
    Timeout,
    /// There is no route.
    NoRoute,
    /// Another error.
    #[serde(other)]
    Other,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<TaskEnd>,
    /// Pieces of the record of the test; all pieces of all parts in order are one text of JSON.
    #[serde(default)]
    pub record: Vec<String>,
}

/// End of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEnd {
    /// Done, failed or aborted.
    pub outcome: Outcome,
    /// Why it is not done. Untrusted text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Planned start, agent's clock.
    pub planned_ns: Option<u64>,
    /// Actual start, agent's clock.
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
    /// An end without amounts and times.
    fn new(outcome: Outcome, reason: Option<String>) -> Self {
        Self {
            outcome,
            reason,
            ..Self::default()
        }
    }

    /// A task that ran for its time, so far without amounts and times.
    pub fn done() -> Self {
        Self::new(Outcome::Done, None)
    }

    /// A task that was ended before its time.
    pub fn aborted(reason: &str) -> Self {
        Self::new(Outcome::Aborted, Some(reason.to_owned()))
    }

    /// A task that ended with an error.
    pub(crate) fn failed(reason: &str, started_ns: Option<u64>) -> Self {
        Self {
            started_ns,
            ..Self::new(Outcome::Failed, Some(reason.to_owned()))
        }
    }

    /// The record is too long for its messages. A reason that is there is kept.
    pub(crate) fn leave_out_record(&mut self) {
        self.reason
            .get_or_insert_with(|| "the record is left out: it is too long".to_owned());
    }
}

/// Outcome of a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It ran for its time.
    #[default]
    Done,
    /// It ended with an error.
    Failed,
    /// It was ended: by the lease, a deadline or a CANCEL.
    Aborted,
}

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
            Self::Result(result) => result.check(),
            Self::Fail(fail) => {
                fail.cut();
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl TaskResult {
    fn check(&self) -> Result<(), String> {
        if !(1..=PARTS_MAX).contains(&self.parts) || self.part >= self.parts {
            return Err(format!(
                "part {} of {}, at most {PARTS_MAX} are allowed",
                self.part, self.parts
            ));
        }
        // Part 0 exists of every result, so the end arrives exactly once.
        if self.end.is_some() != (self.part == 0) {
            return Err("the end of a task belongs to part 0".to_owned());
        }

        Ok(())
    }
}
