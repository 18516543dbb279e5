//! Steps: all hosts answer, or a deadline passes.

use std::collections::BTreeSet;

/// A step of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// HELLO of all hosts.
    Hello,
    /// PLANNED.
    Plan,
    /// PREFLIGHTED.
    Preflight,
    /// Exchanges of clock readings.
    Clock,
    /// ARMED of a round.
    Arm,
    /// DONE of the hosts that did not end a round by themselves.
    Close,
    /// DONE of the run.
    End,
}

/// Hosts whose answer is awaited.
#[derive(Debug)]
pub(super) struct Barrier {
    pub(super) step: Step,
    pub(super) waiting: BTreeSet<usize>,
    pub(super) deadline_ns: u64,
}

impl Barrier {
    pub(super) fn new(
        step: Step,
        hosts: impl IntoIterator<Item = usize>,
        deadline_ns: u64,
    ) -> Self {
        Self {
            step,
            waiting: hosts.into_iter().collect(),
            deadline_ns,
        }
    }

    pub(super) fn is_over(&self, now_ns: u64) -> bool {
        self.waiting.is_empty() || now_ns >= self.deadline_ns
    }
}
