//! One session seen from the client.
//!
//! The owner feeds the plaintext of the control connection, its requests and the time, and carries
//! out the actions in the order in which they are polled. It adds what a machine without I/O cannot
//! do: it dials, computes proofs, and moves the data of the phases.
//!
//! A session outlives its connection: after [`Action::ConnectAgain`] the owner dials, completes
//! TLS, computes the proof over [`Machine::resume_point`] and calls [`Machine::resume`].

mod io;
mod local;
mod peer;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use linerate_model::path::{EndpointPhase, PhaseSpec};

use crate::wire::exchange::Exchange;
pub use crate::wire::exchange::{KEEP_INTERVAL, RESUME_MAX, SILENCE_MAX};
use crate::wire::message::{
    ClientMessage, ClockReply, Fault, Hello, JsonText, Ready, Refusal, ServerMessage, Turn, Welcome,
};

/// Longest wait for an answer of the server.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for the result of a phase after its stop: 3 s of the server, and the way through
/// full queues.
pub const RESULT_TIMEOUT: Duration = Duration::from_secs(8);
/// Longest wait for the facts of the server's host; they count as absent then.
pub const FACTS_TIMEOUT: Duration = Duration::from_secs(10);
/// Shortest time between two resumptions.
pub const RESUME_SPACING: Duration = Duration::from_secs(1);
/// Messages of the server that may arrive at once: all ticks of [`SILENCE_MAX`] behind a full
/// queue, and some more.
const SERVER_BURST: u32 = 256;

/// Requests of the owner.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Opens the session.
    Hello {
        /// Requirements of the client, with its proof of a token if it has one.
        hello: Box<Hello>,
        /// The server's proof of the token, without which there is no session; absent without a
        /// token.
        server_proof: Option<[u8; 32]>,
    },
    /// Opens a phase; the machine numbers it. One at a time.
    OpenPhase(Box<PhaseSpec>),
    /// Begins the phase that is ready.
    Start,
    /// Ends the phase, begun or not.
    Stop,
    /// Requests the server's clock.
    Clock {
        /// Client's monotonic clock, ns (t1).
        sent_ns: u64,
    },
    /// Requests the facts of the server's host.
    WantFacts,
    /// Sends a request, where the server has the feature
    /// [`crate::wire::message::REQUESTS`]. One at a time: another one before the response has no
    /// effect.
    Request {
        /// Name of the request.
        name: String,
        /// Its arguments.
        body: JsonText,
    },
    /// Ends the session.
    Bye,
}

/// Action for the owner.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Send this plaintext on the control connection.
    Send(Vec<u8>),
    /// The session begins.
    Welcome(Box<Welcome>),
    /// The client is in the server's queue.
    Queued(Turn),
    /// The phase can be started.
    Ready(Ready),
    /// The server refuses the phase; the session continues.
    PhaseRefused(Refusal),
    /// The phase began.
    Started {
        /// Server's monotonic clock, ns.
        at_ns: u64,
    },
    /// The phase ended; what the server measured.
    PhaseResult(Box<EndpointPhase>),
    /// The server's clock; t4 is now.
    Clock(ClockReply),
    /// Facts of the server's host: JSON, `null` where there are none.
    Facts(String),
    /// Response to the request: JSON.
    Response(String),
    /// The server refuses the request; the session continues.
    RequestRefused {
        /// Short name of the reason.
        clause: String,
        /// Explanation.
        text: String,
    },
    /// The server refuses the session; [`Action::Close`] follows.
    Refused(Refusal),
    /// The session failed; [`Action::Close`] follows.
    Failed(ProtocolFailure),
    /// The connection is lost, the session is not: close it, drop bytes that are not sent, dial,
    /// complete TLS, and call [`Machine::resume`]; [`Machine::control_lost`] when that fails and is
    /// to be tried again.
    ConnectAgain,
    /// The session continues over the new connection.
    Resumed,
    /// Always the last action. Sent bytes should reach the server before the connection is closed.
    Close,
}

/// Why a session failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolFailure {
    /// A message of the server is wrong.
    #[error("wrong message of the server: {0}")]
    Wrong(Fault),
    /// The server found a message of this end wrong.
    #[error("the server refuses a message: {0}")]
    PeerFault(Fault),
    /// The server did not send what was due in time.
    #[error("no {awaited} from the server in time")]
    Timeout {
        /// Type of the message.
        awaited: &'static str,
    },
    /// The server closed the connection before the session began.
    #[error("the server closed the connection")]
    Closed,
    /// No new connection in time.
    #[error("control connection lost and not replaced within 30 s")]
    Lost,
    /// The server does not continue the session.
    #[error("the server does not continue the session: {text}")]
    NotResumed {
        /// The server's explanation.
        text: String,
    },
    /// The server ended the session.
    #[error("the server ended the session: {reason}")]
    Ended {
        /// The server's reason.
        reason: String,
    },
    /// The server does not prove knowledge of the token.
    #[error("the server does not prove knowledge of the token")]
    Unproven,
    /// A message of this end is longer than the protocol allows.
    #[error("message not sent: {0}")]
    TooLong(Fault),
}

/// Reference point of a resumption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumePoint {
    /// Name of the session.
    pub session: String,
    /// Number of the last message of this end.
    pub number: u64,
    /// Number of the last message that arrived.
    pub received: u64,
}

/// Progress of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The owner has not opened it.
    Idle,
    /// The hello is sent.
    Greeting {
        /// The server's proof of the token, which it has to send first.
        server_proof: Option<[u8; 32]>,
    },
    /// The server has proved the token, or the client is in the queue.
    Awaiting,
    /// The session.
    Session(Phase),
    /// Over.
    Closed,
}

/// Progress of the present phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// There is none.
    Absent,
    /// Tokens are awaited.
    Opening,
    /// It can be started.
    Ready,
    /// Its beginning is awaited.
    Starting,
    /// It runs.
    Running,
    /// Its result is awaited.
    Stopping,
}

/// State of the control connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    /// Messages can be sent.
    Connected,
    /// There is none.
    Lost {
        since: Instant,
        /// When the owner is to dial, if it has not been requested.
        connect_at: Option<Instant>,
    },
    /// The resumption is sent.
    Resuming { since: Instant },
}

/// A message that is due.
#[derive(Debug, Clone, Copy)]
struct Awaited {
    kind: &'static str,
    limit: Duration,
    since: Instant,
}

/// A client's side of one session. Performs no I/O and reads no clock.
#[derive(Debug)]
pub struct Machine {
    state: State,
    exchange: Exchange<ServerMessage, ClientMessage>,
    session: String,
    /// Number of the present phase, or of the last one.
    phase: u32,
    awaited: Option<Awaited>,
    /// When requested facts count as absent.
    facts_until: Option<Instant>,
    /// The response to a request is awaited.
    request_pending: bool,
    link: Link,
    resumed_at: Option<Instant>,
    actions: VecDeque<Action>,
}

impl Machine {
    /// A machine whose connection has passed its TLS handshake.
    pub fn new(now: Instant) -> Self {
        Self {
            state: State::Idle,
            exchange: Exchange::new(now, SERVER_BURST),
            session: String::new(),
            phase: 0,
            awaited: None,
            facts_until: None,
            request_pending: false,
            link: Link::Connected,
            resumed_at: None,
            actions: VecDeque::new(),
        }
    }

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Input of the proof of a resumption. `None` while there is a connection or no
    /// session.
    pub fn resume_point(&self) -> Option<ResumePoint> {
        let is_lost = self.is_session() && matches!(self.link, Link::Lost { .. });
        let (number, received) = self.exchange.numbers();
        is_lost.then(|| ResumePoint {
            session: self.session.clone(),
            number,
            received,
        })
    }

    fn is_session(&self) -> bool {
        matches!(self.state, State::Session(_))
    }
}
