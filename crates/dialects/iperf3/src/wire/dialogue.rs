//! Parts of both machines: the phase with its deadline, and the actions for the caller.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use linerate_model::{Failure, FailureKind};

use crate::wire::error_code::ErrorCode;
use crate::wire::state::State;

/// An action of a machine.
pub(super) trait DialogueAction {
    /// Sends bytes on the control connection.
    fn send(bytes: Vec<u8>) -> Self;

    /// The last action.
    fn close(outcome: Result<(), Failure>) -> Self;
}

/// The phases of a machine.
pub(super) trait DialoguePhase {
    /// The phase after [`DialogueAction::close`].
    const CLOSED: Self;
}

/// One side of a dialogue on a control connection.
#[derive(Debug)]
pub(super) struct Dialogue<Phase, Action> {
    pub phase: Phase,
    deadline: Option<Instant>,
    actions: VecDeque<Action>,
}

impl<Phase: DialoguePhase, Action: DialogueAction> Dialogue<Phase, Action> {
    /// A dialogue that begins in `phase` and leaves it within `limit`.
    pub(super) fn new(now: Instant, phase: Phase, limit: Duration) -> Self {
        Self {
            phase,
            deadline: now.checked_add(limit),
            actions: VecDeque::new(),
        }
    }

    /// Enters a phase that lasts for `limit` at most.
    pub(super) fn enter(&mut self, now: Instant, phase: Phase, limit: Option<Duration>) {
        self.phase = phase;
        self.deadline = limit.and_then(|limit| now.checked_add(limit));
    }

    /// Ends the dialogue.
    pub(super) fn close(&mut self, outcome: Result<(), Failure>) {
        self.push(Action::close(outcome));
        self.phase = Phase::CLOSED;
        self.deadline = None;
    }

    /// Ends the dialogue with a failure.
    pub(super) fn fail(&mut self, failure: Failure) {
        self.close(Err(failure));
    }

    pub(super) fn send_state(&mut self, state: State) {
        self.push(Action::send(vec![state.byte()]));
    }

    pub(super) fn push(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    pub(super) fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The deadline of the phase has passed.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }
}

/// A signal ended this process; the text is that of the signal with its number, `Interrupt(2)`.
pub(super) fn interrupted(code: ErrorCode, signal_text: &str) -> Failure {
    let reason = code.message(None);
    let text = format!("{reason} by signal {signal_text}");
    let mut failure = Failure::new(FailureKind::Interrupted, text);
    failure.code = Some(code.number());
    failure
}

/// The peer ended the test because of a signal.
pub(super) fn terminated_by_peer(code: ErrorCode) -> Failure {
    let mut failure = code.failure(None);
    failure.kind = FailureKind::PeerTerminated;
    failure
}

/// The system's text for a deadline that passed (errno(3), `ETIMEDOUT`).
pub(super) const TIMED_OUT: &str = "Connection timed out";
