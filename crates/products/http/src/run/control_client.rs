//! Sends the lab's requests to a control channel.
//!
//! A session of the native dialect has deadlines between two requests as well, so it lives in a
//! thread that keeps it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use linerate_engine::StopHandle;
use linerate_engine::dialect::native::client::{
    self, Announcement, NativeClient, NativeError, Opened, Target,
};
use linerate_host::connect_advice::{CONTROL_SERVER, connect_failure};
use linerate_path::run::identity;
use linerate_path::spec::IdentityOptions;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::leave_to_others;

/// Failure of a request.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(super) struct ControlError {
    text: String,
    /// The server at the address is another one than before, or does not prove the token.
    pub is_wrong_key: bool,
}

impl ControlError {
    /// No response in any attempt, the last of which failed because of `why`.
    fn lost(server: &Target, why: impl std::fmt::Display) -> Self {
        Self {
            text: format!("the control channel at {server} does not respond: {why}"),
            is_wrong_key: false,
        }
    }
}

/// A session with a control channel, opened at the first request and again after a loss.
pub(super) struct ControlSession {
    server: Target,
    identity: IdentityOptions,
    /// Never requests a stop: a signal ends the load, not a request.
    interrupts: StopHandle,
    client: Option<NativeClient>,
    /// Remarks for the user about the key of the server.
    pub remarks: Vec<String>,
}

/// A request: name, argument, and whether a lost channel is tried again.
pub(super) struct Request {
    name: &'static str,
    body: String,
    pauses: &'static [Duration],
}

/// A session in a thread of its own, which keeps it between requests. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct ControlClient {
    server: Target,
    tasks: Sender<Task>,
}

type Task = Box<dyn FnOnce(&mut ControlSession) + Send>;

/// Longest wait for a response; collecting facts takes the server a part of a second.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(4);
/// Longest wait for a connection.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);
/// Delays before further attempts.
const RETRY_PAUSES: [Duration; 3] = [
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(2),
];
/// No attempt begins later.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two polls of a session without requests, which sends a sign of life every five
/// seconds.
const KEEP_PERIOD: Duration = Duration::from_secs(1);
/// Rounds of the clock comparison; the fastest one counts.
const CLOCK_ROUNDS: u32 = 16;
/// Longest session that a server grants; the next request opens another one.
const SESSION_MAX: Duration = Duration::from_secs(4 * 3600);

impl Request {
    /// A request that is repeated where the channel is lost.
    pub(super) fn new(name: &'static str, argument: &impl Serialize) -> Self {
        // Arguments are plain texts and numbers, whose serialisation cannot fail.
        let body = serde_json::to_string(argument).unwrap_or_default();
        Self {
            name,
            body,
            pauses: &RETRY_PAUSES,
        }
    }

    /// In one attempt: for a channel that may not exist, or whose response is soon obsolete.
    pub(super) fn once(self) -> Self {
        Self {
            pauses: &[],
            ..self
        }
    }
}

impl ControlSession {
    /// Sends a request. All requests are idempotent, so one whose response is lost is sent again.
    ///
    /// # Errors
    /// Any.
    pub(super) fn request<T: DeserializeOwned>(
        &mut self,
        request: &Request,
    ) -> Result<T, ControlError> {
        let response = self.response(request)?;
        serde_json::from_str(&response).map_err(|error| {
            let server = &self.server;
            let name = request.name;
            ControlError {
                text: format!("control channel at {server}: response to {name}: {error}"),
                is_wrong_key: false,
            }
        })
    }

    fn response(&mut self, request: &Request) -> Result<String, ControlError> {
        let end = Instant::now() + TOTAL_TIMEOUT;
        let mut pauses = request.pauses.iter().copied();

        loop {
            let reason = match self.attempt(request) {
                Ok(response) => return Ok(response),
                Err(reason) => reason,
            };

            // A refused request leaves the session intact; any other failure has ended it.
            if !matches!(reason, NativeError::RequestRefused { .. }) {
                self.client = None;
            }

            if is_final(&reason) {
                return Err(ControlError {
                    text: format!("control channel at {}: {reason}", self.server),
                    is_wrong_key: matches!(reason, NativeError::Identity(_)),
                });
            }

            match pauses.next().filter(|pause| Instant::now() + *pause < end) {
                Some(pause) => thread::sleep(pause),
                None => {
                    let host = self.server.host.as_str();
                    let port = self.server.port;
                    let why = match reason {
                        NativeError::ConnectionRefused(_) | NativeError::Unreachable(_) => {
                            connect_failure(&reason.to_string(), host, port, CONTROL_SERVER)
                        }
                        _ => reason.to_string(),
                    };
                    return Err(ControlError::lost(&self.server, why));
                }
            }
        }
    }

    fn attempt(&mut self, request: &Request) -> Result<String, NativeError> {
        let mut client = match self.client.take() {
            Some(client) => client,
            None => self.open()?,
        };
        let response = client.request(
            request.name,
            &request.body,
            RESPONSE_TIMEOUT,
            &self.interrupts,
        );

        // After a failure that ended the session the caller drops it.
        self.client = Some(client);
        response
    }

    fn open(&mut self) -> Result<NativeClient, NativeError> {
        let announcement = Announcement {
            // The session carries requests alone, so it announces no traffic.
            streams_max: 0,
            connections_max: 0,
            duration_max: SESSION_MAX,
            kinds: Vec::new(),
            wants_facts: false,
            bytes_max: None,
            wait_max: Duration::ZERO,
        };
        let demand = identity::demand(&self.identity, &self.server)
            .map_err(|error| NativeError::Identity(error.to_string()))?;

        match client::open(
            &self.server,
            &demand,
            &announcement,
            &mut |_| (),
            &self.interrupts,
        )? {
            Opened::Native(client) => {
                self.remarks = identity::remember(&self.server, client.peer());
                Ok(*client)
            }
            Opened::Iperf3(_) => Err(NativeError::NotNative(
                "an iperf3 server listens there".to_owned(),
            )),
        }
    }

    /// The fastest of some round trips; `None` without a session.
    pub(super) fn round_trip(&mut self) -> Option<Duration> {
        let client = self.client.as_mut()?;
        (0..CLOCK_ROUNDS)
            .map_while(|_| client.round_trip(&self.interrupts).ok())
            .min()
    }

    fn keep_alive(&mut self) {
        if self
            .client
            .as_mut()
            .is_some_and(|client| client.keep(&self.interrupts).is_err())
        {
            // The next request opens another one.
            self.client = None;
        }
    }
}

/// Runs tasks until their sender is gone, and keeps the session meanwhile.
fn serve(tasks: &Receiver<Task>, mut session: ControlSession) {
    // Ctrl-C ends the load, for which another thread waits.
    leave_to_others();
    loop {
        match tasks.recv_timeout(KEEP_PERIOD) {
            Ok(task) => task(&mut session),
            Err(RecvTimeoutError::Timeout) => session.keep_alive(),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }

    // A session that is closed in order leaves the server no timeout to wait for.
    if let Some(client) = session.client {
        client.close();
    }
}

/// True if another attempt would fail as well.
fn is_final(reason: &NativeError) -> bool {
    use NativeError as E;
    matches!(
        reason,
        E::Identity(_) | E::NotNative(_) | E::Refused { .. } | E::RequestRefused { .. }
    )
}

impl ControlClient {
    /// A client of this channel; it connects at the first request.
    ///
    /// # Errors
    /// Where this host has no thread or descriptor left.
    pub(super) fn start(server: Target, identity: IdentityOptions) -> Result<Self, ControlError> {
        let (tasks, inbox) = channel();
        // Made here, where its failure has a receiver; the session itself cannot change threads.
        let interrupts =
            StopHandle::new().map_err(|error| ControlError::lost(&server, error.text()))?;
        let theirs = server.clone();
        let body = move || {
            let session = ControlSession {
                server: theirs,
                identity,
                interrupts,
                client: None,
                remarks: Vec::new(),
            };
            serve(&inbox, session);
        };
        thread::Builder::new()
            .name("lr-control".into())
            .spawn(body)
            .map_err(|error| ControlError::lost(&server, error))?;

        Ok(Self { server, tasks })
    }

    /// Sends a request and waits for its response, for at most `wait_max`; the thread ends after
    /// its own timeouts.
    ///
    /// # Errors
    /// Any.
    pub(super) fn request<T: DeserializeOwned + Send + 'static>(
        &self,
        request: Request,
        wait_max: Option<Duration>,
    ) -> Result<T, ControlError> {
        let response = self.begin(move |session| session.request(&request));
        let response = match wait_max {
            Some(wait_max) => response
                .recv_timeout(wait_max)
                .map_err(|_| "no response in time"),
            None => response.recv().map_err(|_| "its thread has ended"),
        };
        response.unwrap_or_else(|why| Err(ControlError::lost(&self.server, why)))
    }

    /// Runs a function with the session, in its thread; the result arrives unless that has ended.
    pub(super) fn begin<R: Send + 'static>(
        &self,
        task: impl FnOnce(&mut ControlSession) -> R + Send + 'static,
    ) -> Receiver<R> {
        let (done, outcome) = channel();
        let task: Task = Box::new(move |session| drop(done.send(task(session))));
        // Without its thread the task is dropped, and with it the sender of the result.
        let _ = self.tasks.send(task);
        outcome
    }
}
