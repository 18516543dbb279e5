//! Rounds of a plan over the coordinator.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use linerate_carrier::Carrier;
use linerate_fleet::coordinator::{Action, End, Input, RoundPlan, RoundTask};
use linerate_fleet::inventory::Host;
use linerate_fleet::message::{ArmTask, Role};
use linerate_lab::fleet::schedule::task_id;
use linerate_lab::fleet::{FleetProgress, RoundError, RoundRunner};
use linerate_model::fleet::{Cell, HostId, PlanHash, Round, Task};
use linerate_model::{Direction, Transport};
use linerate_report::fleet::{FleetLive, progress_line};
use linerate_sys::clock::monotonic_ns;

use super::TestOptions;
use super::cell::{Lengths, Received, TaskReport, cells};
use crate::Progress;
use crate::fleet::control::{Control, Ended};
use crate::fleet::prepare::{Member, Prepared};
use crate::progress::style;

/// Runs rounds at the hosts.
pub(super) struct Rounds<'a, C> {
    pub(super) control: Control<'a, C>,
    pub(super) prepared: Prepared,
    pub(super) hosts: &'a [Host],
    pub(super) plan: PlanHash,
    pub(super) options: TestOptions,
    pub(super) progress: &'a mut Progress,
    pub(super) cells_planned: usize,
    pub(super) cells_done: usize,
    pub(super) number: u32,
    /// Hosts that did not confirm the end of a cancelled run.
    pub(super) unconfirmed: Vec<usize>,
}

impl<C: Carrier> RoundRunner for Rounds<'_, C> {
    fn run(&mut self, round: &Round) -> Result<Vec<Cell>, RoundError> {
        let ids: Vec<_> = round.tasks.iter().map(|task| (task, task_id(self.plan, task))).collect();
        let tasks: Vec<RoundTask> = ids.iter().filter_map(|(task, id)| self.round_task(task, *id)).collect();
        self.number += 1;
        let plan = RoundPlan { number: self.number, tasks, data_rtt_ns: self.prepared.data_rtt_ns };
        let is_last = |action: &Action| matches!(action, Action::RoundDone { .. });
        let actions = match self.control.step(Input::Round(Box::new(plan)), is_last) {
            Ok(actions) => actions,
            Err(Ended::Cancelled(unconfirmed)) => {
                self.unconfirmed = unconfirmed;
                return Err(RoundError::Cancelled);
            }
            Err(Ended::Failed(text)) => return Err(RoundError::Failed(text)),
        };
        let tasks: Vec<_> = ids.iter().map(|(task, id)| ((*task).clone(), *id, self.nominal_bps(task))).collect();
        self.cells_done += tasks.len();
        Ok(cells(round.mode, &tasks, self.reports(actions), self.lengths()))
    }

    fn alive(&self) -> BTreeSet<HostId> {
        let is_alive = |(index, _): &(usize, &HostId)| self.control.coordinator.is_planned(*index);
        self.prepared.ids(self.hosts).filter(is_alive).map(|(_, id)| id.clone()).collect()
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(monotonic_ns())
    }

    fn progress(&mut self, progress: &FleetProgress) {
        let live = FleetLive {
            progress,
            rates: &[],
            cells_done: self.cells_done,
            cells_planned: self.cells_planned,
            suspects: 0,
        };
        self.progress.update(progress_line(&live, style()).trim_end());
    }
}

impl<C: Carrier> Rounds<'_, C> {
    pub(super) fn lengths(&self) -> Lengths {
        Lengths { omit_ns: self.options.omit_ns(), test_ns: self.options.time_ns() }
    }

    /// The source is the client.
    pub(super) fn round_task(&self, task: &Task, id: linerate_fleet::TaskId) -> Option<RoundTask> {
        let (source, from) = self.member(&task.source)?;
        let (sink, to) = self.member(&task.sink)?;
        let spec = |role, peer| ArmTask {
            task: id,
            role,
            peer,
            port: to.port,
            path: task.path.clone(),
            transport: Transport::Tcp,
            direction: Direction::Forward,
            streams: self.options.streams,
            time_ms: self.options.time_ms(),
            omit_ms: self.options.omit_ms(),
            block_bytes: None,
            rate_bps: None,
            congestion: None,
            dscp: 0,
        };
        Some(RoundTask {
            task: id,
            client: End { host: source, spec: spec(Role::Client, to.address) },
            server: Some(End { host: sink, spec: spec(Role::Server, from.address) }),
            nominal_bps: from.link_bps.into_iter().chain(to.link_bps).min(),
        })
    }

    fn member(&self, id: &HostId) -> Option<(usize, &Member)> {
        let index = self.hosts.iter().position(|host| host.id == *id)?;
        Some((index, self.prepared.members.get(&index)?))
    }

    /// The smaller of the highest rates that both links support; `None` where one is not known.
    pub(super) fn nominal_bps(&self, task: &Task) -> Option<f64> {
        let (_, from) = self.member(&task.source)?;
        let (_, to) = self.member(&task.sink)?;
        Some(from.link_bps?.min(to.link_bps?) as f64)
    }

    fn reports(&self, actions: Vec<Action>) -> BTreeMap<linerate_fleet::TaskId, TaskReport> {
        let now_ns = monotonic_ns();
        let mut reports: BTreeMap<_, TaskReport> = BTreeMap::new();
        for action in actions {
            match action {
                Action::Result(result) => {
                    let estimate = self.control.coordinator.clock(result.host, now_ns);
                    let offset_ns = estimate.map_or(0, |estimate| estimate.offset_ns);
                    reports.entry(result.task).or_default().take(Received { result, offset_ns });
                }
                Action::NotRun { task, reason } => reports.entry(task).or_default().not_run = Some(reason),
                _ => {}
            }
        }
        reports
    }
}
