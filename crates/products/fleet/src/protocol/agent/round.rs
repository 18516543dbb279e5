//! A round: ARM, GO, and the deadlines of its tasks.

use std::collections::HashSet;

use super::tasks::{Round, RunTask};
use super::{
    Action, Agent, AgentState, GO_TIMEOUT_NS, OVERTIME_NS, Pending, START_AHEAD_MAX_NS, StopReason,
};
use crate::protocol::message::{AddressRange, FailCode, PrepareRound, StartRound};

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
        self.state = AgentState::Armed;
        self.round = Some(Round {
            number,
            offset_ns,
            tasks,
        });

        Ok(())
    }

    fn check_arm(&self, arm: &PrepareRound) -> Result<(), (FailCode, String)> {
        // Rounds ascend: an ARM that was delayed on a bus names an earlier round.
        if arm.round <= self.last_round {
            return Err((
                FailCode::Late,
                format!("round {} is not after {}", arm.round, self.last_round),
            ));
        }
        if arm.tasks.is_empty() {
            return Err((FailCode::Task, "no tasks".to_owned()));
        }

        // Results are matched by task, so one task may appear once.
        let mut ids = HashSet::new();
        let Some(plan) = &self.plan else {
            return Err((FailCode::State, "no plan".to_owned()));
        };

        for task in &arm.tasks {
            if !ids.insert(task.task) {
                return Err((FailCode::Task, format!("task {}: twice", task.task)));
            }
            plan.check(task, &self.partners)
                .map_err(|fault| (FailCode::Task, fault.to_string()))?;
        }

        // A server admits partners of the run alone, whatever the coordinator requests.
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
        let Some(round) = &mut self.round else {
            return Ok(());
        };
        if go.round != round.number {
            return Err((
                FailCode::Late,
                format!("round {}, but {} is armed", go.round, round.number),
            ));
        }

        let late = |text: String| Err((FailCode::Late, text));
        // The sum of the start and the offset may exceed 64 bits: the coordinator is not trusted.
        let Some(at_ns) = round.local_ns(go.t0_ns) else {
            return late("the start is no time".to_owned());
        };
        // A start in the past would put the tests of this host out of step with the others.
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
                // The worker ends by itself at its time; the deadline is for one that does not.
                .saturating_add(OVERTIME_NS);

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
