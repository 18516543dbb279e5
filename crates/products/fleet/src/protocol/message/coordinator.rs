//! Messages of the coordinator.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::{
    AddressRange, ArmTask, CLIENT_TASKS_MAX, Message, PathAddress, Ports, TASKS_MAX, TaskFault,
};
use crate::TaskId;

/// A message of the coordinator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "body", rename_all = "snake_case")]
pub enum CoordinatorMessage {
    /// The run begins for this host. Answer: PLANNED.
    Plan(Box<Plan>),
    /// Examine the paths to the partners. Answer: PREFLIGHTED.
    Preflight(Preflight),
    /// Read the clock. Answer: CLOCKED.
    Clock {
        /// Coordinator's monotonic clock.
        c1_ns: u64,
    },
    /// Prepare the tasks of a round. Answer: ARMED.
    Arm(Box<PrepareRound>),
    /// Start the round.
    Go(StartRound),
    /// End the round or the run. Answer: DONE.
    Cancel {
        /// The round; absent for the whole run.
        #[serde(skip_serializing_if = "Option::is_none")]
        round: Option<u32>,
    },
    /// Renews the lease.
    Beat {},
    /// On a bus, where agents are there first: send HELLO. Answer: HELLO, which names the run of a
    /// busy agent.
    Solicit {},
}

/// Permissions of the agent in this run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Longest silence of the coordinator, in ms.
    pub lease_ms: u64,
    /// Addresses of this host that tests may use.
    pub addresses: Vec<PathAddress>,
    /// Ports of tests; the first free one is used.
    pub ports: Ports,
    /// Period of the agent's BEAT in ms.
    #[serde(default = "beat_default_ms")]
    pub beat_ms: u64,
}

impl Plan {
    /// Checks a task against the plan and the partners of the run: bounds, addresses and ports.
    ///
    /// # Errors
    /// The first member that they do not allow.
    pub fn check(&self, task: &ArmTask, partners: &[AddressRange]) -> Result<(), TaskFault> {
        task.validate()?;
        // The list is empty before PREFLIGHT, so no task is accepted until partners are known.
        let is_partner = AddressRange::any_contains(partners, task.peer);
        task.require(is_partner, "peer", "no partner of the run")?;

        // The path selects the local address, which has to be one that the agent has bound.
        let is_own = self.addresses.iter().any(|own| own.path == task.path);
        task.require(is_own, "path", "no path of the plan")?;
        // The port of a partner is the partner's choice, which the coordinator passes on.
        let is_in_range = task.is_client() || self.ports.contains(task.port);

        task.require(is_in_range, "port", "not within the ports of the plan")
    }
}

fn beat_default_ms() -> u64 {
    1000
}

/// Examinations before the first round, and the partners of the agent's tests. The message follows
/// the plans of all hosts: addresses of partners are known when they have arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preflight {
    /// Addresses of the partners.
    pub partners: Vec<AddressRange>,
    /// Ports of partners that are probed.
    pub peers: Vec<ProbeTarget>,
    /// A snapshot of the host is requested, which has at most 20 KiB.
    #[serde(default)]
    pub has_facts: bool,
}

/// A port of a partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeTarget {
    /// Test address of the partner.
    pub peer: IpAddr,
    /// Test port.
    pub port: u16,
}

/// Tasks of a round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrepareRound {
    /// Number of the round, ascending.
    pub round: u32,
    /// Agent's clock minus coordinator's clock.
    pub offset_ns: i64,
    /// Tasks in which this host is client or server, at most [`super::TASKS_MAX`].
    pub tasks: Vec<ArmTask>,
    /// Addresses that servers of this host admit.
    #[serde(default)]
    pub admit: Vec<IpAddr>,
}

/// Starts a round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartRound {
    /// Number of the round.
    pub round: u32,
    /// Start on the coordinator's monotonic clock.
    pub t0_ns: u64,
    /// Tasks that do not run because another end is not armed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skip: Vec<TaskId>,
}

impl Message for CoordinatorMessage {
    const KINDS: &'static [&'static str] = &[
        "plan",
        "preflight",
        "clock",
        "arm",
        "go",
        "cancel",
        "beat",
        "solicit",
    ];

    fn check(&mut self) -> Result<(), String> {
        match self {
            Self::Arm(arm) => arm.check(),
            _ => Ok(()),
        }
    }
}

impl PrepareRound {
    fn check(&self) -> Result<(), String> {
        let all = self.tasks.len();
        if all > TASKS_MAX {
            return Err(format!("{all} tasks, at most {TASKS_MAX} are allowed"));
        }

        // Each client is a process of its own; servers share that of their address.
        let clients = self.tasks.iter().filter(|task| task.is_client()).count();
        if clients > CLIENT_TASKS_MAX {
            return Err(format!(
                "{clients} tasks as client, at most {CLIENT_TASKS_MAX} are allowed"
            ));
        }

        Ok(())
    }
}
