//! State of the present round at the coordinator.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::RoundTask;
use crate::TaskId;

/// The present round.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) number: u32,
    pub(super) phase: Phase,
    pub(super) tasks: Vec<TaskState>,
    /// Hosts that received ARM.
    pub(super) hosts: BTreeMap<usize, RoundHost>,
    pub(super) data_rtt_ns: u64,
    /// Time between GO and the start.
    pub(super) lead_ns: u64,
    /// End of the phase, where no step has one.
    pub(super) until_ns: u64,
}

/// Progress of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// ARMED is awaited.
    Arming,
    /// Results of clients are awaited.
    Running,
    /// Results of servers are awaited.
    Grace,
    /// DONE of hosts that are not through is awaited.
    Closing,
}

/// A task of the round.
#[derive(Debug)]
pub(super) struct TaskState {
    pub(super) plan: RoundTask,
    /// It has a result, or comes back as not run.
    pub(super) is_settled: bool,
}

/// A host in the round.
#[derive(Debug, Default)]
pub(super) struct RoundHost {
    pub(super) arm_seq: Option<u64>,
    pub(super) go_seq: Option<u64>,
    pub(super) is_armed: bool,
    /// Tasks that this host has not reported.
    pub(super) open: BTreeSet<TaskId>,
    /// Nothing of the round runs there.
    pub(super) is_ended: bool,
    pub(super) cancelled_ns: Option<u64>,
}

impl RoundHost {
    pub(super) fn is_through(&self) -> bool {
        self.is_ended || self.go_seq.is_some() && self.open.is_empty()
    }
}
