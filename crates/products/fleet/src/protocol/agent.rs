//! One agent: HELLO, plan, rounds, end.
//!
//! The owner feeds lines of the coordinator, what its workers do, and the time, and carries out the
//! actions in the order in which they are polled. It starts and ends processes, probes partners and
//! reads clocks.
//!
//! | state | commands that fit |
//! |---|---|
//! | idle | PLAN, CANCEL |
//! | planned | PREFLIGHT, ARM, CANCEL |
//! | armed | GO, CANCEL |
//! | running | CANCEL |
//! | done | CANCEL |
//!
//! SOLICIT fits all states, CLOCK and BEAT all states of a run. A command that waits for its answer
//! makes all others but CANCEL unfit.

mod command;
mod outcome;
mod round;
mod stop;

use std::collections::VecDeque;
use std::net::IpAddr;

use linerate_model::record::RunId;

use crate::protocol::lease::Lease;
use crate::protocol::message::{
    AddressRange, AgentMessage, ArmTask, Envelope, Hello, PREAMBLE, Plan, Preflight, Preflighted,
    encode,
};
use crate::{MS_NS, SECOND_NS, TaskId};
use command::Commands;
pub use round::Finish;
use round::Round;

/// Longest wait of an agent on a byte stream for its PLAN.
pub const PLAN_TIMEOUT_NS: u64 = 10 * SECOND_NS;
/// Longest wait for [`Input::Stopped`]; DONE is due within 2 s.
pub const STOP_TIMEOUT_NS: u64 = 1_500 * MS_NS;
/// Longest wait for GO after ARM.
pub const GO_TIMEOUT_NS: u64 = 30 * SECOND_NS;
/// The start is at most this far ahead.
pub const START_AHEAD_MAX_NS: u64 = 10 * SECOND_NS;
/// Longest time of a task beyond its own.
pub const OVERTIME_NS: u64 = 2 * SECOND_NS;

/// Connection of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// A byte stream that one coordinator opened: the agent leaves at its end.
    Stream,
    /// A message bus: the agent stays for further runs.
    Bus,
}

/// Actions and measurements of the owner.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Answer to [`Action::Describe`].
    Hello(Box<Hello>),
    /// Answer to [`Action::Prepare`]: ports of the servers, in the order of the plan's addresses.
    Planned {
        /// One port per address.
        ports: Vec<u16>,
    },
    /// Answer to [`Action::Prepare`]: the plan cannot be carried out here.
    PlanRefused {
        /// Explanation.
        text: String,
    },
    /// Answer to [`Action::Probe`].
    Preflighted(Box<Preflighted>),
    /// Answer to [`Action::ReadClock`].
    Clock {
        /// That of the action.
        c1_ns: u64,
        /// That of the action.
        a2_ns: u64,
        /// Now.
        a3_ns: u64,
    },
    /// All workers of the round are ready.
    Armed,
    /// A worker could not be started.
    ArmFailed {
        /// Explanation.
        text: String,
    },

    /// A worker sent its first data.
    Started {
        /// The task.
        task: TaskId,
        /// When.
        at_ns: u64,
    },
    /// A worker ended.
    Finished(Box<Finish>),
    /// Answer to [`Action::Stop`]: all of it has ended.
    Stopped(Option<u32>),
}

/// Actions that the owner carries out.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Send this line; the end of the line is the carrier's.
    Send(String),
    /// Read what HELLO contains: [`Input::Hello`].
    Describe,
    /// Check the addresses and choose the ports: [`Input::Planned`] or [`Input::PlanRefused`].
    Prepare(Box<Plan>),
    /// Probe the partners and collect facts: [`Input::Preflighted`].
    Probe(Box<Preflight>),
    /// Read the clock: [`Input::Clock`].
    ReadClock {
        /// Coordinator's clock when it sent CLOCK.
        c1_ns: u64,
        /// Agent's clock when CLOCK arrived.
        a2_ns: u64,
    },
    /// Servers admit these addresses from now on, and no others.
    Admit(Vec<IpAddr>),
    /// Start the worker of a task; after all of them [`Input::Armed`] or [`Input::ArmFailed`].
    StartWorker {
        /// Number of the round.
        round: u32,
        /// The task, within the bounds of the plan.
        task: Box<ArmTask>,
    },
    /// The worker's data begins at this time.
    BeginAt {
        /// The task.
        task: TaskId,
        /// Start.
        at_ns: u64,
    },
    /// End the worker of a task and its process group.
    StopTask {
        /// The task.
        task: TaskId,
        /// Why.
        reason: StopReason,
    },
    /// End all workers of the round, or without one all workers and listeners of the run:
    /// [`Input::Stopped`].
    Stop {
        /// Number of the round.
        round: Option<u32>,
        /// Why.
        reason: StopReason,
    },
    /// The agent has ended; always the last action. Sent lines should reach the coordinator before.
    Leave(LeaveReason),
}

/// Why something ends before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The coordinator cancelled it.
    Cancel,
    /// The coordinator was silent.
    Lease,
    /// It took too long.
    Deadline,
    /// The stream of the coordinator ended.
    Lost,
    /// Another end of the task is not ready.
    Skipped,
    /// Another worker of the round did not start.
    Failed,
}

impl StopReason {
    /// The word in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Lease => "lease",
            Self::Deadline => "deadline",
            Self::Lost => "lost",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
        }
    }
}

/// Why an agent leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaveReason {
    /// No PLAN arrived in time.
    NoPlan,
    /// The run ended.
    RunEnded(StopReason),
}

/// A command whose answer is the owner's.
#[derive(Debug)]
enum Pending {
    Plan { seq: u64, plan: Box<Plan> },
    Preflight { seq: u64 },
    Arm { seq: u64 },
    Stop(Stop),
}

/// The end of a round or run.
#[derive(Debug)]
struct Stop {
    /// The CANCEL that is answered.
    seq: Option<u64>,
    /// The round; `None` for the run.
    round: Option<u32>,
    reason: StopReason,
    until_ns: u64,
}

/// State of an agent.
#[derive(Debug, Clone, Copy, PartialEq)]
enum AgentState {
    /// No plan.
    Idle,
    /// A plan and no tasks.
    Planned,
    /// Workers are prepared.
    Armed,
    /// Tasks run.
    Running,
    /// The run has ended.
    Done,
}

/// An agent. Performs no I/O and reads no clock.
#[derive(Debug)]
pub struct Agent {
    service: Service,
    state: AgentState,
    /// Its tasks, from ARM to their end.
    round: Option<Round>,
    is_closed: bool,
    pending: Option<Pending>,
    run: Option<RunId>,
    /// Highest epoch of a command that was accepted.
    epoch: u64,
    plan: Option<Box<Plan>>,
    /// Addresses of the partners, from the last PREFLIGHT.
    partners: Vec<AddressRange>,
    lease: Option<Lease>,
    commands: Commands,
    /// Number of the last message of this end.
    seq: u64,
    /// Highest round of the run.
    last_round: u32,
    /// The last round, while its processes have not confirmed their end.
    unconfirmed_round: Option<u32>,
    next_beat_ns: u64,
    plan_until_ns: Option<u64>,
    /// Lines of this run that are no message.
    faults: u32,
    is_lost: bool,
    actions: VecDeque<Action>,
}

/// Period of BEAT before a plan sets one.
const BEAT_DEFAULT_MS: u64 = 1000;

impl Agent {
    /// An agent whose control path is open. Its first actions send the preamble and HELLO.
    pub fn new(now_ns: u64, service: Service, hello: Hello) -> Self {
        let mut agent = Self {
            service,
            state: AgentState::Idle,
            round: None,
            is_closed: false,
            pending: None,
            run: None,
            epoch: 0,
            plan: None,
            partners: Vec::new(),
            lease: None,
            commands: Commands::default(),
            seq: 0,
            last_round: 0,
            unconfirmed_round: None,
            next_beat_ns: now_ns.saturating_add(BEAT_DEFAULT_MS * MS_NS),
            // An agent on a bus waits for plans for as long as the service runs.
            plan_until_ns: (service == Service::Stream)
                .then(|| now_ns.saturating_add(PLAN_TIMEOUT_NS)),
            faults: 0,
            is_lost: false,
            actions: VecDeque::new(),
        };
        if service == Service::Stream {
            // A login shell may print first: the coordinator skips everything before this line.
            agent.actions.push_back(Action::Send(PREAMBLE.to_owned()));
        }

        agent.send(AgentMessage::Hello(Box::new(hello)));
        agent
    }

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The run of the plan that was accepted last.
    pub fn run(&self) -> Option<RunId> {
        self.run
    }

    /// Another state, without tasks.
    fn become_idle(&mut self, state: AgentState) {
        self.state = state;
        self.round = None;
    }

    /// Sends a message and returns its line. A message beyond the bounds is not sent.
    fn send(&mut self, message: AgentMessage) -> Option<String> {
        let seq = self.seq.saturating_add(1);
        let line = encode(&Envelope {
            run: self.run,
            epoch: self.epoch,
            seq,
            message,
        })
        .ok()?;

        self.seq = seq;
        // After the end of the stream nothing reaches the coordinator; numbers continue
        // nevertheless.
        if !self.is_lost {
            self.actions.push_back(Action::Send(line.clone()));
        }

        Some(line)
    }

    fn leave(&mut self, reason: LeaveReason) {
        self.become_idle(AgentState::Done);
        self.is_closed = true;
        self.pending = None;
        self.actions.push_back(Action::Leave(reason));
    }
}
