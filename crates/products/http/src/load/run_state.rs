//! Phases of a worker, the commands it receives and the messages it sends.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use linerate_sys::poll::EventFd;
use serde::{Deserialize, Serialize};

use super::recorder::Window;
use super::spec::LoadSpec;
use super::stats::{LoadStats, SecondPart};

/// Commands to a running worker.
#[derive(Debug)]
pub(crate) struct CommandSlot {
    begin_ns: AtomicU64,
    is_stopped: AtomicBool,
    pub waker: EventFd,
}

impl CommandSlot {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            begin_ns: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
            waker: EventFd::new().map_err(|error| error.source)?,
        })
    }

    pub(crate) fn send(&self, command: WorkerCommand) {
        match command {
            WorkerCommand::Begin { at_ns } => self.begin_ns.store(at_ns, Ordering::Release),
            WorkerCommand::Stop => self.is_stopped.store(true, Ordering::Release),
        }
        self.waker.signal();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    fn begin_ns(&self) -> Option<u64> {
        // 0 is the absence of a command: begin times lie ahead of the monotonic clock.
        Some(self.begin_ns.load(Ordering::Acquire)).filter(|begin_ns| *begin_ns > 0)
    }
}

/// Phases of a worker: ramp, wait for the others, load, drain.
#[derive(Debug)]
pub(crate) struct RunState {
    stage: Stage,
    commands: Arc<CommandSlot>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Connections are being opened.
    Ramp,
    /// They are open; the other workers are awaited.
    Waiting,
    /// Requests are sent.
    Load(Window),
    /// Outstanding responses are awaited.
    Drain {
        until_ns: u64,
    },
    Over,
}

/// Action of the worker at the end of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transition {
    /// Reports its open connections.
    Ramped,
    /// Begins to send.
    Begin(Window),
    /// Ends the load: sends what is due unless it was stopped, and calls [`RunState::drain`].
    End { is_stopped: bool },
}

impl RunState {
    pub(crate) fn new(commands: Arc<CommandSlot>) -> Self {
        Self {
            stage: Stage::Ramp,
            commands,
        }
    }

    /// Enters the next phase on a command or when its time has come. `is_ramped`: no connection is
    /// being opened; `in_flight`: requests without a response.
    pub(crate) fn step(
        &mut self,
        spec: &LoadSpec,
        now_ns: u64,
        is_ramped: bool,
        in_flight: u64,
    ) -> Option<Transition> {
        let is_stopped = self.commands.is_stopped();
        match self.stage {
            Stage::Ramp | Stage::Waiting if is_stopped => self.stage = Stage::Over,
            Stage::Ramp if is_ramped => {
                self.stage = Stage::Waiting;
                return Some(Transition::Ramped);
            }
            Stage::Waiting => {
                let begin_ns = self
                    .commands
                    .begin_ns()
                    .filter(|begin_ns| now_ns >= *begin_ns)?;
                let open_ns = begin_ns.saturating_add(spec.warmup_ns);
                let window = Window {
                    begin_ns,
                    open_ns,
                    end_ns: open_ns.saturating_add(spec.duration_ns),
                };
                self.stage = Stage::Load(window);
                return Some(Transition::Begin(window));
            }
            Stage::Load(window) if is_stopped || now_ns >= window.end_ns => {
                return Some(Transition::End { is_stopped });
            }
            Stage::Drain { until_ns } if now_ns >= until_ns || in_flight == 0 => {
                self.stage = Stage::Over;
            }
            Stage::Ramp | Stage::Load(_) | Stage::Drain { .. } | Stage::Over => {}
        }

        None
    }

    /// The window while requests are sent.
    pub(crate) fn window(&self) -> Option<Window> {
        match self.stage {
            Stage::Load(window) => Some(window),
            _ => None,
        }
    }

    /// Ends the window early.
    pub(crate) fn cut(&mut self, end_ns: u64) {
        if let Stage::Load(window) = &mut self.stage {
            window.end_ns = end_ns;
        }
    }

    /// Ends sending; responses are awaited until `until_ns`.
    pub(crate) fn drain(&mut self, until_ns: u64) {
        self.stage = Stage::Drain { until_ns };
    }

    pub(crate) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// True if the run was stopped early.
    pub(crate) fn is_stopped(&self) -> bool {
        self.commands.is_stopped()
    }

    /// When the phase ends by itself.
    pub(crate) fn ends_ns(&self) -> Option<u64> {
        match self.stage {
            Stage::Load(window) => Some(window.end_ns),
            Stage::Drain { until_ns } => Some(until_ns),
            Stage::Waiting => self.commands.begin_ns(),
            Stage::Ramp | Stage::Over => None,
        }
    }
}

/// From a worker to the coordinator; one line of JSON each between processes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Message {
    /// All connections that could be opened are open.
    Ramped {
        opened: u64,
    },
    /// A second is complete.
    Second(SecondPart),
    Finished(Box<LoadStats>),
    Failed(String),
}

/// To one worker, or to all workers of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkerCommand {
    /// The load begins at this time of the monotonic clock, which all processes share.
    Begin { at_ns: u64 },
    /// Nothing more is sent.
    Stop,
}
