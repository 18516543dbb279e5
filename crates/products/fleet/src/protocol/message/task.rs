//! A task as an agent receives it, and the bounds within which it is accepted.

use std::fmt::Display;
use std::net::IpAddr;

use linerate_model::{Direction, Transport};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{MS_NS, TaskId};

/// Longest measured time of a task where the plan has no other bound, in ms.
const TIME_DEFAULT_MAX_MS: u64 = 60_000;
/// Longest measured time of a task that any plan allows, in ms.
const TIME_MAX_MS: u64 = 3_600_000;
/// Longest time from the start of a round to that of a task, in ms.
const DELAY_MAX_MS: u64 = 60_000;
/// Most streams of a task.
const STREAMS_MAX: u32 = 128;
/// Most bytes of a block; iperf3's own bound.
const BLOCK_MAX_BYTES: u32 = 1 << 20;
/// Largest UDP payload over IPv4.
const DATAGRAM_MAX_BYTES: u32 = 65_507;
/// Largest code point, RFC 2474.
const DSCP_MAX: u8 = 63;
/// Longest name of a path, in bytes.
const PATH_MAX_BYTES: usize = 32;
/// Longest name of a congestion control, `TCP_CA_NAME_MAX` of the kernel without its end.
const CONGESTION_MAX_BYTES: usize = 15;

/// Part of the host in a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// Transport of the data.
    pub transport: Transport,
    /// Who sends, seen from the client.
    pub direction: Direction,
    /// Parallel streams per direction.
    pub streams: u32,
    /// Measured time in ms.
    pub time_ms: u64,
    /// Time before it that does not count, in ms.
    #[serde(default)]
    pub omit_ms: u64,
    /// Time from the start of the round to that of the task, in ms.
    #[serde(default)]
    pub delay_ms: u64,
    /// Bytes per write or datagram; absent for the default of the transport.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<u32>,
    /// Highest rate per direction; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// Congestion control; absent for that of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// Code point of IP, RFC 2474.
    #[serde(default)]
    pub dscp: u8,
}

/// Bounds of each task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Caps {
    /// Highest rate of a direction; absent without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// Most bytes of a task with a rate; absent without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Longest measured time and omitted time together, in ms; absent for a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
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

impl Caps {
    /// The tighter bound of each kind: the plan's, and that of the owner of the host.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        // An absent bound is no bound, so the other one counts alone.
        let tighter = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        Self {
            rate_bps: tighter(self.rate_bps, other.rate_bps),
            bytes: tighter(self.bytes, other.bytes),
            time_ms: tighter(self.time_ms, other.time_ms),
        }
    }
}

impl ArmTask {
    /// The host connects and reports the result.
    pub fn is_client(&self) -> bool {
        self.role == Role::Client
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
    pub fn validate(&self, caps: &Caps) -> Result<(), TaskFault> {
        self.check_time(caps)?;
        self.check_rate(caps)?;

        let block_max = if self.transport == Transport::Udp {
            DATAGRAM_MAX_BYTES
        } else {
            BLOCK_MAX_BYTES
        };
        self.require(
            (1..=STREAMS_MAX).contains(&self.streams),
            "streams",
            format_args!("not within 1 to {STREAMS_MAX}"),
        )?;
        self.require(
            self.delay_ms <= DELAY_MAX_MS,
            "delay_ms",
            format_args!("above {DELAY_MAX_MS}"),
        )?;
        // The kernel chooses a port for 0 (ip(7)), which no partner would know.
        self.require(self.port > 0, "port", "0")?;
        self.require(
            self.block_bytes
                .is_none_or(|bytes| (1..=block_max).contains(&bytes)),
            "block_bytes",
            format_args!("not within 1 to {block_max}"),
        )?;
        self.require(
            self.dscp <= DSCP_MAX,
            "dscp",
            format_args!("above {DSCP_MAX}"),
        )?;
        self.require(is_name(&self.path, PATH_MAX_BYTES), "path", "not a name")?;

        let congestion = self.congestion.as_deref();
        self.require(
            congestion.is_none_or(|name| is_name(name, CONGESTION_MAX_BYTES)),
            "congestion",
            "not a name",
        )?;
        self.require(
            // Data to a multicast or broadcast address would reach hosts outside the run.
            is_unicast(self.peer),
            "peer",
            "neither an address of a host nor of a partner",
        )
    }

    fn check_time(&self, caps: &Caps) -> Result<(), TaskFault> {
        let max_ms = caps.time_ms.unwrap_or(TIME_DEFAULT_MAX_MS).min(TIME_MAX_MS);
        // The omitted time counts: it loads the network as the measured one does.
        let fits = self.time_ms > 0 && self.time_ms.saturating_add(self.omit_ms) <= max_ms;
        self.require(
            fits,
            "time_ms",
            format_args!("not within 1 to {max_ms}, omitted time included"),
        )
    }

    fn check_rate(&self, caps: &Caps) -> Result<(), TaskFault> {
        self.require(self.rate_bps != Some(0), "rate_bps", "0")?;
        // Without a rate the amount of a test is not known, so a cap could not be checked.
        let is_needed =
            self.transport == Transport::Udp || caps.rate_bps.is_some() || caps.bytes.is_some();
        self.require(
            self.rate_bps.is_some() || !is_needed,
            "rate_bps",
            "a rate is required for UDP and for tasks with a cap",
        )?;

        let Some(rate_bps) = self.rate_bps else {
            return Ok(());
        };
        if let Some(max) = caps.rate_bps {
            self.require(rate_bps <= max, "rate_bps", format_args!("above {max}"))?;
        }

        let Some(max) = caps.bytes else { return Ok(()) };
        let ms = u128::from(self.time_ms.saturating_add(self.omit_ms));

        // Each direction of a bidirectional test sends at the rate.
        let directions = if self.direction == Direction::Bidirectional {
            2
        } else {
            1
        };
        // Milliseconds times bit/s are thousandths of a bit: 8,000 of them are a byte.
        let bytes = u128::from(rate_bps) * ms * directions / 8_000;
        self.require(
            bytes <= u128::from(max),
            "rate_bps",
            format_args!("{bytes} bytes in all, at most {max} are allowed"),
        )
    }

    pub(super) fn require(
        &self,
        holds: bool,
        member: &'static str,
        text: impl Display,
    ) -> Result<(), TaskFault> {
        if holds {
            Ok(())
        } else {
            Err(TaskFault {
                task: self.task,
                member,
                text: text.to_string(),
            })
        }
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
