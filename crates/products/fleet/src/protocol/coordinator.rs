//! The coordinator of N hosts: HELLO, plan, preflight, clocks, rounds, end.
//!
//! The owner feeds lines of the agents, lost connections, its decisions and the time, and carries
//! out the actions in the order in which they are polled. It decides what is planned and tested.
//! Hosts are numbers: places in a list of the owner.
//!
//! Each step waits for all hosts until its deadline. A host that misses it delays the others by no
//! more than that: it is dropped, or its tasks come back as [`Action::NotRun`]. Hosts receive their
//! plans as they arrive, because an agent does not wait for the others: a plan with its lease is
//! what keeps it.

mod clocks;
mod dispatch;
mod host;
mod not_run;
mod reassembly;
mod round;
mod round_intake;
mod step;

use std::collections::{BTreeSet, HashMap, VecDeque};

use linerate_model::record::RunId;
use thiserror::Error;

use crate::protocol::clock::{Estimate, LEAD_MIN_NS};
use crate::protocol::message::{
    ArmTask, CoordinatorMessage, Envelope, Fail, Hello, Plan, Preflight, Preflighted, Role,
    TaskEnd, encode,
};
use crate::{SECOND_NS, TaskId};
use host::{Host, HostState};
pub use not_run::{DropReason, NotRun};
pub use reassembly::{KeptResult, kept_results};
use round::Round;
pub use round_intake::is_plausible;
use step::Barrier;
pub use step::Step;

/// Longest wait for PLANNED.
pub const PLANNED_TIMEOUT_NS: u64 = 2 * SECOND_NS;
/// Longest wait for PREFLIGHTED.
pub const PREFLIGHTED_TIMEOUT_NS: u64 = 10 * SECOND_NS;
/// Longest wait for one CLOCKED.
pub const CLOCKED_TIMEOUT_NS: u64 = SECOND_NS;
/// Longest wait for ARMED.
pub const ARMED_TIMEOUT_NS: u64 = 2 * SECOND_NS;
/// Longest wait for DONE.
pub const DONE_TIMEOUT_NS: u64 = 2 * SECOND_NS;
/// Longest wait for a RESULT after the hard deadline of its task.
pub const RESULT_TIMEOUT_NS: u64 = 2 * SECOND_NS;

/// Settings of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The run.
    pub run: RunId,
    /// Term of this coordinator; 1 on ssh.
    pub epoch: u64,
    /// Longest wait for HELLO.
    pub hello_timeout_ns: u64,
    /// Silence of a host after which it is dropped.
    pub silence_max_ns: u64,
    /// Period of BEAT, which renews the leases.
    pub beat_ns: u64,
    /// HELLO is solicited: agents are there before the coordinator, as on a bus.
    pub is_solicited: bool,
    /// Longest distance of the starts; CLOCK is repeated when a clock is uncertain by more than a
    /// quarter.
    pub clock_budget_ns: u64,
}

/// Decisions of the owner.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Plan of a host, from its [`Action::Greeted`] on.
    Plan {
        /// The host.
        host: usize,
        /// Its plan.
        plan: Box<Plan>,
    },
    /// All hosts that take part have their plan, after [`Step::Hello`]. Ends with [`Step::Plan`].
    PlansSent,
    /// Examinations of the hosts. Ends with [`Step::Preflight`].
    Preflight(Vec<(usize, Preflight)>),
    /// Exchanges of clock readings with every host. Ends with [`Step::Clock`].
    Clocks {
        /// Exchanges per host.
        exchanges: u32,
    },
    /// A round of tasks, after [`Step::Clock`]: starts are in the clocks of the hosts. Ends with
    /// [`Action::RoundDone`].
    Round(Box<RoundPlan>),
    /// The run ends, at any time. Ends with [`Action::Finished`].
    Cancel,
}

/// Actions that the owner carries out.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Send this line to each of the hosts; the end of the line is the carrier's.
    Send {
        /// The hosts.
        hosts: Vec<usize>,
        /// The line.
        line: String,
    },
    /// The host takes part no longer: close its connection.
    Dropped {
        /// The host.
        host: usize,
        /// Why.
        reason: DropReason,
    },
    /// A host has sent HELLO and waits for its plan.
    Greeted {
        /// The host.
        host: usize,
    },
    /// A step has ended: all hosts that are not dropped have answered.
    StepDone(Step),
    /// Findings of a host before the first round.
    Preflighted {
        /// The host.
        host: usize,
        /// Its report.
        report: Box<Preflighted>,
    },
    /// A host did not execute a message.
    Failed {
        /// The host.
        host: usize,
        /// Its answer.
        fail: Fail,
    },

    /// A task ended. That of the client settles the task.
    Result(Box<HostResult>),
    /// A task of the round has no result.
    NotRun {
        /// The task.
        task: TaskId,
        /// Why.
        reason: NotRun,
    },
    /// All tasks of the round are settled.
    RoundDone {
        /// Number of the round.
        round: u32,
        /// Hosts that did not confirm their end of the round.
        unconfirmed: Vec<usize>,
    },
    /// The run has ended; always the last action.
    Finished {
        /// Hosts that did not confirm their end.
        unconfirmed: Vec<usize>,
    },
}

/// Tasks that run at the same time.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundPlan {
    /// Number of the round, ascending.
    pub number: u32,
    /// The tasks.
    pub tasks: Vec<RoundTask>,
    /// Longest round trip of the tested paths.
    pub data_rtt_ns: u64,
}

/// A task and its ends.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundTask {
    /// The task.
    pub task: TaskId,
    /// The end whose result counts.
    pub client: End,
    /// The other end; absent for a server that is no host of the fleet.
    pub server: Option<End>,
    /// Nominal rate of the path per direction.
    pub nominal_bps: Option<u64>,
}

impl RoundTask {
    /// Client, and server where it is a host.
    fn ends(&self) -> impl Iterator<Item = &End> {
        std::iter::once(&self.client).chain(&self.server)
    }
}

/// An end of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct End {
    /// The host.
    pub host: usize,
    /// The task as this host receives it.
    pub spec: ArmTask,
}

/// A task as one of its ends reports it.
#[derive(Debug, Clone, PartialEq)]
pub struct HostResult {
    /// The host.
    pub host: usize,
    /// The task.
    pub task: TaskId,
    /// Part of the host in it.
    pub role: Role,
    /// End of the task.
    pub end: TaskEnd,
    /// Record of the test, as the host wrote it; empty without one.
    pub record: String,
    /// The task was started, and the amount is possible within its time and at the nominal rate.
    pub is_plausible: bool,
}

/// The present step is not over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the coordinator is not ready for this input")]
pub struct Busy;

/// The coordinator of a run. Performs no I/O and reads no clock.
#[derive(Debug)]
pub struct Coordinator {
    settings: Settings,
    hosts: Vec<Host>,
    /// Number of the last message.
    seq: u64,
    barrier: Option<Barrier>,
    round: Option<Round>,
    /// Waits for hosts that have not confirmed the end of an earlier one.
    next_round: Option<RoundPlan>,
    /// Hosts whose exchanges of clock readings have not begun.
    clocks_due: VecDeque<usize>,
    /// Ends of all tasks of the run.
    known: HashMap<TaskId, (usize, Option<usize>)>,
    /// Hosts whose end of the run is not awaited any longer, and was not confirmed.
    unconfirmed: BTreeSet<usize>,
    /// Shortest time between GO and a start: longer after a round whose GO was late.
    lead_min_ns: u64,
    next_beat_ns: u64,
    is_over: bool,
    actions: VecDeque<Action>,
}

impl Coordinator {
    /// A coordinator that waits for the HELLO of this number of hosts.
    pub fn new(now_ns: u64, settings: Settings, hosts: usize) -> Self {
        let deadline_ns = now_ns.saturating_add(settings.hello_timeout_ns);

        let mut coordinator = Self {
            settings,
            hosts: (0..hosts).map(|_| Host::new(now_ns)).collect(),
            seq: 0,
            barrier: None,
            round: None,
            next_round: None,
            clocks_due: VecDeque::new(),
            known: HashMap::new(),
            unconfirmed: BTreeSet::new(),
            lead_min_ns: LEAD_MIN_NS,
            next_beat_ns: now_ns.saturating_add(settings.beat_ns),
            is_over: false,
            actions: VecDeque::new(),
        };
        coordinator.open(Step::Hello, 0..hosts, deadline_ns);
        // Agents of a bus are there before the coordinator and send HELLO only on request.
        coordinator.solicit();
        coordinator
    }

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Takes a decision of the owner.
    ///
    /// # Errors
    /// When a step or a round is not over. [`Input::Plan`] is accepted in [`Step::Hello`],
    /// [`Input::Cancel`] at any time.
    pub fn handle_local(&mut self, now_ns: u64, input: Input) -> Result<(), Busy> {
        let step = self.barrier.as_ref().map(|barrier| barrier.step);
        let is_ready = match input {
            Input::Cancel => true,
            // An agent does not wait for the other hosts, so its plan may precede the end of HELLO.
            Input::Plan { .. } => matches!(step, None | Some(Step::Hello)) && self.round.is_none(),
            // Other inputs begin a step of their own, so none may be in progress.
            _ => step.is_none() && self.round.is_none(),
        };
        if self.is_over || !is_ready {
            return Err(Busy);
        }

        match input {
            Input::Plan { host, plan } => self.send_plan(host, plan),
            Input::PlansSent => self.await_plans(now_ns),
            Input::Preflight(preflights) => self.send_preflights(now_ns, preflights),
            Input::Clocks { exchanges } => self.begin_clocks(now_ns, exchanges),
            Input::Round(plan) => self.prepare_round(now_ns, *plan),
            Input::Cancel => self.cancel(now_ns),
        }

        self.advance(now_ns);
        Ok(())
    }

    /// HELLO of a host.
    pub fn hello(&self, host: usize) -> Option<&Hello> {
        self.hosts.get(host)?.hello.as_deref()
    }

    /// Ports of the servers of a host, in the order of the addresses in its plan.
    pub fn ports(&self, host: usize) -> Option<&[u16]> {
        self.hosts.get(host).map(|host| host.ports.as_slice())
    }

    /// Where the clock of a host is.
    pub fn clock(&self, host: usize, now_ns: u64) -> Option<Estimate> {
        self.hosts.get(host)?.clock.estimate(now_ns)
    }

    /// The host takes part and has a plan.
    pub fn is_planned(&self, host: usize) -> bool {
        let host = self.hosts.get(host);
        host.is_some_and(|host| host.presence == HostState::Planned)
    }

    /// Number of hosts.
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// Sends a message and returns its number. `None` when it has no receiver or it is beyond the
    /// bounds.
    fn send(&mut self, hosts: Vec<usize>, message: CoordinatorMessage) -> Option<u64> {
        let seq = self.seq.saturating_add(1);
        let envelope = Envelope {
            run: Some(self.settings.run),
            epoch: self.settings.epoch,
            seq,
            message,
        };
        // A message that is not sent takes no number, so the numbers on the wire have no gap.
        let line = encode(&envelope).ok().filter(|_| !hosts.is_empty())?;

        self.seq = seq;
        self.actions.push_back(Action::Send { hosts, line });
        Some(seq)
    }

    /// Hosts with this property.
    fn hosts_where(&self, property: impl Fn(&Host) -> bool) -> Vec<usize> {
        let hosts = self.hosts.iter().enumerate();
        hosts
            .filter(|(_, host)| property(host))
            .map(|(index, _)| index)
            .collect()
    }
}
