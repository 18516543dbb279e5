//! State of one host at the coordinator.

use super::CLOCKED_TIMEOUT_NS;
use super::reassembly::Parts;
use crate::protocol::clock::Estimator;
use crate::protocol::message::Hello;

/// One host.
#[derive(Debug, Default)]
pub(super) struct Host {
    pub presence: HostState,
    pub hello: Option<Box<Hello>>,
    /// Number of its last PLAN or PREFLIGHT.
    pub command_seq: Option<u64>,
    pub ports: Vec<u16>,
    pub clock: Estimator,
    /// When the unanswered CLOCK was sent.
    pub clock_sent_ns: Option<u64>,
    /// When the last one was sent, answered or not.
    pub clock_last_ns: Option<u64>,
    /// Exchanges until the step of clocks has ended for this host.
    pub exchanges_left: u32,
    pub parts: Parts,
    /// The round whose end it has not confirmed. It has no further tasks until it does.
    pub open_round: Option<u32>,
    pub last_received_ns: u64,
    /// Lines that are no message.
    pub faults: u32,
}

/// Progress of a host.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) enum HostState {
    /// Its HELLO is awaited.
    #[default]
    Awaited,
    /// It has not confirmed a plan.
    Greeted,
    /// It has a plan.
    Planned,
    /// It takes part no longer.
    Out,
}

impl Host {
    pub(super) fn new(now_ns: u64) -> Self {
        Self {
            last_received_ns: now_ns,
            ..Self::default()
        }
    }

    /// Its CLOCKED is overdue.
    pub(super) fn has_lost_clock(&self, now_ns: u64) -> bool {
        self.clock_sent_ns
            .is_some_and(|sent_ns| now_ns.saturating_sub(sent_ns) >= CLOCKED_TIMEOUT_NS)
    }

    /// It has received a plan and not answered it.
    pub(super) fn has_open_plan(&self) -> bool {
        self.presence == HostState::Greeted && self.command_seq.is_some()
    }

    /// Its agent answered and is not dropped.
    pub(super) fn is_connected(&self) -> bool {
        matches!(self.presence, HostState::Greeted | HostState::Planned)
    }
}
