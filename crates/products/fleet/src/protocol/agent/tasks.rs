//! Tasks of a round and their results.

use crate::TaskId;
use crate::protocol::message::{ArmTask, TaskEnd};

/// A task that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Finish {
    /// The task.
    pub task: TaskId,
    /// End of the task.
    pub end: TaskEnd,
    /// Record of the test as JSON; empty without one.
    pub record: String,
}

impl Finish {
    /// The end of a task without a record.
    pub fn without_record(task: TaskId, end: TaskEnd) -> Self {
        Self {
            task,
            end,
            record: String::new(),
        }
    }
}

/// Tasks of this host in a round.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) number: u32,
    /// Agent's clock minus coordinator's clock.
    pub(super) offset_ns: i64,
    pub(super) tasks: Vec<RunTask>,
}

/// A task in a round.
#[derive(Debug)]
pub(super) struct RunTask {
    pub(super) spec: ArmTask,
    pub(super) planned_ns: Option<u64>,
    /// When it is ended.
    pub(super) deadline_ns: u64,
    pub(super) is_started: bool,
    pub(super) is_over: bool,
}

impl Round {
    pub(super) fn task(&mut self, task: TaskId) -> Option<&mut RunTask> {
        self.tasks
            .iter_mut()
            .find(|known| known.spec.task == task && !known.is_over)
    }

    pub(super) fn is_over(&self) -> bool {
        self.tasks.iter().all(|task| task.is_over)
    }

    /// End of the task that is next to be ended.
    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        self.tasks
            .iter()
            .filter(|task| !task.is_over)
            .map(|task| task.deadline_ns)
            .min()
    }

    /// Start on the agent's clock.
    pub(super) fn local_ns(&self, t0_ns: u64) -> Option<u64> {
        t0_ns.checked_add_signed(self.offset_ns)
    }
}
