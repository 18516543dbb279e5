//! A client of the registry: its protocol machine and what is known about it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use linerate_iperf3::wire::auth::Refusal;
use linerate_iperf3::wire::server::{AcceptedTest, Server as Machine, ServerAction, ServerInput};
use linerate_iperf3::wire::{Cookie, State};
use linerate_model::network::Network;
use linerate_model::service::RefusalReason;
use linerate_model::{Direction, Failure, Transport};

use super::quota_request;
use crate::dialect::iperf3::server::stream_numbers::StreamNumbers;
use crate::dialect::iperf3::server::work::Work;

/// State of a client.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It waits for its turn.
    Queued,
    /// The server requested its parameters.
    Negotiating,
    /// Its test is accepted.
    Accepted,
    /// Its streams are awaited.
    Opening,
    /// Its test runs, or its results are exchanged.
    Running,
}

pub(super) struct Client {
    pub peer: SocketAddr,
    pub cookie: Cookie,
    /// `None` while it waits.
    pub machine: Option<Box<Machine>>,
    pub stage: Stage,
    /// Nothing follows the last action any more.
    pub over: bool,
    /// Its time was up before its test began.
    pub fell_silent: bool,
    pub actions: VecDeque<ServerAction>,
    /// No action is handed out before.
    pub held_until: Option<Instant>,
    /// Since when the next data stream is awaited.
    pub awaits_since: Option<Instant>,
    /// Since when the UDP streams of its turn are awaited.
    pub opens_since: Option<Instant>,
    /// End of the wait, or of the test as planned.
    pub ends: Option<Instant>,
    pub agreed: Option<AgreedTest>,
    pub refused: Option<RefusalReason>,
    pub login: Option<Refusal>,
    /// Work of this client waits or is under way since then.
    pub works_since: Option<Instant>,
}

/// Agreed parameters.
#[derive(Clone, Copy)]
pub(super) struct AgreedTest {
    pub transport: Transport,
    /// The server sends to the client.
    pub sends: bool,
    pub missing_streams: u32,
    pub duration: Option<Duration>,
    pub first_position: u32,
}

impl Client {
    pub(super) fn new(
        peer: SocketAddr,
        cookie: Cookie,
        stage: Stage,
        ends: Option<Instant>,
    ) -> Self {
        Self {
            peer,
            cookie,
            machine: None,
            stage,
            over: false,
            fell_silent: false,
            actions: VecDeque::new(),
            held_until: None,
            awaits_since: None,
            opens_since: None,
            ends,
            agreed: None,
            refused: None,
            login: None,
            works_since: None,
        }
    }

    pub(super) fn agree(&mut self, test: &AcceptedTest, stream_numbers: &mut StreamNumbers) {
        let streams = test.spec.total_streams();
        self.stage = Stage::Accepted;
        self.agreed = Some(AgreedTest {
            transport: test.spec.transport,
            sends: test.spec.direction != Direction::Forward,
            missing_streams: streams,
            duration: quota_request::planned(&test.params),
            first_position: stream_numbers.take(streams),
        });
    }

    /// Its address, as far as one client can choose it.
    pub(super) fn network(&self) -> Network {
        Network::of_client(self.peer.ip())
    }

    pub(super) fn transport(&self) -> Option<Transport> {
        self.agreed.map(|t| t.transport)
    }

    fn awaits_streams(&self) -> bool {
        self.stage == Stage::Opening
            && !self.over
            && self.agreed.is_some_and(|t| t.missing_streams > 0)
    }

    pub(super) fn expects_connection(&self) -> bool {
        self.awaits_streams() && self.transport() != Some(Transport::Udp)
    }

    pub(super) fn opens_udp(&self) -> bool {
        self.awaits_streams() && self.transport() == Some(Transport::Udp)
    }

    pub(super) fn input(&mut self, now: Instant, input: ServerInput) {
        if let Some(machine) = &mut self.machine {
            machine.handle_local(now, input);
        }
    }

    /// Takes an action that is work for another thread.
    pub(super) fn set_aside(
        &mut self,
        now: Instant,
        action: ServerAction,
    ) -> Result<ServerAction, Work> {
        let work = match action {
            ServerAction::CheckLogin(login) => Work::Login(login),
            ServerAction::ParseResults(text) => Work::Results(text),
            action => return Ok(action),
        };
        self.works_since = Some(now);
        Err(work)
    }

    /// Ends a client that never had a session, with a last state byte.
    pub(super) fn reject(&mut self, word: State, failure: Failure) {
        if !self.over {
            self.actions
                .push_back(ServerAction::Send(vec![word.byte()]));
        }
        self.end(failure);
    }

    pub(super) fn end(&mut self, failure: Failure) {
        if !self.over {
            self.over = true;
            self.actions.push_back(ServerAction::Close(Err(failure)));
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let machine = self.machine.as_ref().and_then(|m| m.poll_timeout());
        let wait = self
            .ends
            .filter(|_| self.stage == Stage::Queued && !self.over);
        [machine, wait, self.held_until].into_iter().flatten().min()
    }
}
