//! Decisions of the owner in each state. One that arrives too late has no effect.

use std::time::{Duration, Instant};

use linerate_model::path::EndpointPhase;

use crate::wire::message::{JsonText, Ready, Refusal, ServerMessage, Turn, Welcome};

use super::{CloseReason, Input, Machine, OVERTIME, Phase, SESSION_OVERTIME, State, TURN_SPACING};

/// Room in a message for a text of JSON.
const JSON_MAX_BYTES: usize = (crate::wire::message::SERVER_MESSAGE_MAX_BYTES as usize) - 1024;
/// One text for each kind of proof, whatever is wrong with it: another one would tell which names
/// exist.
const TOKEN_REFUSED: &str = "the token is not accepted: compare its name and secret with the file \
                             of the server, and after many failures wait some seconds";
const LOGIN_REFUSED: &str = "the login is not accepted";
/// Notes of a result; a message may hold some more.
const NOTES_MAX: usize = 60;

impl Machine {
    /// Takes a decision or a measurement of the owner.
    pub fn handle_local(&mut self, now: Instant, input: Input) {
        match input {
            Input::Stopping(reason) if !matches!(self.state, State::Closed) => {
                self.stop(now, &reason, CloseReason::Stopping);
            }
            Input::Refused(refusal) if !self.is_session() => self.refuse(now, refusal),
            input if self.is_session() => self.handle_session_input(now, input),
            input => self.handle_opening_input(now, input),
        }
    }

    fn handle_opening_input(&mut self, now: Instant, input: Input) {
        let state = std::mem::replace(&mut self.state, State::Greeting);
        match (state, input) {
            (State::Checking(hello), Input::ProofChecked(Some(proof))) => {
                self.send(
                    now,
                    ServerMessage::Prove {
                        proof: crate::wire::hex::encode(&proof),
                    },
                );
                self.check_login(hello);
            }
            (State::Checking(hello), Input::LoginChecked(true)) => self.request_admission(hello),
            (State::Checking(_), Input::ProofChecked(None)) => {
                self.refuse_proof(now, "token", TOKEN_REFUSED);
            }
            (State::Checking(_), Input::LoginChecked(false)) => {
                self.refuse_proof(now, "login", LOGIN_REFUSED);
            }
            (State::Admitting { duration_max }, Input::Admitted(welcome)) => {
                self.admit(now, duration_max, welcome);
            }
            (State::Admitting { duration_max }, Input::Queued(turn)) => {
                self.state = State::Admitting { duration_max };
                self.queue(now, turn);
            }
            (State::Resuming, Input::HandedOver) => self.close(CloseReason::HandedOver),
            (state, _) => self.state = state,
        }
    }

    fn refuse(&mut self, now: Instant, refusal: Refusal) {
        if matches!(self.state, State::Closed) {
            return;
        }

        let clause = refusal.clause.clone();
        self.send(now, ServerMessage::Refused(refusal));
        self.close(CloseReason::Refused { clause });
    }

    fn refuse_proof(&mut self, now: Instant, clause: &str, text: &str) {
        self.send_refusal(now, clause, text, None);
        self.close(CloseReason::Unproven);
    }

    pub(super) fn send_refusal(
        &mut self,
        now: Instant,
        clause: &str,
        text: &str,
        limit: Option<u64>,
    ) {
        let refusal = Refusal {
            limit: limit.map(|limit| limit.to_string()),
            ..Refusal::new(clause, text)
        };
        self.send(now, ServerMessage::Refused(refusal));
    }

    fn admit(&mut self, now: Instant, duration_max: Duration, welcome: Box<Welcome>) {
        self.state = State::Session(Phase::Absent);
        // The welcome fixes the end of the whole session, however often it is resumed.
        self.session_end = now.checked_add(duration_max.saturating_add(SESSION_OVERTIME));
        self.send(now, ServerMessage::Welcome(welcome));
    }

    fn queue(&mut self, now: Instant, turn: Turn) {
        let is_early = |at: Instant| now.saturating_duration_since(at) < TURN_SPACING;
        if !self.turn_at.is_some_and(is_early) {
            // Each change of a long queue would otherwise be a message to every client in it.
            self.turn_at = Some(now);
            self.send(now, ServerMessage::Turn(turn));
        }
    }

    fn handle_session_input(&mut self, now: Instant, input: Input) {
        let State::Session(present) = self.state else {
            return;
        };
        match (input, present) {
            (
                Input::Ready(ready),
                Phase::Opening {
                    phase,
                    duration_max,
                },
            ) => {
                self.state = State::Session(Phase::Ready {
                    phase,
                    duration_max,
                });
                self.send(now, ServerMessage::Ready(Ready { phase, ..ready }));
            }
            (Input::PhaseRefused(refusal), Phase::Opening { .. }) => {
                self.state = State::Session(Phase::Absent);
                self.send(now, ServerMessage::Refused(refusal));
            }
            (
                Input::Started { at_ns },
                Phase::Starting {
                    phase,
                    duration_max,
                },
            ) => {
                self.state = State::Session(Phase::Running { phase });
                self.deadline = now.checked_add(duration_max.saturating_add(OVERTIME));
                self.send(now, ServerMessage::Started { phase, at_ns });
            }
            (
                Input::PhaseEnded(result),
                Phase::Ready { phase, .. }
                | Phase::Starting { phase, .. }
                | Phase::Running { phase }
                | Phase::Stopping { phase },
            ) => self.end_phase(now, phase, result),
            (Input::Clock(reply), _) => self.send(now, ServerMessage::Clock(reply)),
            (Input::Facts(text), _) if self.facts_requested => {
                self.facts_requested = false;
                // Facts that do not fit are absent rather than an error.
                let facts = sendable(text).unwrap_or_else(JsonText::null);
                self.send(now, ServerMessage::Facts { facts });
            }
            (Input::Response(text), _) if self.request_pending => {
                self.request_pending = false;
                self.send(now, response(text));
            }
            (Input::RequestRefused { clause, text }, _) if self.request_pending => {
                self.request_pending = false;
                self.send(now, ServerMessage::RequestRefused { clause, text });
            }
            _ => {}
        }
    }

    fn end_phase(&mut self, now: Instant, phase: u32, mut result: Box<EndpointPhase>) {
        self.state = State::Session(Phase::Absent);
        self.deadline = None;
        fit(&mut result);
        self.send(now, ServerMessage::PhaseResult { phase, result });
    }
}

/// JSON that fits in a message.
fn sendable(text: String) -> Option<JsonText> {
    let fits = text.len() <= JSON_MAX_BYTES;
    fits.then(|| JsonText::new(text)).flatten()
}

fn response(text: String) -> ServerMessage {
    match sendable(text) {
        Some(body) => ServerMessage::Response { body },
        None => ServerMessage::RequestRefused {
            clause: "response".to_owned(),
            text: format!("the response is no JSON, or longer than {JSON_MAX_BYTES} bytes"),
        },
    }
}

/// Leaves out lists of a result that a message cannot hold, with a note for each.
fn fit(result: &mut EndpointPhase) {
    use crate::wire::message::{LOAD_SAMPLES_MAX, SERVER_MESSAGE_MAX_BYTES};

    result.notes.truncate(NOTES_MAX);
    if result.load.len() > LOAD_SAMPLES_MAX {
        result.load.truncate(LOAD_SAMPLES_MAX);
        result
            .notes
            .push(format!("load after {LOAD_SAMPLES_MAX} samples is left out"));
    }

    // Room for the other members of the message.
    let max_bytes = SERVER_MESSAGE_MAX_BYTES as usize - 1024;
    let fits = |result: &EndpointPhase| {
        serde_json::to_vec(result).is_ok_and(|text| text.len() <= max_bytes)
    };
    if !fits(result) {
        // The totals of the phase remain.
        result.streams = Vec::new();
        result
            .notes
            .push("streams are left out: the message would be above 1 MiB".to_owned());
    }

    if !fits(result) {
        result.load = Vec::new();
        result.notes =
            vec!["load and streams are left out: the message would be above 1 MiB".to_owned()];
    }
}
