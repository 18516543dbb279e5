//! One session seen from the server.
//!
//! The owner feeds the plaintext of the control connection, its decisions and the time, and carries
//! out the actions in the order in which they are polled. It adds what a machine without I/O cannot
//! do: it computes and checks proofs, decides about admission, runs the phases, and finds the
//! session that a [`Resume`] names.
//!
//! A session outlives its connection: [`Machine::control_lost`], then [`Machine::resume`] with the
//! new one.

mod io;
mod local;
mod peer;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use linerate_model::path::{EndpointPhase, PhaseSpec};

use crate::wire::exchange::{Exchange, MESSAGES_PER_SECOND};
pub use crate::wire::exchange::{KEEP_INTERVAL, RESUME_MAX, SILENCE_MAX};
use crate::wire::message::{
    ClientMessage, ClockReply, Fault, Hello, Ready, Refusal, Resume, ServerMessage, Turn, Welcome,
};

/// Longest wait for the hello.
pub const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for [`Input::PhaseEnded`] after the stop.
pub const RESULT_TIMEOUT: Duration = Duration::from_secs(3);
/// Allowed excess over the agreed duration of a phase.
pub const OVERTIME: Duration = Duration::from_secs(10);
/// Allowed excess of a session over its phases together: for connecting, for queues that
/// drain between two loads, for results.
pub const SESSION_OVERTIME: Duration = Duration::from_secs(60);
/// Longest phase.
pub const PHASE_MAX: Duration = Duration::from_secs(3600);
/// Longest session.
pub const SESSION_MAX: Duration = Duration::from_secs(4 * 3600);
/// Phases of a session. The longest searches have some 120 steps, each of them a phase.
pub const PHASES_MAX: u32 = 256;
/// Shortest time between two positions in the queue.
pub const TURN_SPACING: Duration = Duration::from_secs(1);
/// A connection that replaces another one is itself not replaced for this long, unless it is lost.
pub const RESUME_SPACING: Duration = Duration::from_secs(1);

/// Decisions and measurements of the owner.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Answer to [`Action::CheckProof`]: the server's own proof where the client's is right. All
    /// wrong ones have one answer.
    ProofChecked(Option<[u8; 32]>),
    /// Answer to [`Action::CheckLogin`].
    LoginChecked(bool),
    /// Answer to [`Action::Admit`]: the session begins.
    Admitted(Box<Welcome>),
    /// Answer to [`Action::Admit`]: place in the queue; may be repeated. One within
    /// [`TURN_SPACING`] of another is dropped.
    Queued(Turn),
    /// The session is refused, before it begins; also the answer to [`Action::Resume`] for an
    /// unknown session or a wrong proof.
    Refused(Refusal),
    /// Answer to [`Action::Resume`]: the session's own machine has taken over the connection,
    /// [`Machine::resume`].
    HandedOver,
    /// Answer to [`Action::OpenPhase`].
    Ready(Ready),
    /// Answer to [`Action::OpenPhase`]: the phase is refused.
    PhaseRefused(Refusal),
    /// Answer to [`Action::Start`].
    Started {
        /// Server's monotonic clock, ns.
        at_ns: u64,
    },
    /// The phase ended, by [`Action::Stop`] or by itself.
    PhaseEnded(Box<EndpointPhase>),
    /// Answer to [`Action::Clock`].
    Clock(ClockReply),
    /// Answer to [`Action::SendFacts`]: JSON. The client receives `null` for what is none, or is
    /// too long.
    Facts(String),
    /// Answer to [`Action::Request`]: JSON. What is none, or is too long, is refused.
    Response(String),
    /// Answer to [`Action::Request`]: the request is refused.
    RequestRefused {
        /// Short name of the reason.
        clause: String,
        /// Explanation.
        text: String,
    },
    /// The server ends the session, with a reason for the client.
    Stopping(String),
}

/// Action for the owner.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Send this plaintext on the control connection.
    Send(Vec<u8>),
    /// Check the client's proof of the token: [`Input::ProofChecked`].
    CheckProof {
        /// Name of the token.
        token_name: String,
        /// The client's proof.
        proof: [u8; 32],
    },
    /// Check a password: [`Input::LoginChecked`].
    CheckLogin {
        /// Name of the user.
        user: String,
        /// Password.
        password: String,
    },
    /// Decide about admission: [`Input::Admitted`], [`Input::Queued`] or [`Input::Refused`]. Proofs
    /// in the hello are checked.
    Admit(Box<Hello>),
    /// The connection belongs to an existing session. Verify the proof, then call
    /// [`Machine::resume`] of that session and answer [`Input::HandedOver`], or [`Input::Refused`].
    Resume(Resume),
    /// Prepare a phase: [`Input::Ready`] or [`Input::PhaseRefused`].
    OpenPhase {
        /// Number of the phase.
        phase: u32,
        /// The phase.
        spec: Box<PhaseSpec>,
    },
    /// Begin the phase: [`Input::Started`].
    Start {
        /// Number of the phase.
        phase: u32,
    },
    /// End the phase, begun or not: [`Input::PhaseEnded`] within [`RESULT_TIMEOUT`].
    Stop {
        /// Number of the phase.
        phase: u32,
    },
    /// Read the clock: [`Input::Clock`].
    Clock {
        /// Client's clock, ns (t1).
        sent_ns: u64,
    },
    /// Collect the facts of the host: [`Input::Facts`].
    SendFacts,
    /// Handle a request: [`Input::Response`] or [`Input::RequestRefused`]. One at a time.
    Request {
        /// Name of the request.
        name: String,
        /// Its arguments: JSON.
        body: String,
    },
    /// Nothing arrived for [`SILENCE_MAX`]: close the connection and keep the session, which
    /// continues.
    ControlLost,
    /// The session has ended; always the last action. Sent bytes should reach the client before the
    /// connection is closed.
    Close(CloseReason),
}

/// Reason of the end of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CloseReason {
    /// The client ended it.
    Bye,
    /// The client left before it began.
    Left,
    /// The owner refused it.
    Refused {
        /// Short name of the reason.
        clause: String,
    },
    /// Proof or password is wrong.
    Unproven,
    /// A message of the client was wrong.
    Fault(Fault),
    /// The client found a message of the server wrong.
    PeerFault(Fault),
    /// The client did not send what was due in time.
    Timeout,
    /// The connection was lost and no other came in time, or a message that must be repeated is no
    /// longer kept.
    Lost,
    /// The session or a phase took longer than agreed.
    TimeLimit,
    /// The owner did not deliver a result in time.
    ResultLate,
    /// The owner ended it.
    Stopping,
    /// The connection continues another session.
    HandedOver,
}

/// Why a resumption is refused. The session is as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    /// There is no session that could continue.
    #[error("the session has not begun or has ended")]
    NoSession,
    /// The numbers do not fit, or a message that is missing is no longer kept.
    #[error("messages that the other end needs are not kept")]
    Numbers,
    /// The present connection was made a moment ago.
    #[error("the session was resumed a moment ago")]
    TooSoon,
}

/// Progress of a session.
#[derive(Debug)]
enum State {
    /// The first message is awaited.
    Greeting,
    /// The owner checks proof or password.
    Checking(Box<Hello>),
    /// The owner decides about admission.
    Admitting {
        /// Longest session that the client wants.
        duration_max: Duration,
    },
    /// The owner looks for the session that continues.
    Resuming,
    /// The session.
    Session(Phase),
    /// Over.
    Closed,
}

/// Progress of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// There is none.
    Absent,
    /// The owner prepares it.
    Opening { phase: u32, duration_max: Duration },
    /// The client may start it.
    Ready { phase: u32, duration_max: Duration },
    /// The owner begins it.
    Starting { phase: u32, duration_max: Duration },
    /// It runs.
    Running { phase: u32 },
    /// The owner ends it.
    Stopping { phase: u32 },
}

/// A server's side of one session. Performs no I/O and reads no clock.
#[derive(Debug)]
pub struct Machine {
    state: State,
    exchange: Exchange<ClientMessage, ServerMessage>,
    /// Highest number of a phase so far.
    phase_last: u32,
    facts_requested: bool,
    /// The owner handles a request.
    request_pending: bool,
    /// End of the present step.
    deadline: Option<Instant>,
    /// End of the whole session.
    session_end: Option<Instant>,
    /// Since when there is no connection.
    lost_since: Option<Instant>,
    resumed_at: Option<Instant>,
    turn_at: Option<Instant>,
    actions: VecDeque<Action>,
}

impl Machine {
    /// A machine whose connection has passed its TLS handshake.
    pub fn new(now: Instant) -> Self {
        Self {
            state: State::Greeting,
            exchange: Exchange::new(now, MESSAGES_PER_SECOND),
            phase_last: 0,
            facts_requested: false,
            request_pending: false,
            deadline: now.checked_add(HELLO_TIMEOUT),
            session_end: None,
            lost_since: None,
            resumed_at: None,
            turn_at: None,
            actions: VecDeque::new(),
        }
    }

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The session has begun and is not over: it can be resumed.
    pub fn is_session(&self) -> bool {
        matches!(self.state, State::Session(_))
    }

    /// Time since which a session that continues has no connection.
    pub fn lost_since(&self) -> Option<Instant> {
        self.lost_since.filter(|_| self.is_session())
    }

    /// A connection is there.
    pub fn is_connected(&self) -> bool {
        self.lost_since.is_none() && !matches!(self.state, State::Closed)
    }

    /// Bytes for the client in actions that are not polled.
    pub fn pending_bytes(&self) -> usize {
        let bytes = |action: &Action| {
            if let Action::Send(bytes) = action {
                bytes.len()
            } else {
                0
            }
        };
        self.actions.iter().map(bytes).sum()
    }
}
