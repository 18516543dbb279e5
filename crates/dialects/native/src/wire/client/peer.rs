//! Messages of the server in each state.

use std::time::Instant;

use crate::wire::message::{ClientMessage, Message, Ready, Refusal, ServerMessage, Welcome};

use super::{ANSWER_TIMEOUT, Action, Link, Machine, Phase, ProtocolFailure, State};

impl Machine {
    pub(super) fn handle_message(&mut self, now: Instant, message: ServerMessage) {
        match message {
            ServerMessage::Fault(fault) => self.fail(ProtocolFailure::PeerFault(fault)),
            ServerMessage::Bye { reason } => self.fail(ProtocolFailure::Ended { reason }),
            // Until the server has answered, the numbers of both ends may differ.
            message if matches!(self.link, Link::Resuming { .. }) => {
                self.handle_resuming(now, message);
            }
            // Its arrival was its purpose.
            ServerMessage::Keep if self.state != State::Idle => {}
            message => match self.state {
                State::Session(present) => self.handle_session(now, message, present),
                _ => self.handle_opening(now, message),
            },
        }
    }

    fn handle_resuming(&mut self, now: Instant, message: ServerMessage) {
        match message {
            ServerMessage::Resumed { received } => self.resumed(now, received),
            ServerMessage::Refused(Refusal { text, .. }) => {
                self.fail(ProtocolFailure::NotResumed { text });
            }
            message => self.wrong(now, message.unexpected()),
        }
    }

    fn handle_opening(&mut self, now: Instant, message: ServerMessage) {
        match (message, self.state) {
            (ServerMessage::Refused(refusal), State::Greeting { .. } | State::Awaiting) => {
                self.actions.push_back(Action::Refused(refusal));
                self.close();
            }
            (
                ServerMessage::Prove { proof },
                State::Greeting {
                    server_proof: Some(expected),
                },
            ) => {
                // Each session has another proof: the time of one comparison helps with no other.
                if crate::wire::hex::decode(&proof) == Some(expected) {
                    self.state = State::Awaiting;
                    self.expect(now, "welcome", ANSWER_TIMEOUT);
                } else {
                    self.send_last(now, ClientMessage::Bye);
                    self.fail(ProtocolFailure::Unproven);
                }
            }
            // A server that does not prove the token first may be another one.
            (
                ServerMessage::Welcome(_) | ServerMessage::Turn(_),
                State::Greeting {
                    server_proof: Some(_),
                },
            ) => {
                self.fail(ProtocolFailure::Unproven);
            }
            (ServerMessage::Welcome(welcome), State::Greeting { .. } | State::Awaiting) => {
                self.begin(welcome);
            }
            (ServerMessage::Turn(turn), State::Greeting { .. } | State::Awaiting) => {
                self.state = State::Awaiting;
                // The wait may be long; silence of the connection still ends it.
                self.awaited = None;
                self.actions.push_back(Action::Queued(turn));
            }
            (message, _) => self.wrong(now, message.unexpected()),
        }
    }

    fn begin(&mut self, welcome: Box<Welcome>) {
        self.awaited = None;
        self.session.clone_from(&welcome.session);
        self.enter(Phase::Absent);
        self.actions.push_back(Action::Welcome(welcome));
    }

    fn handle_session(&mut self, now: Instant, message: ServerMessage, present: Phase) {
        match (message, present) {
            (ServerMessage::Clock(reply), _) => self.actions.push_back(Action::Clock(reply)),
            (ServerMessage::Facts { facts }, _) => {
                // Those that come too late were reported as absent.
                if self.facts_until.take().is_some() {
                    self.actions.push_back(Action::Facts(facts.into_string()));
                }
            }
            (ServerMessage::Response { body }, _) if self.request_pending => {
                self.end_request(Action::Response(body.into_string()));
            }
            (ServerMessage::RequestRefused { clause, text }, _) if self.request_pending => {
                self.end_request(Action::RequestRefused { clause, text });
            }
            (ServerMessage::Ready(ready), Phase::Opening | Phase::Stopping)
                if ready.phase == self.phase =>
            {
                self.ready(ready, present);
            }
            (ServerMessage::Refused(refusal), Phase::Opening | Phase::Stopping) => {
                self.end_phase(Action::PhaseRefused(refusal));
            }
            (ServerMessage::Started { phase, at_ns }, Phase::Starting | Phase::Stopping)
                if phase == self.phase =>
            {
                // A stop may have crossed it.
                if present == Phase::Starting {
                    self.awaited = None;
                    self.enter(Phase::Running);
                    self.actions.push_back(Action::Started { at_ns });
                }
            }
            (
                ServerMessage::PhaseResult { phase, result },
                Phase::Ready | Phase::Starting | Phase::Running | Phase::Stopping,
            ) if phase == self.phase => self.end_phase(Action::PhaseResult(result)),
            (message, _) => self.wrong(now, message.unexpected()),
        }
    }

    /// A stop may have crossed it.
    fn ready(&mut self, ready: Ready, present: Phase) {
        if present == Phase::Opening {
            self.awaited = None;
            self.enter(Phase::Ready);
            self.actions.push_back(Action::Ready(ready));
        }
    }

    fn end_phase(&mut self, action: Action) {
        self.awaited = None;
        self.enter(Phase::Absent);
        self.actions.push_back(action);
    }

    fn end_request(&mut self, action: Action) {
        self.request_pending = false;
        self.actions.push_back(action);
    }
}
