//! Client and server machine joined by a simulated link in simulated time.

use std::time::{Duration, Instant};

use linerate_model::path::{EndpointPhase, LoadSample};
use linerate_native::wire::message::{ClockReply, Hello, Refusal};
use linerate_native::wire::server::CloseReason;
use linerate_native::wire::{client, server};

use crate::fuzzing::{ready, spec, welcome};

/// Each byte of the client's proof of its token.
pub(crate) const CLIENT_PROOF: u8 = 2;
/// The server's proof of it.
const SERVER_PROOF: [u8; 32] = [1; 32];

/// Two machines, the bytes between them, and owners that do their part.
pub(crate) struct Pair {
    pub now: Instant,
    pub client: client::Machine,
    pub server: server::Machine,
    /// A further connection whose first message has not arrived.
    incoming: Option<server::Machine>,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
    /// Bytes that arrive at once.
    pub segment: usize,
    /// Actions at each end, in the order of the actions; sent bytes are left out.
    pub client_log: Vec<String>,
    pub server_log: Vec<String>,
    /// Messages of the server.
    pub server_frames: u32,
    pub closed: Option<CloseReason>,
    /// The owners react.
    pub client_obeys: bool,
    pub server_obeys: bool,
    /// The network lets new connections pass.
    pub is_reachable: bool,
    phases_left: u32,
}

impl Pair {
    pub(crate) fn new(hello: Hello) -> Self {
        let now = Instant::now();
        let mut client = client::Machine::new(now);
        let server_proof = hello.token.as_ref().map(|_| SERVER_PROOF);

        client.handle_local(
            now,
            client::Input::Hello {
                hello: Box::new(hello),
                server_proof,
            },
        );
        Self {
            now,
            client,
            server: server::Machine::new(now),
            incoming: None,
            to_server: Vec::new(),
            to_client: Vec::new(),
            segment: usize::MAX,
            client_log: Vec::new(),
            server_log: Vec::new(),
            server_frames: 0,
            closed: None,
            client_obeys: true,
            server_obeys: true,
            is_reachable: true,
            phases_left: 2,
        }
    }

    /// Carries segments until both ends are idle, or until `limit` segments are carried.
    pub(crate) fn run(&mut self, limit: usize) -> usize {
        for carried in 0..limit {
            self.obey();
            if !self.carry() {
                return carried;
            }
        }

        self.obey();
        limit
    }

    /// Runs until an action of the client begins with `start`.
    pub(crate) fn run_until(&mut self, start: &str) {
        let reached = |pair: &Self| {
            pair.client_log
                .last()
                .is_some_and(|entry| entry.starts_with(start))
        };
        while !reached(self) {
            assert_eq!(
                self.run(1),
                1,
                "{start} is not reached: {:?} {:?}",
                self.client_log,
                self.server_log
            );
        }
    }

    /// The connection breaks, and both ends notice.
    pub(crate) fn cut(&mut self) {
        self.cut_at_client();
        self.server.control_lost(self.now);
        self.obey();
    }

    /// The connection breaks, and only the client notices.
    pub(crate) fn cut_at_client(&mut self) {
        self.to_server.clear();
        self.to_client.clear();
        self.client.control_lost(self.now);
    }

    /// Time passes. Both machines are called when they want to be, no later.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        let next = |pair: &Self| {
            [pair.client.poll_timeout(), pair.server.poll_timeout()]
                .into_iter()
                .flatten()
                .min()
        };
        while let Some(at) = next(self).filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
            self.run(usize::MAX);
        }

        self.now = end;
    }

    pub(crate) fn client_does(&mut self, input: client::Input) {
        self.client.handle_local(self.now, input);
    }

    pub(crate) fn server_does(&mut self, input: server::Input) {
        self.server.handle_local(self.now, input);
    }

    /// Bytes at the server as if the client had sent them.
    pub(crate) fn inject(&mut self, bytes: &[u8]) {
        self.server.handle_bytes(self.now, bytes);
        self.run(usize::MAX);
    }

    fn carry(&mut self) -> bool {
        let take = |bytes: &mut Vec<u8>| {
            bytes
                .drain(..self.segment.min(bytes.len()))
                .collect::<Vec<u8>>()
        };
        let (to_client, to_server) = (take(&mut self.to_client), take(&mut self.to_server));
        self.client.handle_bytes(self.now, &to_client);
        self.incoming
            .as_mut()
            .unwrap_or(&mut self.server)
            .handle_bytes(self.now, &to_server);

        !(to_client.is_empty() && to_server.is_empty())
    }

    pub(crate) fn obey(&mut self) {
        loop {
            let (client, server) = (self.client.poll_action(), self.server.poll_action());
            let incoming = self
                .incoming
                .as_mut()
                .and_then(server::Machine::poll_action);
            if client.is_none() && server.is_none() && incoming.is_none() {
                return;
            }

            client
                .into_iter()
                .for_each(|action| self.obey_client(action));
            server
                .into_iter()
                .for_each(|action| self.obey_server(action));
            incoming
                .into_iter()
                .for_each(|action| self.obey_incoming(action));
        }
    }

    fn obey_client(&mut self, action: client::Action) {
        use client::{Action as A, Input as I};

        assert_ne!(
            self.client_log.last().map(String::as_str),
            Some("Close"),
            "nothing follows the end"
        );
        let log = |text: &str| text.to_owned();
        let (entry, input) = match action {
            A::Send(bytes) => return self.to_server.extend(bytes),
            A::Welcome(_) => (log("Welcome"), Some(I::OpenPhase(Box::new(spec())))),
            A::Ready(ready) => (format!("Ready {}", ready.phase), Some(I::Start)),
            A::Started { .. } => (log("Started"), Some(I::Stop)),
            A::PhaseResult(result) => {
                self.phases_left = self.phases_left.saturating_sub(1);
                let next = if self.phases_left == 0 {
                    I::Bye
                } else {
                    I::WantFacts
                };
                (format!("PhaseResult {}", result.elapsed_ns), Some(next))
            }
            A::Facts(text) => (
                format!("Facts {text}"),
                Some(I::OpenPhase(Box::new(spec()))),
            ),
            A::Response(text) => (format!("Response {text}"), None),
            A::RequestRefused { clause, .. } => (format!("RequestRefused {clause}"), None),
            A::ConnectAgain if self.is_reachable => {
                self.client_log.push(log("ConnectAgain"));
                return self.dial();
            }
            A::Queued(turn) => (format!("Queued {}", turn.position), None),
            A::Refused(refusal) => (format!("Refused {}", refusal.clause), None),
            A::PhaseRefused(refusal) => (format!("PhaseRefused {}", refusal.clause), None),
            A::Failed(failure) => (format!("Failed {failure}"), None),
            A::Clock(ClockReply {
                sent_ns,
                received_ns,
                replied_ns,
            }) => (format!("Clock {sent_ns} {received_ns} {replied_ns}"), None),
            A::ConnectAgain => (log("ConnectAgain"), None),
            A::Resumed => (log("Resumed"), None),
            A::Close => (log("Close"), None),
        };
        self.client_log.push(entry);

        if let Some(input) = input.filter(|_| self.client_obeys) {
            self.client.handle_local(self.now, input);
        }
    }

    fn dial(&mut self) {
        (self.to_server, self.to_client) = (Vec::new(), Vec::new());
        self.incoming = Some(server::Machine::new(self.now));
        let point = self
            .client
            .resume_point()
            .expect("a session without a connection");
        self.client
            .resume(self.now, &proof(point.number, point.received));
    }

    fn obey_server(&mut self, action: server::Action) {
        use server::{Action as A, Input as I};

        assert_eq!(self.closed, None, "nothing follows the end");
        let (entry, input) = match action {
            A::Send(bytes) => {
                self.server_frames += 1;
                return self.to_client.extend(bytes);
            }
            A::Close(reason) => {
                self.closed = Some(reason);
                return;
            }
            A::CheckProof { token_name, proof } => {
                let is_right = proof == [CLIENT_PROOF; 32];
                (
                    format!("CheckProof {token_name}"),
                    Some(I::ProofChecked(is_right.then_some(SERVER_PROOF))),
                )
            }
            A::CheckLogin { user, password } => (
                format!("CheckLogin {user}"),
                Some(I::LoginChecked(password == "secret")),
            ),
            A::Admit(hello) => {
                assert_eq!(hello.password, None, "checked before");
                ("Admit".to_owned(), Some(I::Admitted(Box::new(welcome()))))
            }
            A::OpenPhase { phase, .. } => (format!("OpenPhase {phase}"), Some(I::Ready(ready(0)))),
            A::Start { phase } => (format!("Start {phase}"), Some(I::Started { at_ns: 5 })),
            A::Stop { phase } => {
                let result = EndpointPhase {
                    elapsed_ns: u64::from(phase),
                    ..EndpointPhase::default()
                };
                (
                    format!("Stop {phase}"),
                    Some(I::PhaseEnded(Box::new(result))),
                )
            }
            A::Clock { sent_ns } => (
                "Clock".to_owned(),
                Some(I::Clock(ClockReply {
                    sent_ns,
                    received_ns: sent_ns + 1,
                    replied_ns: sent_ns + 2,
                })),
            ),
            A::SendFacts => (
                "SendFacts".to_owned(),
                Some(I::Facts("{\"a\":1}".to_owned())),
            ),
            A::Request { name, body } => (
                format!("Request {name} {body}"),
                Some(I::Response(format!("[{body}]"))),
            ),
            A::Resume(_) => ("Resume".to_owned(), None),
            A::ControlLost => ("ControlLost".to_owned(), None),
        };
        self.server_log.push(entry);

        if let Some(input) = input.filter(|_| self.server_obeys) {
            self.server.handle_local(self.now, input);
        }
    }

    /// The registry of sessions: one of them, `s1`.
    fn obey_incoming(&mut self, action: server::Action) {
        let Some(incoming) = &mut self.incoming else {
            return;
        };
        match action {
            server::Action::Resume(resume) => {
                let wanted =
                    linerate_native::wire::hex::encode(&proof(resume.number, resume.received));
                let is_proven = resume.session == "s1" && resume.proof == wanted;
                if is_proven && self.server.resume(self.now, &resume).is_ok() {
                    incoming.handle_local(self.now, server::Input::HandedOver);
                } else {
                    let refusal = Refusal::new("resume", "unknown session");
                    incoming.handle_local(self.now, server::Input::Refused(refusal));
                }
            }
            server::Action::Send(bytes) => self.to_client.extend(bytes),
            server::Action::Close(_) => self.incoming = None,
            other => panic!("{other:?}"),
        }
    }
}

/// Replacement of the keyed hash.
fn proof(number: u64, received: u64) -> [u8; 32] {
    [(number as u8).wrapping_mul(7) ^ received as u8; 32]
}

pub(crate) fn sample(at_ns: u64) -> LoadSample {
    LoadSample {
        at_ns,
        ..LoadSample::default()
    }
}
