//! A round: ARM, GO, and the deadlines of its tasks.

use std::collections::HashSet;

use super::{
    Action, Agent, AgentState, GO_TIMEOUT_NS, OVERTIME_NS, Pending, START_AHEAD_MAX_NS, StopReason,
};
use crate::TaskId;
use crate::protocol::message::{
    AddressRange, ArmTask, FailCode, PrepareRound, StartRound, TaskEnd,
};

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
    pub number: u32,
    /// Agent's clock minus coordinator's clock.
    offset_ns: i64,
    pub tasks: Vec<RunTask>,
}

/// A task in a round.
#[derive(Debug)]
pub(super) struct RunTask {
    pub spec: ArmTask,
    pub planned_ns: Option<u64>,
    /// When it is ended.
    pub deadline_ns: u64,
    pub is_started: bool,
    pub is_over: bool,
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
        let open = self.tasks.iter().filter(|task| !task.is_over);
        open.map(|task| task.deadline_ns).min()
    }
}

impl Agent {
    pub(super) fn arm(
        &mut self,
        now_ns: u64,
        seq: u64,
        arm: PrepareRound,
    ) -> Result<(), (FailCode, String)> {
        self.check_arm(&arm)?;
        let number = arm.round;
        self.last_round = number;
        self.pending = Some(Pending::Arm { seq });
        self.actions.push_back(Action::Admit(arm.admit));

        let deadline_ns = now_ns.saturating_add(GO_TIMEOUT_NS);
        let mut tasks = Vec::new();
        for spec in arm.tasks {
            self.actions.push_back(Action::StartWorker {
                round: number,
                task: Box::new(spec.clone()),
            });
            tasks.push(RunTask {
                spec,
                planned_ns: None,
                deadline_ns,
                is_started: false,
                is_over: false,
            });
        }

        self.state = AgentState::Armed;
        self.round = Some(Round {
            number,
            offset_ns: arm.offset_ns,
            tasks,
        });
        Ok(())
    }

    fn check_arm(&self, arm: &PrepareRound) -> Result<(), (FailCode, String)> {
        // Rounds ascend: an ARM that was delayed on a bus names an earlier round.
        if arm.round <= self.last_round {
            let text = format!("round {} is not after {}", arm.round, self.last_round);
            return Err((FailCode::Late, text));
        }
        if arm.tasks.is_empty() {
            return Err((FailCode::Task, "no tasks".to_owned()));
        }
        let Some(plan) = &self.plan else {
            return Err((FailCode::State, "no plan".to_owned()));
        };

        // Results are matched by task, so one task may appear once.
        let mut ids = HashSet::new();
        for task in &arm.tasks {
            if !ids.insert(task.task) {
                return Err((FailCode::Task, format!("task {}: twice", task.task)));
            }
            plan.check(task, &self.partners)
                .map_err(|fault| (FailCode::Task, fault.to_string()))?;
        }

        // A server admits partners of the run alone, whatever the coordinator requests.
        for address in &arm.admit {
            if !AddressRange::any_contains(&self.partners, *address) {
                let text = format!("admit {address}: no partner of the run");
                return Err((FailCode::Task, text));
            }
        }

        Ok(())
    }

    pub(super) fn go(&mut self, now_ns: u64, go: &StartRound) -> Result<(), (FailCode, String)> {
        let Some(round) = &mut self.round else {
            return Ok(());
        };
        let late = |text: String| Err((FailCode::Late, text));
        if go.round != round.number {
            return late(format!("round {}, but {} is armed", go.round, round.number));
        }

        // The sum of the start and the offset may exceed 64 bits: the coordinator is not trusted.
        let Some(at_ns) = go.t0_ns.checked_add_signed(round.offset_ns) else {
            return late("the start is no time".to_owned());
        };
        // A start in the past would put the tests of this host out of step with the others.
        if at_ns <= now_ns {
            return late(format!("the start was {} ns ago", now_ns - at_ns));
        }
        let ahead_ns = at_ns - now_ns;
        if ahead_ns > START_AHEAD_MAX_NS {
            return late(format!(
                "the start is {ahead_ns} ns ahead, at most {START_AHEAD_MAX_NS} are allowed"
            ));
        }

        for task in &mut round.tasks {
            let id = task.spec.task;
            let at_ns = at_ns.saturating_add(task.spec.delay_ns());
            task.is_over = go.skip.contains(&id);
            task.planned_ns = Some(at_ns);
            // The worker ends by itself at its time; the deadline is for one that does not.
            let longest_ns = task.spec.duration_ns().saturating_add(OVERTIME_NS);
            task.deadline_ns = at_ns.saturating_add(longest_ns);

            if task.is_over {
                self.actions.push_back(Action::StopTask {
                    task: id,
                    reason: StopReason::Skipped,
                });
            } else if task.spec.is_client() {
                // A server starts when the last stream of its client is open.
                self.actions.push_back(Action::BeginAt { task: id, at_ns });
            }
        }

        // All tasks are skipped: nothing runs, and no result ends the round.
        if round.is_over() {
            self.become_idle(AgentState::Planned);
        } else {
            self.state = AgentState::Running;
        }

        Ok(())
    }
}
