//! Client and server machine joined in simulated time.

use std::fmt;
use std::time::{Duration, Instant};

use linerate_iperf3::wire::{
    Client, ClientAction, ClientInput, ClientSetup, Cookie, Params, Policy, Results, Server,
    ServerAction, ServerInput, ServerSetup,
};
use linerate_model::spec::{ClientSpec, LocalOptions};
use linerate_model::{Direction, Failure, TestSpec};

use crate::items::{Item, Items};

type Outcome = Result<(), Failure>;

/// Two machines and the bytes between them.
pub(crate) struct Pair {
    pub now: Instant,
    pub client: Client,
    pub server: Option<Server>,
    pub policy: Policy,
    /// All bytes of each side.
    pub client_sent: Vec<u8>,
    pub server_sent: Vec<u8>,
    /// Part of it that has arrived.
    pub server_received: usize,
    pub client_received: usize,
    /// Bytes that arrive at once.
    pub segment: usize,
    pub client_actions: Vec<String>,
    pub server_actions: Vec<String>,
    pub client_outcome: Option<Outcome>,
    pub server_outcome: Option<Outcome>,
    /// Counters of the engines.
    pub client_results: Results,
    pub server_results: Results,
    /// The engines do their part.
    pub client_obeys: bool,
    pub server_obeys: bool,
}

impl Pair {
    pub(crate) fn new(test: TestSpec) -> Self {
        Self::with_token(test, None)
    }

    pub(crate) fn with_token(test: TestSpec, token: Option<String>) -> Self {
        let now = Instant::now();
        let len = test.block_len_bytes;
        let spec = client_spec(test);
        let params = Params::from_client(&spec, len, token);
        let setup = ClientSetup {
            cookie: Cookie::from_random([9; 36]),
            params,
            spec: spec.test,
        };

        Self {
            now,
            client: Client::new(now, setup),
            server: None,
            policy: Policy::default(),
            client_sent: Vec::new(),
            server_sent: Vec::new(),
            server_received: 0,
            client_received: 0,
            segment: usize::MAX,
            client_actions: Vec::new(),
            server_actions: Vec::new(),
            client_outcome: None,
            server_outcome: None,
            client_results: results(),
            server_results: results(),
            client_obeys: true,
            server_obeys: true,
        }
    }

    /// Carries segments until both sides are idle, or until `limit` segments are carried.
    pub(crate) fn run(&mut self, limit: usize) -> usize {
        for carried in 0..limit {
            self.obey();
            if !self.carry_one() {
                return carried;
            }
        }

        self.obey();
        limit
    }

    pub(crate) fn run_to_end(&mut self) {
        self.run(usize::MAX);
    }

    /// Runs until data flows.
    pub(crate) fn run_until_running(&mut self) {
        self.run_to_end();
        assert_eq!(
            self.client_actions.last().map(String::as_str),
            Some("StartData")
        );
    }

    pub(crate) fn end_data(&mut self) {
        self.client.handle_local(self.now, ClientInput::EndReached);
        self.run_to_end();
    }

    pub(crate) fn carry_one(&mut self) -> bool {
        let (now, segment) = (self.now, self.segment);
        let next = |sent: &[u8], received: usize| {
            sent[received..sent.len().min(received.saturating_add(segment))].to_vec()
        };

        if self.server.is_none() {
            let Some(cookie) = self.client_sent.first_chunk::<37>() else {
                return false;
            };
            self.server_received = cookie.len();

            let setup = ServerSetup {
                cookie: Cookie::parse(cookie),
                policy: self.policy.clone(),
                unix_s: 1_800_000_000,
            };
            self.server = Some(Server::new(now, setup));
            return true;
        }

        let to_client = next(&self.server_sent, self.client_received);
        let to_server = next(&self.client_sent, self.server_received);
        self.client_received += to_client.len();
        self.server_received += to_server.len();
        self.client.handle_control(now, &to_client);

        if let Some(server) = &mut self.server {
            server.handle_control(now, &to_server);
        }

        !(to_client.is_empty() && to_server.is_empty())
    }

    /// Both engines execute their actions.
    pub(crate) fn obey(&mut self) {
        while let Some(action) = self.client.poll_action() {
            assert_eq!(self.client_outcome, None, "nothing follows the end");
            self.client_actions.push(name(&action));

            match action {
                ClientAction::Send(bytes) => self.client_sent.extend(bytes),
                ClientAction::Close(outcome) => self.client_outcome = Some(outcome),
                ClientAction::OpenStreams if self.client_obeys => {
                    self.open_streams();
                }
                ClientAction::CollectResults if self.client_obeys => {
                    self.client.handle_local(
                        self.now,
                        ClientInput::Results(Box::new(self.client_results.clone())),
                    );
                }
                _ => {}
            }
        }

        let Some(server) = &mut self.server else {
            return;
        };
        while let Some(action) = server.poll_action() {
            assert_eq!(self.server_outcome, None, "nothing follows the end");
            self.server_actions.push(name(&action));

            match action {
                ServerAction::Send(bytes) => self.server_sent.extend(bytes),
                ServerAction::Close(outcome) => self.server_outcome = Some(outcome),
                ServerAction::Accepted(_) if self.server_obeys => {
                    server.handle_local(self.now, ServerInput::Prepared);
                }
                ServerAction::StopData if self.server_obeys => {
                    server.handle_local(
                        self.now,
                        ServerInput::Results(Box::new(self.server_results.clone())),
                    );
                }
                _ => {}
            }
        }
    }

    /// The server's engine accepts the last stream before the client's has opened it.
    pub(crate) fn open_streams(&mut self) {
        let server = self.server.as_mut().expect("it asked for streams");
        for _ in 0..4 {
            server.handle_local(self.now, ServerInput::StreamOpened);
        }

        self.client
            .handle_local(self.now, ClientInput::StreamsOpened);
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now += time;
        self.client.handle_timeout(self.now);

        if let Some(server) = &mut self.server {
            server.handle_timeout(self.now);
        }

        self.obey();
    }

    pub(crate) fn cut_at_server(&mut self) {
        let server = self.server.as_mut().expect("a session");
        server.handle_control_eof(self.now);
        self.obey();
    }

    pub(crate) fn cut_at_client(&mut self) {
        self.client.handle_control_eof(self.now);
        self.obey();
    }

    pub(crate) fn server_local(&mut self, input: ServerInput) {
        self.server
            .as_mut()
            .expect("a session")
            .handle_local(self.now, input);
        self.run_to_end();
    }

    pub(crate) fn client_failure(&self) -> &Failure {
        self.client_outcome
            .as_ref()
            .expect("closed")
            .as_ref()
            .expect_err("a failure")
    }

    pub(crate) fn server_failure(&self) -> &Failure {
        self.server_outcome
            .as_ref()
            .expect("closed")
            .as_ref()
            .expect_err("a failure")
    }
}

/// Two streams.
pub(crate) fn test() -> TestSpec {
    TestSpec {
        streams: 2,
        direction: Direction::Bidirectional,
        ..TestSpec::default()
    }
}

pub(crate) fn client_spec(test: TestSpec) -> ClientSpec {
    ClientSpec::new("server", LocalOptions::default(), test)
}

pub(crate) fn results() -> Results {
    Results {
        streams: Vec::new(),
        linerate: true,
        ..crate::fuzzing::sample_results()
    }
}

/// The name of an action.
fn name(action: &impl fmt::Debug) -> String {
    format!("{action:?}")
        .chars()
        .take_while(char::is_ascii_alphanumeric)
        .collect()
}

/// The states among the items.
pub(crate) fn states(items: Items<'_>) -> Vec<i8> {
    let state = |item| {
        if let Item::State(state) = item {
            Some(state)
        } else {
            None
        }
    };
    items.filter_map(state).collect()
}
