//! One test seen from the client.
//!
//! The caller feeds what arrives on the control connection, what happens locally, and the time; it
//! carries out the actions in the order they are polled. The server leads the dialogue, so the
//! machine is a table of what each state byte means in each phase; a byte that makes no sense where
//! it arrives ends the test.

use std::time::{Duration, Instant};

use linerate_model::{Failure, FailureKind, TestSpec};

use crate::wire::cookie::Cookie;
use crate::wire::dialogue::{
    Dialogue, DialogueAction, DialoguePhase, TIMED_OUT, interrupted, terminated_by_peer,
};
use crate::wire::error_code::{ErrorCode, errno_text};
use crate::wire::framing::{FrameError, FrameReader, MAX_RESULTS_BYTES_CLIENT, frame};
use crate::wire::params::Params;
use crate::wire::results::Results;
use crate::wire::state::State;

/// Longest wait for each of the bytes 9, 10, 1 and 2. Real servers need up to 10 s until they
/// accept the next client.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest wait for byte 13, for the server's results and for byte 14, each.
pub const RESULTS_TIMEOUT: Duration = Duration::from_secs(60);

/// Setup of a client.
#[derive(Debug, Clone)]
pub struct ClientSetup {
    /// Name of the test.
    pub cookie: Cookie,
    /// The parameters for the server.
    pub params: Params,
    /// The test.
    pub spec: TestSpec,
}

/// Event on this end.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientInput {
    /// All data streams are open.
    StreamsOpened,
    /// The end condition is met.
    EndReached,
    /// Counters of this end.
    Results(Box<Results>),
    /// A signal wants this process to end; the text is that of the signal with its number,
    /// `Interrupt(2)`.
    Interrupted {
        /// Name and number.
        signal_text: String,
    },
    /// Something failed.
    Failed(Failure),
}

/// Action for the caller.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientAction {
    /// Send these bytes on the control connection.
    Send(Vec<u8>),
    /// The server is ready for this test; its parameters follow as `Send`.
    TestAccepted,
    /// Open the data streams and answer with `StreamsOpened` or `Failed`.
    OpenStreams,
    /// The measured time begins.
    StartClock,
    /// Move data.
    StartData,
    /// Answer with `Results`.
    CollectResults,
    /// Counters of the server.
    PeerResults(Box<Results>),
    /// Everything is known; show the summary.
    ShowResults,
    /// The test has ended; always the last action. Sent bytes should reach the peer before the
    /// connection is closed.
    Close(Result<(), Failure>),
}

/// Phase of the dialogue, with the part of an unfinished item that has arrived.
#[derive(Debug)]
enum Phase {
    /// The cookie is out, byte 9 is awaited.
    Greeting,
    /// The parameters are out, byte 10 is awaited.
    Offered,
    /// The caller opens streams. The server sees the last one earlier than we hear of it, so bytes
    /// 1 and 2 may already be here.
    Opening { started: bool, running: bool },
    /// Byte 1 is awaited.
    Opened,
    /// Byte 2 is awaited.
    Started,
    /// Data flows.
    Running,
    /// Byte 4 is out, byte 13 is awaited.
    Ended,
    /// The caller collects results.
    Collecting,
    /// Our results are out, the server's are awaited.
    Exchanging(FrameReader),
    /// Byte 14 is awaited.
    Exchanged,
    /// The server reports an error; its two numbers are awaited.
    ServerError(Vec<u8>),
    /// Ended; input is ignored.
    Closed,
}

impl DialoguePhase for Phase {
    const CLOSED: Self = Self::Closed;
}

impl DialogueAction for ClientAction {
    fn send(bytes: Vec<u8>) -> Self {
        Self::Send(bytes)
    }

    fn close(outcome: Result<(), Failure>) -> Self {
        Self::Close(outcome)
    }
}

/// A client's side of the control connection. Performs no I/O and reads no clock.
#[derive(Debug)]
pub struct Client {
    setup: ClientSetup,
    dialogue: Dialogue<Phase, ClientAction>,
}

impl Client {
    /// A client whose control connection is open. The first action sends the cookie.
    pub fn new(now: Instant, setup: ClientSetup) -> Self {
        let cookie = setup.cookie.wire().to_vec();
        let mut client = Self::introduced(now, setup);
        client.dialogue.push(ClientAction::Send(cookie));
        client
    }

    /// A client whose server has received the cookie. Nothing is sent before the server's answer.
    pub fn introduced(now: Instant, setup: ClientSetup) -> Self {
        Self {
            setup,
            dialogue: Dialogue::new(now, Phase::Greeting, HANDSHAKE_TIMEOUT),
        }
    }

    /// Replaces the parameters for the server. The segment size of the path, and with it the length
    /// of UDP blocks, is known only after the cookie was acknowledged; once the parameters are out
    /// this has no effect.
    pub fn revise(&mut self, params: Params, spec: TestSpec) {
        if matches!(self.dialogue.phase, Phase::Greeting) {
            self.setup.params = params;
            self.setup.spec = spec;
        }
    }

    /// Takes bytes of the control connection, in pieces of any size.
    pub fn handle_control(&mut self, now: Instant, bytes: &[u8]) {
        let mut input = bytes;
        while !input.is_empty() {
            match &mut self.dialogue.phase {
                Phase::Closed => return,
                Phase::Exchanging(reader) => match reader.read(&mut input) {
                    Ok(None) => {}
                    Ok(Some(text)) => self.handle_results(now, &text),
                    Err(refused) => self.handle_refused_results(now, refused),
                },
                Phase::ServerError(words) => {
                    // Error number and errno of the server, four bytes each
                    // (iperf_handle_message_client).
                    words.push(input[0]);
                    input = &input[1..];
                    if words.len() == SERVER_ERROR_WORDS_LEN {
                        self.report_server_error();
                    }
                }
                _ => {
                    let byte = input[0];
                    input = &input[1..];
                    self.handle_state(now, byte);
                }
            }
        }
    }

    /// The server closed the control connection.
    pub fn handle_control_eof(&mut self, _now: Instant) {
        match &self.dialogue.phase {
            Phase::Closed => {}
            Phase::ServerError(_) => self.report_server_error(),
            // A server that ends now sends a state where the length of its results is awaited.
            Phase::Exchanging(reader) => match reader.lone_byte().and_then(State::from_byte) {
                Some(State::ServerTerminate) => self
                    .dialogue
                    .fail(terminated_by_peer(ErrorCode::ServerTerm)),
                Some(State::ServerError) => self.report_server_error(),
                _ => self.dialogue.fail(ErrorCode::RecvResults.failure(None)),
            },
            Phase::Offered => self.dialogue.fail(self.refused_without_a_word()),
            _ => self.dialogue.fail(ErrorCode::CtrlClose.failure(None)),
        }
    }

    /// The control connection broke; `cause` is the system's text.
    pub fn handle_control_error(&mut self, _now: Instant, cause: &str) {
        let code = match &self.dialogue.phase {
            Phase::Closed => return,
            // What has arrived of the server's error is more precise than the broken connection.
            Phase::ServerError(_) => return self.report_server_error(),
            Phase::Exchanging(_) => ErrorCode::RecvResults,
            _ => ErrorCode::RecvMessage,
        };
        self.dialogue.fail(code.failure(Some(cause)));
    }

    /// Takes what happened on this end.
    pub fn handle_local(&mut self, now: Instant, input: ClientInput) {
        match (input, &self.dialogue.phase) {
            (_, Phase::Closed) => {}
            (ClientInput::Interrupted { signal_text }, _) => {
                self.dialogue.send_state(State::ClientTerminate);
                let failure = interrupted(ErrorCode::ClientTerm, &signal_text);
                self.dialogue.fail(failure);
            }
            // The server's reason is on its way and explains ours.
            (ClientInput::Failed(_), Phase::ServerError(_)) => {}
            (ClientInput::Failed(failure), _) => self.abort(failure),
            (ClientInput::StreamsOpened, Phase::Opening { started, running }) => {
                // States that arrived while the streams were opened take effect now, in their
                // order.
                let started = *started;
                let running = *running;
                self.dialogue
                    .enter(now, Phase::Opened, Some(HANDSHAKE_TIMEOUT));

                if started {
                    self.handle_state(now, State::TestStart.byte());
                }

                if running {
                    self.handle_state(now, State::TestRunning.byte());
                }
            }
            // The server stops counting at this byte; bytes in flight count for the sender alone.
            (ClientInput::EndReached, Phase::Running) => {
                self.dialogue.send_state(State::TestEnd);
                self.dialogue
                    .enter(now, Phase::Ended, Some(RESULTS_TIMEOUT));
            }
            (ClientInput::Results(results), Phase::Collecting) => {
                self.dialogue
                    .push(ClientAction::Send(frame(&results.to_json())));
                let reader = FrameReader::new(MAX_RESULTS_BYTES_CLIENT);
                self.dialogue
                    .enter(now, Phase::Exchanging(reader), Some(RESULTS_TIMEOUT));
            }
            // Local events cross the server's on their way; the late ones have lost their meaning.
            (ClientInput::StreamsOpened | ClientInput::EndReached | ClientInput::Results(_), _) => {
            }
        }
    }

    /// Takes the time, at or after [`Self::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        if !self.dialogue.is_due(now) {
            return;
        }

        match &self.dialogue.phase {
            Phase::ServerError(_) => self.report_server_error(),
            Phase::Ended | Phase::Exchanging(_) | Phase::Exchanged => {
                self.abort(ErrorCode::RecvResults.failure(Some(TIMED_OUT)));
            }
            _ => self.abort(ErrorCode::RecvMessage.failure(Some(TIMED_OUT))),
        }
    }

    /// When [`Self::handle_timeout`] wants to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.dialogue.deadline()
    }

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<ClientAction> {
        self.dialogue.next_action()
    }

    fn handle_state(&mut self, now: Instant, byte: u8) {
        match (State::from_byte(byte), &mut self.dialogue.phase) {
            (Some(State::ServerError), _) => {
                self.dialogue
                    .enter(now, Phase::ServerError(Vec::new()), Some(HANDSHAKE_TIMEOUT));
            }
            (Some(State::AccessDenied), _) => {
                self.dialogue.fail(ErrorCode::AccessDenied.failure(None));
            }
            (Some(State::ServerTerminate), _) => {
                self.abort(terminated_by_peer(ErrorCode::ServerTerm));
            }
            (Some(State::ParamExchange), Phase::Greeting) => {
                self.dialogue.push(ClientAction::TestAccepted);
                self.dialogue
                    .push(ClientAction::Send(frame(&self.setup.params.to_json())));
                self.dialogue
                    .enter(now, Phase::Offered, Some(HANDSHAKE_TIMEOUT));
            }
            (Some(State::CreateStreams), Phase::Offered) => {
                self.dialogue.push(ClientAction::OpenStreams);
                let started = false;
                let running = false;
                self.dialogue
                    .enter(now, Phase::Opening { started, running }, None);
            }
            (
                Some(State::TestStart),
                Phase::Opening {
                    started: started @ false,
                    ..
                },
            ) => *started = true,
            (
                Some(State::TestRunning),
                Phase::Opening {
                    started: true,
                    running: running @ false,
                },
            ) => *running = true,
            (Some(State::TestStart), Phase::Opened) => {
                self.dialogue.push(ClientAction::StartClock);
                self.dialogue
                    .enter(now, Phase::Started, Some(HANDSHAKE_TIMEOUT));
            }
            // The caller knows the end condition, so there is no deadline here.
            (Some(State::TestRunning), Phase::Started) => {
                self.dialogue.push(ClientAction::StartData);
                self.dialogue.enter(now, Phase::Running, None);
            }
            (Some(State::ExchangeResults), Phase::Ended) => {
                self.dialogue.push(ClientAction::CollectResults);
                self.dialogue.enter(now, Phase::Collecting, None);
            }
            // The server waits for this last byte before it accepts the next client.
            (Some(State::DisplayResults), Phase::Exchanged) => {
                self.dialogue.push(ClientAction::ShowResults);
                self.dialogue.send_state(State::IperfDone);
                self.dialogue.close(Ok(()));
            }
            _ => self.abort(ErrorCode::Message.failure(None)),
        }
    }

    fn handle_results(&mut self, now: Instant, text: &[u8]) {
        match Results::parse(text) {
            // An id beyond the agreed number belongs to no stream of this test.
            Ok(results) if !results.name_only_streams_below(self.setup.spec.total_streams()) => {
                self.abort(ErrorCode::StreamId.failure(None));
            }
            Ok(results) => {
                self.dialogue
                    .push(ClientAction::PeerResults(Box::new(results)));
                self.dialogue
                    .enter(now, Phase::Exchanged, Some(RESULTS_TIMEOUT));
            }
            Err(code) => self.abort(code.failure(None)),
        }
    }

    /// A server that fails now sends its error where the length of its results is awaited.
    fn handle_refused_results(&mut self, now: Instant, refused: FrameError) {
        if let FrameError::TooLong {
            announced_bytes, ..
        } = refused
        {
            let [first, words @ ..] = announced_bytes.to_be_bytes();
            if first == State::ServerError.byte() {
                let words = Phase::ServerError(words.to_vec());
                return self.dialogue.enter(now, words, Some(HANDSHAKE_TIMEOUT));
            }
        }

        self.abort(ErrorCode::RecvResults.failure(Some(&refused.to_string())));
    }

    /// The server's error as far as it arrived. Releases differ in how many they send.
    fn report_server_error(&mut self) {
        let words = match &self.dialogue.phase {
            Phase::ServerError(words) => words.as_slice(),
            _ => &[],
        };
        // A connection may break after the first number; then the errno counts as 0.
        let word = |at: usize| Some(i32::from_be_bytes(*words.get(at..)?.first_chunk()?));
        let errno = word(4).unwrap_or(0);
        let errno_text = errno_text(errno);
        let message = match word(0) {
            Some(number) => ErrorCode::from_number(number).message(errno_text.as_deref()),
            None => "server error".to_owned(),
        };
        let code = word(0);
        let kind = FailureKind::Peer { errno, errno_text };
        let mut failure = Failure::new(kind, message);
        failure.code = code;
        self.dialogue.fail(failure);
    }

    /// Some releases refuse parameters and credentials by closing the connection.
    fn refused_without_a_word(&self) -> Failure {
        let mut failure = ErrorCode::CtrlClose.failure(None);
        failure.message += match self.setup.params.auth_token {
            Some(_) => " (directly after the parameters: wrong credentials or padding?)",
            None => " (directly after the parameters: the server may want credentials)",
        };
        failure
    }

    /// Gives up. The server is notified once it has identified itself.
    fn abort(&mut self, failure: Failure) {
        if !matches!(self.dialogue.phase, Phase::Greeting) {
            self.dialogue.send_state(State::IperfDone);
        }
        self.dialogue.fail(failure);
    }
}

const SERVER_ERROR_WORDS_LEN: usize = 8;
