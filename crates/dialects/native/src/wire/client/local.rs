//! Requests of the owner in each state. One that comes too late, or too early, has no
//! effect.

use std::time::Instant;

use crate::wire::message::ClientMessage;

use super::{
    ANSWER_TIMEOUT, Action, FACTS_TIMEOUT, Input, Link, Machine, Phase, RESULT_TIMEOUT, State,
};

impl Machine {
    /// Takes a request of the owner.
    pub fn handle_local(&mut self, now: Instant, input: Input) {
        match (input, self.state) {
            (_, State::Closed) => {}
            (Input::Bye, _) => self.leave(now),
            (
                Input::Hello {
                    hello,
                    server_proof,
                },
                State::Idle,
            ) => {
                self.state = State::Greeting { server_proof };
                self.expect(now, "answer to hello", ANSWER_TIMEOUT);
                self.send(now, ClientMessage::Hello(hello));
            }
            (Input::Clock { sent_ns }, State::Session(_)) => {
                self.send(now, ClientMessage::Clock { sent_ns });
            }
            (Input::WantFacts, State::Session(_)) if self.facts_until.is_none() => {
                self.facts_until = now.checked_add(FACTS_TIMEOUT);
                self.send(now, ClientMessage::WantFacts);
            }
            (Input::Request { name, body }, State::Session(_)) if !self.request_pending => {
                self.request_pending = true;
                self.send(now, ClientMessage::Request { name, body });
            }
            (input, State::Session(present)) => self.handle_phase_input(now, input, present),
            _ => {}
        }
    }

    fn handle_phase_input(&mut self, now: Instant, input: Input, present: Phase) {
        match (input, present) {
            (Input::OpenPhase(spec), Phase::Absent) => {
                self.phase = self.phase.saturating_add(1);
                self.enter(Phase::Opening);
                self.expect(now, "ready", ANSWER_TIMEOUT);
                self.send(
                    now,
                    ClientMessage::OpenPhase {
                        phase: self.phase,
                        spec: *spec,
                    },
                );
            }
            (Input::Start, Phase::Ready) => {
                self.enter(Phase::Starting);
                self.expect(now, "started", ANSWER_TIMEOUT);
                self.send(now, ClientMessage::Start { phase: self.phase });
            }
            (Input::Stop, Phase::Opening | Phase::Ready | Phase::Starting | Phase::Running) => {
                self.enter(Phase::Stopping);
                self.expect(now, "phase_result", RESULT_TIMEOUT);
                self.send(now, ClientMessage::Stop { phase: self.phase });
            }
            _ => {}
        }
    }

    pub(super) fn enter(&mut self, phase: Phase) {
        self.state = State::Session(phase);
    }

    fn leave(&mut self, now: Instant) {
        if self.state != State::Idle && self.link == Link::Connected {
            self.send_last(now, ClientMessage::Bye);
        }

        self.actions
            .retain(|action| !matches!(action, Action::ConnectAgain));
        self.close();
    }
}
