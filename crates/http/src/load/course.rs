//! Where a lane is in its run, and what it is told on the way.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use linerate_sys::poll::EventFd;

use super::message::Order;
use super::recorder::Window;
use super::spec::LoadSpec;

/// How a lane is told what to do while it runs.
#[derive(Debug)]
pub(crate) struct Orders {
    begin_ns: AtomicU64,
    is_stopped: AtomicBool,
    bell: EventFd,
}

impl Orders {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            begin_ns: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
            bell: EventFd::new().map_err(|error| error.source)?,
        })
    }

    pub(crate) fn give(&self, order: Order) {
        match order {
            Order::Begin { at_ns } => self.begin_ns.store(at_ns, Ordering::Release),
            Order::Stop => self.is_stopped.store(true, Ordering::Release),
        }
        self.bell.signal();
    }

    /// Rings when there is something to obey.
    pub(crate) fn bell(&self) -> &EventFd {
        &self.bell
    }

    pub(crate) fn are_to_stop(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    fn begin_ns(&self) -> Option<u64> {
        Some(self.begin_ns.load(Ordering::Acquire)).filter(|begin_ns| *begin_ns > 0)
    }
}

/// The phases of a lane: it opens connections, waits for the others, sends, waits for what is outstanding.
#[derive(Debug)]
pub(crate) struct Course {
    stage: Stage,
    orders: Arc<Orders>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Connections are opened.
    Ramp,
    /// They are, and wait for the others.
    Waiting,
    /// Requests are sent.
    Load(Window),
    /// Outstanding answers are waited for.
    Drain {
        until_ns: u64,
    },
    Over,
}

/// What a lane has to do because a phase is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Say that the connections are open.
    Ramped,
    /// Begin to send.
    Begin(Window),
    /// End the load: send what is due unless it was stopped, and [`Course::drain`].
    End { is_stopped: bool },
}

impl Course {
    pub(crate) fn new(orders: Arc<Orders>) -> Self {
        Self {
            stage: Stage::Ramp,
            orders,
        }
    }

    /// Goes on to the next phase where an order or the time demands it. `is_ramped`: nothing is being opened;
    /// `in_flight`: requests without an answer.
    pub(crate) fn step(&mut self, spec: &LoadSpec, now_ns: u64, is_ramped: bool, in_flight: u64) -> Option<Turn> {
        let is_stopped = self.orders.are_to_stop();
        match self.stage {
            Stage::Ramp | Stage::Waiting if is_stopped => self.stage = Stage::Over,
            Stage::Ramp if is_ramped => {
                self.stage = Stage::Waiting;
                return Some(Turn::Ramped);
            }
            Stage::Waiting => {
                let begin_ns = self.orders.begin_ns().filter(|begin_ns| now_ns >= *begin_ns)?;
                let open_ns = begin_ns.saturating_add(spec.warmup_ns);
                let window = Window {
                    begin_ns,
                    open_ns,
                    end_ns: open_ns.saturating_add(spec.duration_ns),
                };
                self.stage = Stage::Load(window);
                return Some(Turn::Begin(window));
            }
            Stage::Load(window) if is_stopped || now_ns >= window.end_ns => return Some(Turn::End { is_stopped }),
            Stage::Drain { until_ns } if now_ns >= until_ns || in_flight == 0 => self.stage = Stage::Over,
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

    /// Sending ends at `end_ns`, earlier than it would.
    pub(crate) fn cut(&mut self, end_ns: u64) {
        if let Stage::Load(window) = &mut self.stage {
            window.end_ns = end_ns;
        }
    }

    /// Nothing is sent any more; answers are waited for until `until_ns`.
    pub(crate) fn drain(&mut self, until_ns: u64) {
        self.stage = Stage::Drain { until_ns };
    }

    pub(crate) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// Whether the run was stopped instead of coming to its end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.orders.are_to_stop()
    }

    /// When the phase ends by itself.
    pub(crate) fn ends_ns(&self) -> Option<u64> {
        match self.stage {
            Stage::Load(window) => Some(window.end_ns),
            Stage::Drain { until_ns } => Some(until_ns),
            Stage::Waiting => self.orders.begin_ns(),
            Stage::Ramp | Stage::Over => None,
        }
    }
}
