//! Messages of the client in each state.

use std::time::{Duration, Instant};

use linerate_model::path::{PhaseKind, PhaseSpec};

use crate::wire::message::{
    ClientMessage, Fault, Hello, Message, STREAMS_MAX, TRANSACTION_STREAMS_MAX,
};

use super::{
    Action, CloseReason, Machine, PHASE_MAX, PHASES_MAX, Phase, RESULT_TIMEOUT, SESSION_MAX, State,
};

impl Machine {
    pub(super) fn handle_message(&mut self, now: Instant, message: ClientMessage) {
        match message {
            ClientMessage::Fault(fault) => self.close(CloseReason::PeerFault(fault)),
            ClientMessage::Bye if self.is_session() => self.close(CloseReason::Bye),
            ClientMessage::Bye => self.close(CloseReason::Left),
            _ if self.is_session() => self.handle_session(now, message),
            _ => self.handle_opening(now, message),
        }
    }

    /// Messages before the session begins.
    fn handle_opening(&mut self, now: Instant, message: ClientMessage) {
        let state = std::mem::replace(&mut self.state, State::Greeting);
        match (state, message) {
            (State::Greeting, ClientMessage::Hello(hello)) => self.greet(now, hello),
            (State::Greeting, ClientMessage::Resume(resume)) => {
                self.state = State::Resuming;
                self.deadline = None;
                self.actions.push_back(Action::Resume(resume));
            }
            // A client may leave the queue before its turn.
            (State::Admitting { .. }, ClientMessage::Stop { .. }) => self.close(CloseReason::Left),
            (state, ClientMessage::Keep) => self.state = state,
            (state, message) => {
                self.state = state;
                self.out_of_state(now, &message);
            }
        }
    }

    fn greet(&mut self, now: Instant, hello: Box<Hello>) {
        self.deadline = None;
        let Some(token) = &hello.token else {
            return self.check_login(hello);
        };
        let Some(proof) = crate::wire::hex::decode(&token.proof) else {
            return self.fault(now, Fault::new("token.proof", "not 64 hexadecimal digits"));
        };
        self.actions.push_back(Action::CheckProof {
            token_name: token.name.clone(),
            proof,
        });
        self.state = State::Checking(hello);
    }

    /// The password is checked after the token.
    pub(super) fn check_login(&mut self, mut hello: Box<Hello>) {
        match (&hello.user, hello.password.take()) {
            (Some(user), Some(password)) => {
                self.actions.push_back(Action::CheckLogin {
                    user: user.clone(),
                    password,
                });
                self.state = State::Checking(hello);
            }
            _ => self.request_admission(hello),
        }
    }

    pub(super) fn request_admission(&mut self, hello: Box<Hello>) {
        // The requested duration is bounded before it becomes a deadline.
        let duration_max = Duration::from_nanos(hello.duration_max_ns).min(SESSION_MAX);
        self.state = State::Admitting { duration_max };
        self.actions.push_back(Action::Admit(hello));
    }

    fn handle_session(&mut self, now: Instant, message: ClientMessage) {
        let State::Session(present) = self.state else {
            return;
        };
        match (message, present) {
            (ClientMessage::Keep, _) => {}
            (ClientMessage::Clock { sent_ns }, _) => {
                self.actions.push_back(Action::Clock { sent_ns });
            }
            // Requests before the answer are one request.
            (ClientMessage::WantFacts, _) if self.facts_requested => {}
            (ClientMessage::WantFacts, _) => {
                self.facts_requested = true;
                self.actions.push_back(Action::SendFacts);
            }
            (ClientMessage::Request { name, body }, _) if !self.request_pending => {
                self.request_pending = true;
                self.actions.push_back(Action::Request {
                    name,
                    body: body.into_string(),
                });
            }
            (ClientMessage::Request { .. }, _) => {
                self.fault(
                    now,
                    Fault::new("type", "request while another one is pending"),
                );
            }
            (ClientMessage::OpenPhase { phase, spec }, Phase::Absent) => {
                self.open_phase(now, phase, spec);
            }
            (ClientMessage::OpenPhase { .. }, _) => {
                self.fault(
                    now,
                    Fault::new("type", "open_phase while another phase is open"),
                );
            }
            (
                ClientMessage::Start { phase },
                Phase::Ready {
                    phase: ready,
                    duration_max,
                },
            ) if phase == ready => {
                self.deadline = None;
                self.state = State::Session(Phase::Starting {
                    phase,
                    duration_max,
                });
                self.actions.push_back(Action::Start { phase });
            }
            (ClientMessage::Stop { phase }, present) => self.stop_phase(now, phase, present),
            // The phase ended by itself while this message was under way.
            (ClientMessage::Start { phase }, Phase::Absent)
                if phase == self.phase_last && phase > 0 => {}
            (ClientMessage::Start { .. }, Phase::Ready { .. }) => {
                self.fault(
                    now,
                    Fault::new("phase", "not the number of the phase that is open"),
                );
            }
            (message, _) => self.out_of_state(now, &message),
        }
    }

    fn open_phase(&mut self, now: Instant, phase: u32, spec: PhaseSpec) {
        // Late messages of an earlier phase are recognised by their lower number.
        if phase <= self.phase_last {
            return self.fault(
                now,
                Fault::new("phase", format!("{phase} is not above {}", self.phase_last)),
            );
        }

        // Refused phases count, or a client could ask without end.
        self.phase_last = phase;
        if phase > PHASES_MAX {
            let text = "the session has had as many phases as it may";
            let limit = Some(PHASES_MAX.into());
            return self.send_refusal(now, "phases", text, limit);
        }

        if let Some((clause, text, limit)) = impossible(&spec) {
            return self.send_refusal(now, clause, text, limit);
        }

        self.state = State::Session(Phase::Opening {
            phase,
            duration_max: spec.duration_max,
        });
        self.actions.push_back(Action::OpenPhase {
            phase,
            spec: Box::new(spec),
        });
    }

    fn stop_phase(&mut self, now: Instant, phase: u32, present: Phase) {
        match present {
            Phase::Opening { phase: open, .. }
            | Phase::Ready { phase: open, .. }
            | Phase::Starting { phase: open, .. }
            | Phase::Running { phase: open }
                if open == phase =>
            {
                self.state = State::Session(Phase::Stopping { phase });
                // A phase without a result would block the session.
                self.deadline = now.checked_add(RESULT_TIMEOUT);
                self.actions.push_back(Action::Stop { phase });
            }
            // The phase ended by itself, or was refused, while this message was under way.
            Phase::Absent if phase == self.phase_last && phase > 0 => {}
            Phase::Absent => self.fault(now, Fault::new("type", "stop without a phase")),
            Phase::Stopping { .. } => self.fault(
                now,
                Fault::new("type", "stop of a phase that is being stopped"),
            ),
            _ => self.fault(
                now,
                Fault::new("phase", "not the number of the phase that is open"),
            ),
        }
    }

    fn out_of_state(&mut self, now: Instant, message: &ClientMessage) {
        let mut fault = message.unexpected();
        if matches!(message, ClientMessage::Hello(_)) && self.is_session() {
            fault.text.insert_str(0, "second ");
        }
        self.fault(now, fault);
    }
}

/// Parameters that no server can serve: clause, explanation, limit.
fn impossible(spec: &PhaseSpec) -> Option<(&'static str, &'static str, Option<u64>)> {
    use PhaseKind as K;

    let needs_streams = matches!(spec.kind, K::Down | K::Up | K::Both | K::Rr | K::Crr);
    let streams_max = match spec.kind {
        K::Rr | K::Crr | K::Cps => TRANSACTION_STREAMS_MAX,
        _ => STREAMS_MAX,
    };
    let phase_max_ns = u64::try_from(PHASE_MAX.as_nanos()).unwrap_or(u64::MAX);

    if needs_streams && spec.streams_max == 0 {
        Some(("streams", "a phase with load needs a stream", None))
    } else if spec.streams_max > streams_max {
        Some(("streams", "too many streams", Some(u64::from(streams_max))))
    } else if spec.probe_flows > PROBE_FLOWS_MAX {
        Some((
            "probe_flows",
            "too many probe flows",
            Some(u64::from(PROBE_FLOWS_MAX)),
        ))
    } else if spec.rate_bps == Some(0) {
        Some(("rate", "a rate of 0", None))
    } else if spec.datagram_bytes > DATAGRAM_BYTES_MAX {
        Some((
            "datagram_bytes",
            "too long datagrams",
            Some(u64::from(DATAGRAM_BYTES_MAX)),
        ))
    } else if spec.duration_max.is_zero() {
        Some(("duration", "a phase of no length", None))
    } else if spec.duration_max > PHASE_MAX {
        Some(("duration", "too long a phase", Some(phase_max_ns)))
    } else {
        None
    }
}

/// Largest UDP payload over IPv4.
const DATAGRAM_BYTES_MAX: u32 = 65_507;
/// Most probe flows of a phase.
const PROBE_FLOWS_MAX: u32 = 8;
