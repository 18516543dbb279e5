//! Time and data of a plan, before it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use linerate_model::fleet::{HostId, Task};

use super::fleet_plan::FleetPlan;
use super::racks::rounds_min;
use super::{ladder, rounds};

/// Time and data of the known tasks of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Tests.
    pub cells: usize,
    /// Rounds.
    pub rounds: usize,
    /// No schedule has fewer rounds.
    pub rounds_min: usize,
    /// Time of all rounds.
    pub time: Duration,
}

/// Estimates the tasks without a result, tests that depend on results not counted.
#[must_use]
pub fn estimate(plan: &FleetPlan, open: &[Task], alive: &BTreeSet<HostId>) -> Estimate {
    let caps = plan.caps(plan.mode);
    let (planned, rounds_min) = match plan.topology.hub() {
        Some(_) => {
            let open: BTreeSet<&Task> = open.iter().collect();
            let finished = plan
                .tasks()
                .into_iter()
                .filter(|task| !open.contains(task))
                .collect();
            let planned = ladder::rounds(
                &ladder::among(ladder::steps(plan, &[]), alive, &finished),
                &finished,
            );
            let rounds = planned.len();

            (planned, rounds)
        }
        None => {
            let runnable = open
                .iter()
                .filter(|task| alive.contains(&task.source) && alive.contains(&task.sink));
            let mut slots: BTreeMap<(&str, &str, u32), Vec<Task>> = BTreeMap::new();

            for task in runnable {
                slots
                    .entry((&task.path, &task.variant, task.repetition))
                    .or_default()
                    .push(task.clone());
            }

            let rounds_min = slots.values().map(|tasks| rounds_min(tasks, &caps)).sum();
            (rounds(open, alive, &caps, plan.seed), rounds_min)
        }
    };
    let time = plan
        .round_time
        .saturating_mul(u32::try_from(planned.len()).unwrap_or(u32::MAX));
    let cells = planned.iter().map(|round| round.tasks.len()).sum();

    Estimate {
        cells,
        rounds: planned.len(),
        rounds_min,
        time,
    }
}
