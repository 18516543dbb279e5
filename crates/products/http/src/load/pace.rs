//! When a free connection gets its next request.

use std::collections::VecDeque;

use linerate_model::http::{Arrivals, Mode};

use super::recorder::Recorder;
use super::schedule::{Schedule, WorkerIndex};
use super::spec::LoadSpec;

/// Pace of one worker.
#[derive(Debug)]
pub(crate) enum Pace {
    /// Nothing is sent.
    Held,
    /// Closed loop.
    Closed,
    /// Closed loop with think time.
    Thinking {
        pause_ns: u64,
        /// Pausing connections in the order of their ends: all pauses have one length.
        pausing: VecDeque<(u64, u32)>,
    },
    /// Open loop.
    Open(Schedule),
}

impl Pace {
    pub(crate) fn new(spec: &LoadSpec, begin_ns: u64, index: WorkerIndex) -> Self {
        let schedule = |rate_per_s, arrivals| {
            Self::Open(Schedule::new(
                begin_ns, rate_per_s, arrivals, index, spec.seed,
            ))
        };
        match spec.mode {
            Mode::Closed { think_ns: 0, .. } => Self::Closed,
            Mode::Closed { think_ns, .. } => Self::Thinking {
                pause_ns: think_ns,
                pausing: VecDeque::new(),
            },
            Mode::Open {
                rate_per_s,
                arrivals,
            } => schedule(rate_per_s, arrivals),
            // Evenly over the period, without bursts.
            Mode::Idle {
                heartbeat_ns: Some(period_ns),
            } => schedule(
                f64::from(spec.connections) * 1e9 / period_ns.max(1) as f64,
                Arrivals::Uniform,
            ),
            Mode::Idle { heartbeat_ns: None } => Self::Held,
        }
    }

    /// Due time of the next request, if it has come.
    pub(crate) fn due(&self, now_ns: u64) -> Option<u64> {
        match self {
            Self::Held => None,
            Self::Closed | Self::Thinking { .. } => Some(now_ns),
            Self::Open(schedule) => Some(schedule.next_due_ns()).filter(|due_ns| *due_ns <= now_ns),
        }
    }

    /// The due request was sent.
    pub(crate) fn take(&mut self) {
        if let Self::Open(schedule) = self {
            schedule.take();
        }
    }

    /// When the next action is due.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        match self {
            Self::Held | Self::Closed => None,
            Self::Thinking { pausing, .. } => pausing.front().map(|(end_ns, _)| *end_ns),
            Self::Open(schedule) => Some(schedule.next_due_ns()),
        }
    }

    /// When the action after that is due, where known.
    pub(crate) fn following_ns(&self) -> Option<u64> {
        match self {
            Self::Open(schedule) => Some(schedule.following_due_ns()),
            Self::Held | Self::Closed | Self::Thinking { .. } => None,
        }
    }

    /// The next action needs a free connection.
    pub(crate) fn needs_free(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    /// A response is complete.
    pub(crate) fn pause(&mut self, number: u32, now_ns: u64) {
        if let Self::Thinking { pause_ns, pausing } = self {
            pausing.push_back((now_ns.saturating_add(*pause_ns), number));
        }
    }

    /// Frees the connections whose pause has ended.
    pub(crate) fn end_pauses(&mut self, now_ns: u64, mut free: impl FnMut(u32)) {
        if let Self::Thinking { pausing, .. } = self {
            while let Some((_, number)) = pausing
                .front()
                .copied()
                .filter(|(end_ns, _)| *end_ns <= now_ns)
            {
                pausing.pop_front();
                free(number);
            }
        }
    }

    /// Counts requests due before `end_ns` that are never sent.
    pub(crate) fn abandon(&mut self, end_ns: u64, now_ns: u64, recorder: &mut Recorder) {
        if let Self::Open(schedule) = self {
            while schedule.next_due_ns() < end_ns {
                recorder.unsent(schedule.take(), now_ns);
            }
        }
    }
}
