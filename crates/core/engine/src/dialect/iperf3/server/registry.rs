//! Admission and protocol state of all clients of a server. Performs no I/O and reads no clock.
//!
//! A client has sent its cookie. The registry holds the protocol machine of each client, feeds it,
//! and hands out its actions; between the two it enforces what concerns more than one session:
//! admission, limits, the order in which UDP sessions open their streams. What happens on one
//! session reaches another one only through these rules.

mod client;
mod quota_request;
mod turn_times;
mod udp_turns;
mod work;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::Instant;

use linerate_iperf3::wire::auth::Refusal;
use linerate_iperf3::wire::server::{
    AcceptedTest, Server as Machine, ServerAction, ServerInput, ServerSetup,
};
use linerate_iperf3::wire::{Cookie, ErrorCode, State};
use linerate_model::network::Network;
use linerate_model::service::RefusalReason;
use linerate_model::{Failure, FailureKind, Transport};

use super::stream_numbers::StreamNumbers;
use super::work::Work;
use crate::dialect::iperf3::error::input;
use crate::error::EngineError;
use crate::server::limits::address_queue::AddressQueue;
use crate::server::limits::login_guard::LoginGuard;
use crate::server::timers::Timers;
use crate::server::{Admission, Decision};
use client::Client;
pub(crate) use client::Stage;
use turn_times::TurnTimes;

/// All clients of a server. Clients are numbered by the caller, in the order in which their
/// connections came.
#[derive(Default)]
pub(crate) struct SessionRegistry {
    allow_split_address: bool,
    clients: BTreeMap<u64, Client>,
    by_cookie: HashMap<Cookie, u64>,
    logins: LoginGuard,
    stream_numbers: StreamNumbers,
    /// Prepared UDP tests whose turn to open streams has not come.
    udp_queue: VecDeque<u64>,
    turn_times: TurnTimes,
    ready: BTreeSet<u64>,
    timers: Timers,
    work: AddressQueue<Work>,
}

/// Decision on a connection whose cookie is complete.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AdmissionDecision {
    /// It is a data stream of this client.
    Stream(u64),
    /// It is a new client; the caller gives it a session with [`SessionRegistry::begin`].
    Admitted,
    /// It is a new client that waits for its turn.
    Queued,
    /// It is not served.
    Refused(RefusalReason),
}

impl SessionRegistry {
    pub(crate) fn new(allow_split_address: bool) -> Self {
        Self {
            allow_split_address,
            ..Self::default()
        }
    }

    /// True when a new connection can be neither a new client nor a stream of one, so that it is
    /// refused unread.
    pub(crate) fn is_busy(&self, admission: &Admission) -> bool {
        let expects =
            |g: &Client| g.stage == Stage::Opening && g.transport() != Some(Transport::Udp);
        admission.is_exclusive() && !self.clients.is_empty() && !self.clients.values().any(expects)
    }

    /// The cookie of a connection is complete.
    pub(crate) fn admit_connection(
        &mut self,
        now: Instant,
        id: u64,
        peer: SocketAddr,
        cookie: Cookie,
        admission: &mut Admission,
    ) -> AdmissionDecision {
        if let Some(owner) = self.by_cookie.get(&cookie) {
            return match self.clients.get(owner) {
                Some(client) if client.expects_connection() => AdmissionDecision::Stream(*owner),
                // A cookie is the only name of a stream, so a second client with it could take over
                // the streams of the first.
                _ => AdmissionDecision::Refused(RefusalReason::DuplicateCookie),
            };
        }

        let (decision, stage, ends) = match admission.decide(id, Network::of_client(peer.ip()), now)
        {
            Decision::Admitted => (AdmissionDecision::Admitted, Stage::Negotiating, None),
            Decision::Queued(wait_max) => (
                AdmissionDecision::Queued,
                Stage::Queued,
                now.checked_add(wait_max),
            ),
            Decision::Refused(reason) => return AdmissionDecision::Refused(reason),
        };
        let client = Client::new(peer, cookie, stage, ends);
        self.by_cookie.insert(cookie, id);
        self.timers.set(id, client.next_timeout());
        self.clients.insert(id, client);

        decision
    }

    /// The next waiting client whose turn has come; the caller gives it a session with
    /// [`SessionRegistry::begin`].
    pub(crate) fn next_turn(&mut self, admission: &mut Admission) -> Option<u64> {
        let id = admission.next_turn(|id| self.clients.contains_key(&id))?;
        let client = self.clients.get_mut(&id)?;
        client.stage = Stage::Negotiating;
        client.ends = None;
        Some(id)
    }

    /// Begins the dialogue with a client.
    pub(crate) fn begin(&mut self, now: Instant, id: u64, setup: ServerSetup) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.machine = Some(Box::new(Machine::new(now, setup)));
        }
        self.take_actions(now, id);
    }

    /// Forgets a client whose last action was carried out.
    pub(crate) fn remove(&mut self, now: Instant, id: u64, admission: &mut Admission) {
        // All traces at once: numbers ascend and are never used again, so a stale one finds
        // nothing.
        let Some(client) = self.clients.remove(&id) else {
            return;
        };
        self.by_cookie.remove(&client.cookie);
        admission.release(id, now);
        self.udp_queue.retain(|&other| other != id);
        self.ready.remove(&id);
        self.timers.set(id, None);
        self.work.leave(id, client.network());

        if let Some(agreed) = client.agreed {
            self.stream_numbers.release(agreed.first_position);
        }

        // The turn may have been held by this client.
        self.advance_udp_queue(now);
    }

    /// Takes bytes of a client's control connection.
    pub(crate) fn handle_control(&mut self, now: Instant, id: u64, bytes: &[u8]) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        match &mut client.machine {
            Some(machine) => machine.handle_control(now, bytes),
            // A queued client sends nothing before the server requests its parameters.
            None => client.reject(State::AccessDenied, ErrorCode::Message.failure(None)),
        }

        self.note_refused_login(now, id, now);
        self.take_actions(now, id);
    }

    /// A client closed its control connection.
    pub(crate) fn handle_control_eof(&mut self, now: Instant, id: u64) {
        self.handle_control_end(now, id, |machine| machine.handle_control_eof(now));
    }

    /// A client's control connection broke.
    pub(crate) fn handle_control_error(&mut self, now: Instant, id: u64, cause: &str) {
        self.handle_control_end(now, id, |machine| machine.handle_control_error(now, cause));
    }

    fn handle_control_end(&mut self, now: Instant, id: u64, input: impl FnOnce(&mut Machine)) {
        if let Some(client) = self.clients.get_mut(&id) {
            match &mut client.machine {
                Some(machine) => input(machine),
                None => client.end(client_left()),
            }
        }

        self.take_actions(now, id);
    }

    /// Takes what happened on this end of a client's test.
    pub(crate) fn handle_local(&mut self, now: Instant, id: u64, input: ServerInput) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let input = match input {
            ServerInput::Prepared if client.transport() == Some(Transport::Udp) => {
                // Streams of UDP carry no name: `CREATE_STREAMS` is delayed until no other test may
                // claim them.
                self.udp_queue.push_back(id);
                return self.advance_udp_queue(now);
            }
            input => input,
        };
        if let (ServerInput::StreamOpened, Some(agreed)) = (&input, &mut client.agreed) {
            agreed.missing_streams = agreed.missing_streams.saturating_sub(1);
            client.awaits_since = Some(now);
        }

        client.input(now, input);
        self.take_actions(now, id);
    }

    /// Takes the time, at or after [`SessionRegistry::next_timeout`].
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        for id in self.timers.take_due(now) {
            if let Some(client) = self.clients.get_mut(&id) {
                if client.held_until.is_some_and(|t| t <= now) {
                    client.held_until = None;
                }

                match &mut client.machine {
                    Some(machine) => {
                        let is_due = machine.poll_timeout().is_some_and(|t| t <= now);
                        // Only before the test: a client that is silent then may be a port scan,
                        // and does not end a server with `-1`.
                        client.fell_silent = is_due && client.stage != Stage::Running;
                        machine.handle_timeout(now);
                    }
                    None if client.ends.is_some_and(|t| t <= now) => {
                        client.refused = Some(RefusalReason::QueueTooLong);
                        client.reject(State::AccessDenied, ErrorCode::AccessDenied.failure(None));
                    }
                    None => {}
                }
            }

            self.take_actions(now, id);
        }

        // After the clients' own deadlines: one that ended by itself has given its turn back.
        self.end_long_udp_turns(now);
    }

    /// When [`SessionRegistry::handle_timeout`] is due.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let turns = self.udp_turns().map(|(_, end)| end);
        self.timers.next().into_iter().chain(turns).min()
    }

    /// Ends a client because of a rule.
    pub(crate) fn evict(&mut self, now: Instant, id: u64, reason: RefusalReason) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.refused = Some(reason);
            match client.machine {
                Some(_) => client.input(now, input(&EngineError::Refused(reason))),
                None => client.reject(State::AccessDenied, ErrorCode::AccessDenied.failure(None)),
            }
        }

        self.take_actions(now, id);
    }

    /// Notifies every client that the server ends.
    pub(crate) fn terminate(&mut self, now: Instant, signal_text: &str) {
        let ids: Vec<u64> = self.clients.keys().copied().collect();
        for id in ids {
            if let Some(client) = self.clients.get_mut(&id) {
                client.held_until = None;
                match client.machine {
                    Some(_) => client.input(
                        now,
                        ServerInput::Terminated {
                            signal_text: signal_text.to_owned(),
                        },
                    ),
                    None => {
                        client.reject(State::ServerTerminate, ErrorCode::ServerTerm.failure(None));
                    }
                }
            }

            self.take_actions(now, id);
        }
    }

    /// A client with something to do.
    pub(crate) fn next_ready(&mut self) -> Option<u64> {
        self.ready.pop_first()
    }

    /// The next thing to do for a client.
    pub(crate) fn poll_action(&mut self, id: u64) -> Option<ServerAction> {
        let client = self.clients.get_mut(&id)?;
        if client.held_until.is_some() {
            return None;
        }
        client.actions.pop_front()
    }

    pub(crate) fn stage(&self, id: u64) -> Option<Stage> {
        self.clients.get(&id).map(|g| g.stage)
    }

    /// The rule that ended a client.
    pub(crate) fn refusal(&self, id: u64) -> Option<RefusalReason> {
        self.clients.get(&id)?.refused
    }

    /// A client sent nothing more before its test began.
    pub(crate) fn fell_silent(&self, id: u64) -> bool {
        self.clients.get(&id).is_some_and(|g| g.fell_silent)
    }

    /// Why a client could not log in.
    pub(crate) fn login_failure(&self, id: u64) -> Option<&Refusal> {
        self.clients.get(&id)?.login.as_ref()
    }

    /// Position from which the streams of a client are shown.
    pub(crate) fn first_position(&self, id: u64) -> u32 {
        self.clients
            .get(&id)
            .and_then(|g| g.agreed)
            .map_or(0, |t| t.first_position)
    }

    /// Enters the test of [`ServerAction::Accepted`], if it is within the limits. Otherwise its
    /// client is refused and the action is void.
    pub(crate) fn agree(
        &mut self,
        now: Instant,
        id: u64,
        test: &AcceptedTest,
        admission: &mut Admission,
    ) -> bool {
        let Some(client) = self.clients.get_mut(&id) else {
            return false;
        };
        match admission.take(id, quota_request::of(client.peer.ip(), test)) {
            Ok(()) => client.agree(test, &mut self.stream_numbers),
            Err(reason) => {
                self.evict(now, id, reason);
                return false;
            }
        }

        true
    }

    /// Takes the actions of a client's machine, and applies their effect on others.
    fn take_actions(&mut self, now: Instant, id: u64) {
        let mut streams_are_open = false;
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        while let Some(action) = client.machine.as_mut().and_then(|m| m.poll_action()) {
            let action = match client.set_aside(now, action) {
                Ok(action) => action,
                Err(work) => {
                    self.work.enter(id, client.network(), work);
                    continue;
                }
            };
            match &action {
                ServerAction::ExpectStreams(_) => {
                    client.stage = Stage::Opening;
                    client.awaits_since = Some(now);
                    client.opens_since =
                        (client.transport() == Some(Transport::Udp)).then_some(now);
                }
                ServerAction::StartClock => {
                    client.stage = Stage::Running;
                    client.ends = client
                        .agreed
                        .and_then(|t| t.duration)
                        .and_then(|d| now.checked_add(d));
                    streams_are_open = true;
                }
                ServerAction::Close(_) => {
                    client.over = true;
                    streams_are_open = true;
                }
                _ => {}
            }

            client.actions.push_back(action);
        }

        if !client.actions.is_empty() && client.held_until.is_none() {
            self.ready.insert(id);
        }
        self.timers.set(id, client.next_timeout());

        if streams_are_open {
            self.end_udp_turn(now, id);
        }
    }
}

fn client_left() -> Failure {
    let mut failure = ErrorCode::CtrlClose.failure(None);
    failure.kind = FailureKind::PeerClosed;
    failure
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
