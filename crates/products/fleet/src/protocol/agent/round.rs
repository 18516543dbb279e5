//! A round: ARM, GO, and the deadlines of its tasks.

use std::collections::HashSet;

use super::outcome::PendingResult;
use super::{
    Action, Agent, GO_TIMEOUT_NS, OVERTIME_NS, Pending, START_AHEAD_MAX_NS, State, StopReason,
};
use crate::TaskId;
use crate::protocol::message::{AddressRange, ArmTask, FailCode, PrepareRound, StartRound};

/// Tasks of this host in a round.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) number: u32,
    /// Agent's clock minus coordinator's clock.
    offset_ns: i64,
    pub(super) tasks: Vec<RunTask>,
    /// The last result, which waits for the counters of the host.
    pub(super) held: Option<PendingResult>,
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
    fn local_ns(&self, t0_ns: u64) -> Option<u64> {
        t0_ns.checked_add_signed(self.offset_ns)
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
        let PrepareRound {
            round: number,
            offset_ns,
            tasks,
            admit,
            ..
        } = arm;
        self.last_round = number;
        self.pending = Some(Pending::Arm { seq });
        // Before the workers, whose load belongs to the round.
        self.actions.push_back(Action::ReadHost {
            round: number,
            is_after: false,
        });
        self.actions.push_back(Action::Admit(admit));

        let workers = tasks.iter().map(|task| Action::StartWorker {
            round: number,
            task: Box::new(task.clone()),
        });
        self.actions.extend(workers);
        let deadline_ns = now_ns.saturating_add(GO_TIMEOUT_NS);
        let armed = |spec| RunTask {
            spec,
            planned_ns: None,
            deadline_ns,
            is_started: false,
            is_over: false,
        };
        let tasks = tasks.into_iter().map(armed).collect();
        self.state = State::Armed(Round {
            number,
            offset_ns,
            tasks,
            held: None,
        });

        Ok(())
    }

    fn check_arm(&self, arm: &PrepareRound) -> Result<(), (FailCode, String)> {
        if arm.round <= self.last_round {
            return Err((
                FailCode::Late,
                format!("round {} is not after {}", arm.round, self.last_round),
            ));
        }
        if arm.tasks.is_empty() {
            return Err((FailCode::Task, "no tasks".to_owned()));
        }

        let mut ids = HashSet::new();
        let Some(plan) = &self.plan else {
            return Err((FailCode::State, "no plan".to_owned()));
        };

        for task in &arm.tasks {
            if !ids.insert(task.task) {
                return Err((FailCode::Task, format!("task {}: twice", task.task)));
            }
            task.validate_within(plan, &self.partners, self.policy)
                .map_err(|fault| (FailCode::Task, fault.to_string()))?;
        }

        match arm
            .admit
            .iter()
            .find(|address| !AddressRange::any_contains(&self.partners, **address))
        {
            Some(address) => Err((
                FailCode::Task,
                format!("admit {address}: no partner of the run"),
            )),
            None => Ok(()),
        }
    }

    pub(super) fn go(&mut self, now_ns: u64, go: &StartRound) -> Result<(), (FailCode, String)> {
        let State::Armed(round) = &mut self.state else {
            return Ok(());
        };
        if go.round != round.number {
            return Err((
                FailCode::Late,
                format!("round {}, but {} is armed", go.round, round.number),
            ));
        }

        let late = |text: String| Err((FailCode::Late, text));
        let Some(at_ns) = round.local_ns(go.t0_ns) else {
            return late("the start is no time".to_owned());
        };
        let Some(ahead_ns) = at_ns.checked_sub(now_ns).filter(|ahead_ns| *ahead_ns > 0) else {
            return late(format!(
                "the start was {} ns ago",
                now_ns.saturating_sub(at_ns)
            ));
        };
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
            task.deadline_ns = at_ns
                .saturating_add(task.spec.duration_ns())
                .saturating_add(OVERTIME_NS);

            if task.is_over {
                self.actions.push_back(Action::StopTask {
                    task: id,
                    reason: StopReason::Skipped,
                });
            } else if task.spec.is_client() {
                self.actions.push_back(Action::BeginAt { task: id, at_ns });
            }
        }

        self.state = match std::mem::replace(&mut self.state, State::Planned) {
            State::Armed(round) if !round.is_over() => State::Running(round),
            _ => State::Planned,
        };
        Ok(())
    }
}
