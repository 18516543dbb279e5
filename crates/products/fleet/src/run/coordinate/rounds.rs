//! Rounds of a plan over the coordinator.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::conclude::{FleetProgress, RoundError, RoundRunner};
use crate::plan::task_id;
use crate::protocol::coordinator::{End, Input, RoundPlan, RoundTask};
use crate::protocol::message::{ArmTask, Role};
use crate::report::progress_line;
use linerate_doctor::separating;
use linerate_model::fleet::{Cell, FleetMode, HostId, PlanHash, Round, Task};
use linerate_model::snapshot::Snapshot;
use linerate_sys::clock::monotonic_ns;

use super::cell::{PlannedCell, cells};
use super::history_record::KeptRun;
use super::reports::Reports;
use crate::run::connect::Connected;
use crate::run::control::Ended;
use crate::run::members::{Member, TestEnd};
use crate::spec::TestOptions;
use linerate_document::progress::Progress;
use linerate_document::progress::style;

/// Source of facts that the user named.
const INVENTORY: &str = "inventory";

/// Runs rounds at the hosts.
pub(super) struct Rounds<'a> {
    pub connected: Connected<'a>,
    pub plan: PlanHash,
    pub test: TestOptions,
    pub progress: &'a mut Progress,
    pub cells_planned: usize,
    /// Tasks with a result or a reason; one that runs once more is among them when that has ended.
    pub cells_done: BTreeSet<crate::TaskId>,
    pub number: u32,
    /// Hosts that did not confirm the end of a cancelled run.
    pub unconfirmed: Vec<usize>,
    pub kept: &'a mut KeptRun,
}

impl RoundRunner for Rounds<'_> {
    fn run(&mut self, round: &Round) -> Result<Vec<Cell>, RoundError> {
        let ids: Vec<_> = round
            .tasks
            .iter()
            .map(|task| (task, task_id(self.plan, task)))
            .collect();
        // Only the levels of a ladder start one after another; other rounds start together.
        let stagger = if round.mode == FleetMode::Ladder {
            self.test.stagger
        } else {
            Duration::ZERO
        };
        let delays = (0..).map(|at| stagger.saturating_mul(at));
        let tasks = ids
            .iter()
            .zip(delays)
            .filter_map(|((task, id), delay)| self.round_task(task, *id, delay))
            .collect();

        self.number += 1;
        let plan = RoundPlan {
            number: self.number,
            tasks,
            data_rtt_ns: self.connected.prepared.data_rtt_ns,
        };

        let mut reports = Reports::default();
        let input = Input::Round(Box::new(plan));
        let ended = self
            .connected
            .control
            .step_each(input, |of, action| reports.take(of, action));
        ended.map_err(|ended| match ended {
            Ended::Cancelled(unconfirmed) => {
                self.unconfirmed = unconfirmed;
                RoundError::Cancelled
            }
            Ended::Failed(text) => RoundError::Failed(text),
        })?;

        let planned: Vec<_> = ids
            .iter()
            .map(|(task, id)| self.planned_cell(task, *id))
            .collect();
        Ok(cells(round.mode, &planned, reports.tasks, self.test))
    }

    fn keep(&mut self, cells: &[Cell]) {
        self.cells_done
            .extend(cells.iter().map(|cell| task_id(self.plan, &cell.task)));
        self.kept.add(cells);
    }

    fn alive(&self) -> BTreeSet<HostId> {
        self.connected.alive()
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(monotonic_ns())
    }

    fn progress(&mut self, progress: &FleetProgress) {
        let done = self.cells_done.len();
        let cells = (done, self.cells_planned.max(done + progress.cells_left));
        self.progress
            .update(progress_line(progress, cells, style()).trim_end());
    }

    fn link_bps(&self, host: &HostId) -> Option<f64> {
        self.member(host)?.1.link_bps()
    }

    fn separating(&self, fast: &[HostId], slow: &[HostId]) -> Vec<String> {
        let facts = |group: &[HostId]| {
            group
                .iter()
                .filter_map(|host| self.facts(host))
                .collect::<Vec<_>>()
        };
        separating(&facts(fast), &facts(slow))
    }
}

impl Rounds<'_> {
    /// The source is the client, or the sink of a server without an agent. The test starts `delay`
    /// after the round.
    pub(super) fn round_task(
        &self,
        task: &Task,
        id: crate::TaskId,
        delay: Duration,
    ) -> Option<RoundTask> {
        let is_reversed = self.is_reversed(task);
        let (client, server) = if is_reversed {
            (&task.sink, &task.source)
        } else {
            (&task.source, &task.sink)
        };
        let is_target = self.is_target(server);
        let (client, from) = self.end(client, &task.path)?;
        let (server, to) = self.end(server, &task.path)?;

        let spec = |role, peer| ArmTask {
            task: id,
            role,
            peer,
            // The client connects to the port of the server, so both ends have the same one.
            port: to.port,
            path: task.path.to_string(),
            is_reversed,
            streams: self.test.streams,
            time_ms: self.test.time_ms(),
            omit_ms: self.test.omit_ms(),
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            rate_bps: self.test.rate_bps,
            congestion: congestion(&task.variant),
        };
        Some(RoundTask {
            task: id,
            client: End {
                host: client,
                spec: spec(Role::Client, to.address),
            },
            server: (!is_target).then(|| End {
                host: server,
                spec: spec(Role::Server, from.address),
            }),
            // The slower link bounds the test, and one alone that is known is a bound as well.
            nominal_bps: from.link_bps.into_iter().chain(to.link_bps).min(),
        })
    }

    /// Cell that is awaited of a task.
    pub(super) fn planned_cell(&self, task: &Task, id: crate::TaskId) -> PlannedCell {
        let (nominal_bps, is_reversed) = (self.nominal_bps(task), self.is_reversed(task));
        PlannedCell {
            task: task.clone(),
            id,
            nominal_bps,
            is_reversed,
        }
    }

    /// The source is a server without an agent, which sends to its client.
    fn is_reversed(&self, task: &Task) -> bool {
        // A server without an agent starts no test, so its partner is the client.
        self.is_target(&task.source)
    }

    fn member(&self, id: &HostId) -> Option<(usize, &Member)> {
        self.connected.prepared.member(id)
    }

    fn is_target(&self, id: &HostId) -> bool {
        self.member(id).is_some_and(|(_, member)| member.is_target)
    }

    fn end(&self, id: &HostId, path: &str) -> Option<(usize, &TestEnd)> {
        let (index, member) = self.member(id)?;
        Some((index, member.ends.get(path)?))
    }

    /// Facts of a host with its rack and labels.
    fn facts(&self, id: &HostId) -> Option<Snapshot> {
        let (index, member) = self.member(id)?;
        let host = self.connected.prepared.host(index)?;
        let mut facts = member.facts.clone()?;
        facts.set_known("rack", host.rack.clone(), INVENTORY);

        for (name, value) in &host.labels {
            facts.set(format!("label.{name}"), value.clone(), INVENTORY);
        }

        Some(facts)
    }

    /// The smaller of the highest rates that both links support; `None` where one is not known.
    fn nominal_bps(&self, task: &Task) -> Option<f64> {
        let (_, from) = self.end(&task.source, &task.path)?;
        let (_, to) = self.end(&task.sink, &task.path)?;
        Some(from.link_bps?.min(to.link_bps?) as f64)
    }
}

/// The congestion control of a variant: `bbr` of `cc=bbr,senders=4`.
fn congestion(variant: &str) -> Option<String> {
    variant
        .split(',')
        .find_map(|part| part.strip_prefix("cc="))
        .map(str::to_owned)
}
