//! One test seen from the server.
//!
//! The caller has read the cookie and found that it starts a new test. It feeds what arrives on the
//! control connection, what happens locally, and the time; it carries out the actions in the order
//! they are polled. A session knows nothing of its siblings.

mod deferred;
mod policy;

use std::time::{Duration, Instant};

use linerate_model::{Failure, FailureKind, TestSpec};

use crate::wire::auth::Refusal;
use crate::wire::cookie::Cookie;
use crate::wire::dialogue::{
    Dialogue, DialogueAction, DialoguePhase, TIMED_OUT, interrupted, terminated_by_peer,
};
use crate::wire::error_code::{ErrorCode, errno_text};
use crate::wire::framing::{FrameError, FrameReader, MAX_PARAMS_BYTES, max_results_bytes_server};
use crate::wire::params::Params;
use crate::wire::results::Results;
use crate::wire::state::State;

pub use policy::{HANDSHAKE_TIMEOUT, OVERTIME, Policy};

/// A login to be checked with [`crate::wire::auth::Authenticator::check`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginAttempt {
    /// Token of the client.
    pub token: String,
    /// Wall-clock time of its arrival in s since 1970.
    pub unix_s: i64,
}

/// Setup of a server's session.
#[derive(Debug, Clone)]
pub struct ServerSetup {
    /// Name of the test, as the client sent it.
    pub cookie: Cookie,
    /// Limits for the client.
    pub policy: Policy,
    /// Wall-clock time of the beginning in s since 1970; for authentication only.
    pub unix_s: i64,
}

/// Event on this end.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerInput {
    /// Everything is ready for the data streams.
    Prepared,
    /// One more data stream is open.
    StreamOpened,
    /// Something failed; the two numbers are sent to the client.
    Failed {
        /// Code of the failure.
        code: ErrorCode,
        /// The system's error number, 0 for none.
        errno: i32,
        /// The system's text.
        cause: Option<String>,
    },
    /// Counters of this end.
    Results(Box<Results>),
    /// The user a login belongs to, or why it is refused.
    LoginChecked(Result<String, Refusal>),
    /// The client's results, or the error that is reported for the text.
    ResultsParsed(Result<Box<Results>, ErrorCode>),
    /// The server has no place for this test.
    Busy,
    /// A signal wants this process to end; the text is that of the signal with its number,
    /// `Interrupt(2)`.
    Terminated {
        /// Name and number.
        signal_text: String,
    },
}

/// A test that will be run.
#[derive(Debug, Clone, PartialEq)]
pub struct AcceptedTest {
    /// The client's parameters.
    pub params: Params,
    /// The same as a specification.
    pub spec: TestSpec,
    /// Who the client proved to be.
    pub user: Option<String>,
}

/// Action for the caller.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerAction {
    /// Send these bytes on the control connection.
    Send(Vec<u8>),
    /// Check this login and answer with `LoginChecked`. It takes milliseconds, so a caller with
    /// other sessions does it on another thread, and does not read the control connection until it
    /// has answered.
    CheckLogin(LoginAttempt),
    /// Parse these results with [`Results::parse`] and answer with `ResultsParsed`, in the same
    /// way.
    ParseResults(Vec<u8>),
    /// The parameters are accepted; prepare sockets and answer with `Prepared` or `Failed`.
    Accepted(Box<AcceptedTest>),
    /// That many data streams will come; answer each with `StreamOpened`.
    ExpectStreams(u32),
    /// The measured time begins.
    StartClock,
    /// Move data.
    StartData,
    /// The client ended the test; take final statistics and answer with `Results`.
    StopData,
    /// Counters of the client.
    PeerResults(Box<Results>),
    /// The test has ended; always the last action. Sent bytes should reach the peer before the
    /// connection is closed.
    Close(Result<(), Failure>),
}

/// Phase of the dialogue, with the part of an unfinished item that has arrived.
#[derive(Debug)]
enum Phase {
    /// Byte 9 is out, the parameters are awaited.
    Parameters(FrameReader),
    /// The caller checks the login.
    CheckingLogin(Box<Params>),
    /// The caller prepares sockets.
    Preparing,
    /// Byte 10 is out, data streams are awaited.
    Opening { missing: u32 },
    /// Bytes 1 and 2 are out, data flows, byte 4 is awaited.
    Running,
    /// The caller takes final statistics.
    Collecting,
    /// Byte 13 is out, the client's results are awaited; ours are ready.
    Exchanging(FrameReader, Box<Results>),
    /// The caller parses the client's results; ours are ready.
    ParsingResults(Box<Results>),
    /// Byte 14 is out, the client's good-bye is awaited.
    Finishing,
    /// Ended; input is ignored.
    Closed,
}

impl DialoguePhase for Phase {
    const CLOSED: Self = Self::Closed;
}

impl DialogueAction for ServerAction {
    fn send(bytes: Vec<u8>) -> Self {
        Self::Send(bytes)
    }

    fn close(outcome: Result<(), Failure>) -> Self {
        Self::Close(outcome)
    }
}

/// The facts of the accepted test that the session itself needs.
#[derive(Debug, Default)]
struct AgreedParams {
    total_streams: u32,
    /// Longest running time; `None` without a time limit.
    time_limit: Option<Duration>,
    peer_is_linerate: bool,
}

/// A server's side of one control connection. Performs no I/O and reads no clock.
#[derive(Debug)]
pub struct Server {
    setup: ServerSetup,
    began: Instant,
    agreed: AgreedParams,
    refusal: Option<Refusal>,
    dialogue: Dialogue<Phase, ServerAction>,
    /// Bytes received while the caller checks or parses.
    early: Vec<u8>,
}

impl Server {
    /// A session whose cookie has arrived. The first action requests the parameters.
    pub fn new(now: Instant, setup: ServerSetup) -> Self {
        let phase = Phase::Parameters(FrameReader::new(MAX_PARAMS_BYTES));
        let mut dialogue = Dialogue::new(now, phase, setup.policy.handshake_timeout);
        dialogue.send_state(State::ParamExchange);

        Self {
            setup,
            began: now,
            agreed: AgreedParams::default(),
            refusal: None,
            dialogue,
            early: Vec::new(),
        }
    }

    /// Name of the test; data connections repeat it.
    pub fn cookie(&self) -> Cookie {
        self.setup.cookie
    }

    /// Why authentication failed, for the operator's log; it is not sent to the client.
    pub fn refusal(&self) -> Option<&Refusal> {
        self.refusal.as_ref()
    }

    /// Takes bytes of the control connection, in pieces of any size.
    pub fn handle_control(&mut self, now: Instant, bytes: &[u8]) {
        let mut input = bytes;
        while !input.is_empty() {
            match &mut self.dialogue.phase {
                Phase::Closed => return,
                Phase::Parameters(reader) => match reader.read(&mut input) {
                    Ok(None) => {}
                    Ok(Some(text)) => self.handle_params(now, &text),
                    Err(refused) => self.refuse_params(&refused),
                },
                Phase::Exchanging(reader, _) => match reader.read(&mut input) {
                    Ok(None) => {}
                    Ok(Some(text)) => self.handle_results(now, text),
                    Err(refused) => {
                        self.fail(ErrorCode::RecvResults, 0, Some(&refused.to_string()));
                    }
                },
                // The order of the bytes counts: nothing is interpreted before the answer is known.
                Phase::CheckingLogin(_) | Phase::ParsingResults(_) => {
                    return self.keep_early(input);
                }
                _ => {
                    let byte = input[0];
                    input = &input[1..];
                    self.handle_state(now, byte);
                }
            }
        }
    }

    /// The client closed the control connection.
    pub fn handle_control_eof(&mut self, _now: Instant) {
        match &self.dialogue.phase {
            Phase::Closed => {}
            Phase::Finishing => self.dialogue.close(Ok(())),
            // A client that gives up sends a state where a frame is awaited.
            Phase::Parameters(reader) | Phase::Exchanging(reader, _)
                if reader.lone_byte() == Some(State::ClientTerminate.byte()) =>
            {
                self.dialogue
                    .fail(terminated_by_peer(ErrorCode::ClientTerm));
            }
            _ => self.dialogue.fail(client_closed()),
        }
    }

    /// The control connection broke; `cause` is the system's text.
    pub fn handle_control_error(&mut self, _now: Instant, cause: &str) {
        let code = match &self.dialogue.phase {
            Phase::Closed => return,
            Phase::Finishing => return self.dialogue.close(Ok(())),
            Phase::Parameters(_) => ErrorCode::RecvParams,
            Phase::Exchanging(..) => ErrorCode::RecvResults,
            _ => ErrorCode::RecvMessage,
        };
        self.dialogue.fail(code.failure(Some(cause)));
    }

    /// Takes what happened on this end.
    pub fn handle_local(&mut self, now: Instant, input: ServerInput) {
        match (input, &mut self.dialogue.phase) {
            (_, Phase::Closed) => {}
            (ServerInput::Terminated { signal_text }, _) => {
                self.dialogue.send_state(State::ServerTerminate);
                let failure = interrupted(ErrorCode::ServerTerm, &signal_text);
                self.dialogue.fail(failure);
            }
            (ServerInput::Busy, _) => {
                self.dialogue.send_state(State::AccessDenied);
                self.dialogue.fail(ErrorCode::AccessDenied.failure(None));
            }
            // The exchange is complete; the client has its results.
            (ServerInput::Failed { .. }, Phase::Finishing) => self.dialogue.close(Ok(())),
            (ServerInput::Failed { code, errno, cause }, _) => {
                let cause = cause.or_else(|| errno_text(errno));
                self.fail(code, errno, cause.as_deref());
            }
            (ServerInput::Prepared, Phase::Preparing) => {
                let missing = self.agreed.total_streams;
                self.dialogue.push(ServerAction::ExpectStreams(missing));
                self.dialogue.send_state(State::CreateStreams);
                self.dialogue.enter(
                    now,
                    Phase::Opening { missing },
                    Some(self.setup.policy.handshake_timeout),
                );
            }
            (ServerInput::StreamOpened, Phase::Opening { missing }) => {
                match missing.saturating_sub(1) {
                    0 => self.start(now),
                    missing => self.dialogue.enter(
                        now,
                        Phase::Opening { missing },
                        Some(self.setup.policy.handshake_timeout),
                    ),
                }
            }
            (ServerInput::Results(results), Phase::Collecting) => self.exchange(now, results),
            (ServerInput::LoginChecked(verdict), Phase::CheckingLogin(_)) => {
                self.finish_login(now, verdict);
                self.handle_early(now);
            }
            (ServerInput::ResultsParsed(results), Phase::ParsingResults(_)) => {
                self.finish_results(now, results);
                self.handle_early(now);
            }
            // Local events cross the client's on their way; the late ones have lost their meaning.
            (
                ServerInput::Prepared
                | ServerInput::StreamOpened
                | ServerInput::Results(_)
                | ServerInput::LoginChecked(_)
                | ServerInput::ResultsParsed(_),
                _,
            ) => {}
        }
    }

    /// Takes the time, at or after [`Self::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        if !self.dialogue.is_due(now) {
            return;
        }

        match &self.dialogue.phase {
            Phase::Parameters(_) => self.fail(ErrorCode::RecvParams, 0, Some(TIMED_OUT)),
            Phase::Opening { .. } => self.fail(ErrorCode::StreamAccept, ETIMEDOUT, Some(TIMED_OUT)),
            Phase::Exchanging(..) => self.fail(ErrorCode::RecvResults, 0, Some(TIMED_OUT)),
            Phase::Finishing => self.dialogue.close(Ok(())),
            Phase::Running => self.overtime(),
            // Local work; the caller's own limits apply.
            Phase::CheckingLogin(_)
            | Phase::Preparing
            | Phase::Collecting
            | Phase::ParsingResults(_)
            | Phase::Closed => {}
        }
    }

    /// When [`Self::handle_timeout`] wants to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.dialogue.deadline()
    }

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<ServerAction> {
        self.dialogue.next_action()
    }

    fn refuse_params(&mut self, refused: &FrameError) {
        let cause = if self.setup.cookie.is_text() {
            refused.to_string()
        } else {
            "the client is not iperf3: it sent no cookie".to_owned()
        };
        self.fail(ErrorCode::RecvParams, 0, Some(&cause));
    }

    fn handle_params(&mut self, now: Instant, text: &[u8]) {
        let params = match Params::parse(text) {
            Ok(params) => params,
            Err(code) => return self.fail(code, 0, None),
        };
        if !self.setup.policy.login_required {
            return self.admit(now, params, None);
        }

        let Some(token) = params.auth_token.clone() else {
            return self.refuse_login(Refusal::NoToken);
        };
        // The machine reads no clock: the time of the login is that of the start plus the elapsed.
        let elapsed_s = now.saturating_duration_since(self.began).as_secs();
        let unix_s = self.setup.unix_s.saturating_add_unsigned(elapsed_s);
        self.dialogue
            .push(ServerAction::CheckLogin(LoginAttempt { token, unix_s }));
        self.dialogue
            .enter(now, Phase::CheckingLogin(Box::new(params)), None);
    }

    /// The limits are checked after the login: an unknown client learns nothing of them.
    fn admit(&mut self, now: Instant, params: Params, user: Option<String>) {
        if let Err(code) = self.setup.policy.check(&params) {
            return self.fail(code, 0, None);
        }

        let spec = params.to_spec();
        // A test of bytes or blocks has no time; the client alone ends it.
        let time = (params.time_s != 0).then(|| Duration::from_secs(params.time_s.into()));
        self.agreed = AgreedParams {
            total_streams: spec.total_streams(),
            time_limit: time.map(|time| time + spec.omit + self.setup.policy.overtime),
            peer_is_linerate: params.peer_is_linerate(),
        };

        let test = AcceptedTest { params, spec, user };
        self.dialogue.push(ServerAction::Accepted(Box::new(test)));
        self.dialogue.enter(now, Phase::Preparing, None);
    }

    fn start(&mut self, now: Instant) {
        self.dialogue.push(ServerAction::StartClock);
        // Clients read states byte by byte, so both fit into one segment.
        self.dialogue.push(ServerAction::Send(vec![
            State::TestStart.byte(),
            State::TestRunning.byte(),
        ]));
        self.dialogue.push(ServerAction::StartData);
        self.dialogue
            .enter(now, Phase::Running, self.agreed.time_limit);
    }

    fn handle_state(&mut self, now: Instant, byte: u8) {
        match (State::from_byte(byte), &self.dialogue.phase) {
            // Both ends have all results, so no byte of the client can fail the test.
            (_, Phase::Finishing) => self.dialogue.close(Ok(())),
            (Some(State::ClientTerminate), _) => self
                .dialogue
                .fail(terminated_by_peer(ErrorCode::ClientTerm)),
            // A client that failed to open its streams ends the test; nothing was measured, nothing
            // is missing.
            (Some(State::IperfDone), Phase::Preparing | Phase::Opening { .. }) => {
                self.dialogue.close(Ok(()));
            }
            (Some(State::IperfDone), _) => self.dialogue.fail(client_closed()),
            (Some(State::TestEnd), Phase::Running) => {
                self.dialogue.push(ServerAction::StopData);
                self.dialogue.enter(now, Phase::Collecting, None);
            }
            _ => self.fail(ErrorCode::Message, 0, None),
        }
    }

    fn exchange(&mut self, now: Instant, mut results: Box<Results>) {
        // Other clients do not know these members.
        if !self.agreed.peer_is_linerate {
            results.linerate = false;
            results.ran_beside = None;
            results.overflows = None;
            results.facts = None;
        }

        self.dialogue.send_state(State::ExchangeResults);
        let reader = FrameReader::new(max_results_bytes_server(self.agreed.total_streams));
        let limit = Some(self.setup.policy.results_timeout);
        self.dialogue
            .enter(now, Phase::Exchanging(reader, results), limit);
    }

    fn overtime(&mut self) {
        let code = ErrorCode::ServerTestDurationExpired;
        self.send_error(code, 0);
        let words = "server test duration expired - test is terminated by the server";
        self.dialogue.fail(Failure::error(code.number(), words));
    }

    /// Ends the test because of a failure on this end, and notifies the client.
    fn fail(&mut self, code: ErrorCode, errno: i32, cause: Option<&str>) {
        self.send_error(code, errno);
        self.dialogue.fail(code.failure(cause));
    }

    fn send_error(&mut self, code: ErrorCode, errno: i32) {
        // Clients read the state, the error number and the errno, in this order.
        let mut bytes = vec![State::ServerError.byte()];
        bytes.extend_from_slice(&code.number().to_be_bytes());
        bytes.extend_from_slice(&errno.to_be_bytes());
        self.dialogue.push(ServerAction::Send(bytes));
    }
}

fn client_closed() -> Failure {
    let mut failure = Failure::new(
        FailureKind::PeerClosed,
        "the client has unexpectedly closed the connection",
    );
    failure.code = Some(ErrorCode::CtrlClose.number());
    failure
}

/// Linux's number for it (errno(3)).
const ETIMEDOUT: i32 = 110;
