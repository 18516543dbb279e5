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
use linerate_document::progress::{Progress, style};

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
        self.number += 1;
        // Only the levels of a ladder start one after another; other rounds start together.
        let mut stagger = Duration::ZERO;
        if round.mode == FleetMode::Ladder {
            stagger = self.test.stagger;
        }

        let mut tasks = Vec::new();
        let mut planned = Vec::new();
        for (at, task) in (0..).zip(&round.tasks) {
            let id = task_id(self.plan, task);
            tasks.extend(self.round_task(task, id, stagger.saturating_mul(at)));
            planned.push(self.planned_cell(task, id));
        }
        let input = Input::Round(Box::new(RoundPlan {
            number: self.number,
            tasks,
            data_rtt_ns: self.connected.prepared.data_rtt_ns,
        }));

        let mut reports = Reports::default();
        let control = &mut self.connected.control;
        match control.step_each(input, |of, action| reports.take(of, action)) {
            Ok(()) => Ok(cells(round.mode, &planned, reports.tasks, self.test)),
            Err(Ended::Cancelled(unconfirmed)) => {
                self.unconfirmed = unconfirmed;
                Err(RoundError::Cancelled)
            }
            Err(Ended::Failed(text)) => Err(RoundError::Failed(text)),
        }
    }

    fn keep(&mut self, cells: &[Cell]) {
        for cell in cells {
            self.cells_done.insert(task_id(self.plan, &cell.task));
        }
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
        let line = progress_line(progress, cells, style());
        self.progress.update(line.trim_end());
    }

    fn link_bps(&self, host: &HostId) -> Option<f64> {
        self.member(host)?.1.link_bps()
    }

    fn separating(&self, fast: &[HostId], slow: &[HostId]) -> Vec<String> {
        let facts = |group: &[HostId]| -> Vec<Snapshot> {
            group.iter().filter_map(|host| self.facts(host)).collect()
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
        let mut client = &task.source;
        let mut server = &task.sink;
        if is_reversed {
            (client, server) = (server, client);
        }
        let is_target = self.is_target(server);
        let (client, from) = self.end(client, &task.path)?;
        let (server, to) = self.end(server, &task.path)?;

        let end = |host, role, peer| End {
            host,
            spec: ArmTask {
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
            },
        };
        Some(RoundTask {
            task: id,
            client: end(client, Role::Client, to.address),
            server: (!is_target).then(|| end(server, Role::Server, from.address)),
            // The slower link bounds the test, and one alone that is known is a bound as well.
            nominal_bps: from.link_bps.into_iter().chain(to.link_bps).min(),
        })
    }

    /// Cell that is awaited of a task.
    pub(super) fn planned_cell(&self, task: &Task, id: crate::TaskId) -> PlannedCell {
        PlannedCell {
            task: task.clone(),
            id,
            nominal_bps: self.nominal_bps(task),
            is_reversed: self.is_reversed(task),
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
    let mut parts = variant.split(',');
    let name = parts.find_map(|part| part.strip_prefix("cc="));
    name.map(str::to_owned)
}
