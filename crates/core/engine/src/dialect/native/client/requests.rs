//! Requests beside the phases of a session, and a session that is kept for them.

use std::time::Duration;

use linerate_native::wire::client::{Action, Input};
use linerate_native::wire::message::{JsonText, REQUESTS};
use linerate_sys::clock;

use super::NativeError;
use super::control::{ANSWER_TIMEOUT, NativeClient};
use super::event_loop::EventLoop;
use crate::interrupts::Interrupts;

impl NativeClient {
    /// Sends a request, and returns its response; both are JSON.
    ///
    /// # Errors
    /// [`NativeError::RequestRefused`] leaves the session as it was; after any other error it can
    /// send no request.
    pub fn request(
        &mut self,
        name: &str,
        body: &str,
        timeout: Duration,
        interrupts: &dyn Interrupts,
    ) -> Result<String, NativeError> {
        let refused = |text: &str| NativeError::RequestRefused {
            clause: "request".to_owned(),
            text: text.to_owned(),
        };
        if !self.has_feature(REQUESTS) {
            return Err(refused("it handles no requests"));
        }

        let body = JsonText::new(body.to_owned()).ok_or_else(|| refused("its body is no JSON"))?;
        self.push_input(Input::Request {
            name: name.to_owned(),
            body,
        });

        let mut events = EventLoop::new(interrupts)?;
        self.await_action(timeout, &mut events, |action| match action {
            Action::Response(response) => Some(Ok(response.clone())),
            Action::RequestRefused { clause, text } => Some(Err(NativeError::RequestRefused {
                clause: clause.clone(),
                text: text.clone(),
            })),
            _ => None,
        })?
    }

    pub(super) fn has_feature(&self, name: &str) -> bool {
        self.welcome()
            .features
            .iter()
            .any(|feature| feature == name)
    }

    /// Round trip of a message over the control connection.
    ///
    /// # Errors
    /// See [`NativeError`].
    pub fn round_trip(&mut self, interrupts: &dyn Interrupts) -> Result<Duration, NativeError> {
        let sent_ns = clock::monotonic_ns();
        self.push_input(Input::Clock { sent_ns });
        let mut events = EventLoop::new(interrupts)?;
        self.await_action(ANSWER_TIMEOUT, &mut events, |action| {
            matches!(action, Action::Clock(reply) if reply.sent_ns == sent_ns).then_some(())
        })?;

        Ok(Duration::from_nanos(
            clock::monotonic_ns().saturating_sub(sent_ns),
        ))
    }

    /// Keeps a session without requests alive; to be called every few seconds.
    ///
    /// # Errors
    /// See [`NativeError`].
    pub fn keep(&mut self, interrupts: &dyn Interrupts) -> Result<(), NativeError> {
        self.on_control();
        self.on_time(interrupts)
    }
}
