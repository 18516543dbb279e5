//! Tasks of a round and their results.

use crate::TaskId;
use crate::protocol::message::{ArmTask, Role, TaskEnd};

/// Tasks that run at the same time.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundPlan {
    /// Number of the round, ascending.
    pub number: u32,
    /// The tasks.
    pub tasks: Vec<RoundTask>,
    /// Longest round trip of the tested paths.
    pub data_rtt_ns: u64,
}

/// A task and its ends.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundTask {
    /// The task.
    pub task: TaskId,
    /// The end whose result counts.
    pub client: End,
    /// The other end; absent for a server that is no host of the fleet.
    pub server: Option<End>,
    /// Nominal rate of the path per direction.
    pub nominal_bps: Option<u64>,
}

impl RoundTask {
    /// Client, and server where it is a host.
    pub(super) fn ends(&self) -> impl Iterator<Item = &End> {
        std::iter::once(&self.client).chain(&self.server)
    }
}

/// An end of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct End {
    /// The host.
    pub host: usize,
    /// The task as this host receives it.
    pub spec: ArmTask,
}

/// A task as one of its ends reports it.
#[derive(Debug, Clone, PartialEq)]
pub struct HostResult {
    /// The host.
    pub host: usize,
    /// The task.
    pub task: TaskId,
    /// Part of the host in it.
    pub role: Role,
    /// End of the task.
    pub end: TaskEnd,
    /// Record of the test, as the host wrote it; empty without one.
    pub record: String,
    /// The task was started, and the amount is possible within its time and at the nominal rate.
    pub is_plausible: bool,
}
