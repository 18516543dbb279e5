//! When a free connection is given its next request.

use std::collections::VecDeque;

use linerate_model::http::{Arrivals, Mode};

use super::recorder::Recorder;
use super::schedule::Schedule;
use super::spec::LoadSpec;

/// The pace of one lane.
#[derive(Debug)]
pub(crate) enum Pace {
    /// Nothing is sent.
    Held,
    /// At once.
    Closed,
    /// After a pause since the last answer.
    Thinking {
        pause_ns: u64,
        /// Connections that pause, the one that ends first in front: all pauses are of one length.
        pausing: VecDeque<(u64, u32)>,
    },
    /// When the next request is due, whatever was answered.
    Open(Schedule),
}

impl Pace {
    pub(crate) fn new(spec: &LoadSpec, begin_ns: u64, place: (u32, u32)) -> Self {
        let schedule =
            |rate_per_s, arrivals| Self::Open(Schedule::new(begin_ns, rate_per_s, arrivals, place, spec.seed));
        match spec.mode {
            Mode::Closed { think_ns: 0, .. } => Self::Closed,
            Mode::Closed { think_ns, .. } => Self::Thinking {
                pause_ns: think_ns,
                pausing: VecDeque::new(),
            },
            Mode::Open { rate_per_s, arrivals } => schedule(rate_per_s, arrivals),
            // Spread evenly over the period, so that they never come in a burst.
            Mode::Idle {
                heartbeat_ns: Some(period_ns),
            } => schedule(
                f64::from(spec.connections) * 1e9 / period_ns.max(1) as f64,
                Arrivals::Uniform,
            ),
            Mode::Idle { heartbeat_ns: None } => Self::Held,
        }
    }

    /// When the next request was due, if it is.
    pub(crate) fn due(&self, now_ns: u64) -> Option<u64> {
        match self {
            Self::Held => None,
            Self::Closed | Self::Thinking { .. } => Some(now_ns),
            Self::Open(schedule) => Some(schedule.next_due_ns()).filter(|due_ns| *due_ns <= now_ns),
        }
    }

    /// The request that is due was sent.
    pub(crate) fn take(&mut self) {
        if let Self::Open(schedule) = self {
            schedule.take();
        }
    }

    /// When something has to be done next.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        match self {
            Self::Held | Self::Closed => None,
            Self::Thinking { pausing, .. } => pausing.front().map(|(end_ns, _)| *end_ns),
            Self::Open(schedule) => Some(schedule.next_due_ns()),
        }
    }

    /// When something will have to be done after that, where it is known.
    pub(crate) fn following_ns(&self) -> Option<u64> {
        match self {
            Self::Open(schedule) => Some(schedule.following_due_ns()),
            Self::Held | Self::Closed | Self::Thinking { .. } => None,
        }
    }

    /// What is to be done next can be done only on a free connection.
    pub(crate) fn needs_free(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    /// A connection has its answer.
    pub(crate) fn pause(&mut self, number: u32, now_ns: u64) {
        if let Self::Thinking { pause_ns, pausing } = self {
            pausing.push_back((now_ns.saturating_add(*pause_ns), number));
        }
    }

    /// Frees the connections whose pause is over.
    pub(crate) fn end_pauses(&mut self, now_ns: u64, mut free: impl FnMut(u32)) {
        if let Self::Thinking { pausing, .. } = self {
            while let Some((_, number)) = pausing.front().copied().filter(|(end_ns, _)| *end_ns <= now_ns) {
                pausing.pop_front();
                free(number);
            }
        }
    }

    /// Counts what was due before `end_ns` and will never be sent.
    pub(crate) fn abandon(&mut self, end_ns: u64, now_ns: u64, recorder: &mut Recorder) {
        if let Self::Open(schedule) = self {
            while schedule.next_due_ns() < end_ns {
                recorder.unsent(schedule.take(), now_ns);
            }
        }
    }
}
