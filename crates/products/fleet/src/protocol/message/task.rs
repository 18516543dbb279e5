//! A task as an agent receives it, and the bounds within which it is accepted.

use std::fmt::Display;
use std::net::IpAddr;

use linerate_model::Direction;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{MS_NS, TaskId};

/// Longest measured time of a task, in ms.
const TIME_MAX_MS: u64 = 3_600_000;
/// Longest time before it that does not count, in ms.
const OMIT_MAX_MS: u64 = 60_000;
/// Longest time from the start of a round to that of a task, in ms.
const DELAY_MAX_MS: u64 = 60_000;
/// Most streams of a task.
const STREAMS_MAX: u32 = 128;
/// Longest name of a path, in bytes.
const PATH_MAX_BYTES: usize = 32;
/// Longest name of a congestion control, `TCP_CA_NAME_MAX` of the kernel without its end.
const CONGESTION_MAX_BYTES: usize = 15;

/// Part of the host in a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Connects.
    Client,
    /// Listens.
    Server,
}

/// A test as one of its ends runs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmTask {
    /// The task.
    pub task: TaskId,
    /// Part of this host.
    pub role: Role,
    /// Test address of the other end.
    pub peer: IpAddr,
    /// Port of the server.
    pub port: u16,
    /// Name of the path, which names this host's own address in the plan.
    pub path: String,
    /// The server sends.
    #[serde(default)]
    pub is_reversed: bool,
    /// Parallel streams.
    pub streams: u32,
    /// Measured time in ms.
    pub time_ms: u64,
    /// Time before it that does not count, in ms.
    #[serde(default)]
    pub omit_ms: u64,
    /// Time from the start of the round to that of the task, in ms.
    #[serde(default)]
    pub delay_ms: u64,
    /// Highest rate; absent without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// Congestion control; absent for that of the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
}

/// A range of ports, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ports {
    /// First port.
    pub first: u16,
    /// Last port.
    pub last: u16,
}

/// An address of a host on a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathAddress {
    /// Name of the path.
    pub path: String,
    /// The address.
    pub address: IpAddr,
}

/// Why a task is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("task {task}: {member}: {text}")]
pub struct TaskFault {
    /// The task.
    pub task: TaskId,
    /// Member that is wrong.
    pub member: &'static str,
    /// The error in it.
    pub text: String,
}

impl ArmTask {
    /// The host connects and reports the result.
    pub fn is_client(&self) -> bool {
        self.role == Role::Client
    }

    /// Who sends, seen from the client.
    pub fn direction(&self) -> Direction {
        if self.is_reversed {
            Direction::Reverse
        } else {
            Direction::Forward
        }
    }

    /// Time from the start to the end.
    pub fn duration_ns(&self) -> u64 {
        self.time_ms
            .saturating_add(self.omit_ms)
            .saturating_mul(MS_NS)
    }

    /// Time from the start of the round to that of the task.
    pub fn delay_ns(&self) -> u64 {
        self.delay_ms.saturating_mul(MS_NS)
    }

    /// Checks all members that have bounds of their own.
    ///
    /// # Errors
    /// The first member beyond its bound.
    pub fn validate(&self) -> Result<(), TaskFault> {
        let time = format_args!("not within 1 to {TIME_MAX_MS}");
        self.require((1..=TIME_MAX_MS).contains(&self.time_ms), "time_ms", time)?;
        let omit = format_args!("above {OMIT_MAX_MS}");
        self.require(self.omit_ms <= OMIT_MAX_MS, "omit_ms", omit)?;
        let delay = format_args!("above {DELAY_MAX_MS}");
        self.require(self.delay_ms <= DELAY_MAX_MS, "delay_ms", delay)?;
        self.require(self.rate_bps != Some(0), "rate_bps", "0")?;
        let streams = format_args!("not within 1 to {STREAMS_MAX}");
        self.require(
            (1..=STREAMS_MAX).contains(&self.streams),
            "streams",
            streams,
        )?;
        // The kernel chooses a port for 0 (ip(7)), which no partner would know.
        self.require(self.port > 0, "port", "0")?;
        self.require(is_name(&self.path, PATH_MAX_BYTES), "path", "not a name")?;

        if let Some(name) = &self.congestion {
            let is_name = is_name(name, CONGESTION_MAX_BYTES);
            self.require(is_name, "congestion", "not a name")?;
        }
        // Data to a multicast or broadcast address would reach hosts outside the run.
        let wrong = "neither an address of a host nor of a partner";
        self.require(is_unicast(self.peer), "peer", wrong)
    }

    pub(super) fn require(
        &self,
        holds: bool,
        member: &'static str,
        text: impl Display,
    ) -> Result<(), TaskFault> {
        if holds {
            return Ok(());
        }

        Err(TaskFault {
            task: self.task,
            member,
            text: text.to_string(),
        })
    }
}

impl Ports {
    /// The port is one of them.
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

/// `[A-Za-z0-9_-]`, at least one.
pub(crate) fn is_name(text: &str, max_bytes: usize) -> bool {
    // The length counts bytes; the allowed characters have one byte each.
    (1..=max_bytes).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

fn is_unicast(address: IpAddr) -> bool {
    // IPv4 addresses may arrive mapped into IPv6 (RFC 4291, section 2.5.5.2).
    let is_broadcast = matches!(address.to_canonical(), IpAddr::V4(v4) if v4.is_broadcast());
    !(address.is_multicast() || address.is_unspecified() || is_broadcast)
}
