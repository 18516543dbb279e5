//! Bytes, time, and connections that come and go.

use std::time::Instant;

use crate::wire::exchange::earliest;
use crate::wire::message::{Fault, Resume, ServerMessage};

use super::{Action, CloseReason, Machine, Phase, RESUME_MAX, RESUME_SPACING, ResumeError, State};

impl Machine {
    /// Takes plaintext of the control connection, in pieces of any size.
    pub fn handle_bytes(&mut self, now: Instant, bytes: &[u8]) {
        let mut input = bytes;
        while !input.is_empty() && self.is_connected() {
            match self.exchange.receive(now, &mut input) {
                Ok(None) => {}
                Ok(Some(message)) => self.handle_message(now, message),
                Err(fault) => self.fault(now, fault),
            }
        }

        self.keep_alive(now);
    }

    /// The control connection was closed or broke. A session continues for [`RESUME_MAX`]; anything
    /// else has ended.
    pub fn control_lost(&mut self, now: Instant) {
        if !self.is_connected() {
            return;
        }

        match self.state {
            State::Session(_) => self.disconnect(now),
            // There is no session yet that could be resumed.
            State::Greeting | State::Admitting { .. } => self.close(CloseReason::Left),
            _ => self.close(CloseReason::Lost),
        }
    }

    /// Continues the session over a new connection, whose proof the owner has verified. The old one
    /// is to be closed; bytes of it that are not sent are to be dropped.
    ///
    /// # Errors
    /// When the session cannot continue over this connection. The present one stays.
    pub fn resume(&mut self, now: Instant, resume: &Resume) -> Result<(), ResumeError> {
        if !self.is_session() {
            return Err(ResumeError::NoSession);
        }

        let is_fresh = |at: Instant| now.saturating_duration_since(at) < RESUME_SPACING;
        // Two connections that replace each other in turn would keep both ends busy.
        if self.lost_since.is_none() && self.resumed_at.is_some_and(is_fresh) {
            return Err(ResumeError::TooSoon);
        }

        let (_, received) = self.exchange.numbers();
        // A client that has sent less than arrived is not the one of this session.
        if resume.number < received {
            return Err(ResumeError::Numbers);
        }

        let frames = self
            .exchange
            .repeat(now, resume.received)
            .ok_or(ResumeError::Numbers)?;
        // The owner has verified the proof, so the old connection counts for nothing.
        self.drop_unsent();
        self.exchange.attach(now);
        self.lost_since = None;
        self.resumed_at = Some(now);

        match self
            .exchange
            .frame(now, ServerMessage::Resumed { received })
        {
            Ok(frame) => self.actions.push_back(Action::Send(frame)),
            Err(fault) => self.fault(now, fault),
        }

        self.actions.extend(frames.into_iter().map(Action::Send));
        Ok(())
    }

    /// Takes the time, at or after [`Self::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        let is_due = |deadline: Option<Instant>| deadline.is_some_and(|deadline| now >= deadline);
        match self.state {
            State::Closed => return,
            // First: a client that keeps resuming must not outlive its agreed duration.
            _ if is_due(self.session_end) => return self.end_at_limit(now),
            State::Session(Phase::Stopping { .. }) if is_due(self.deadline) => {
                return self.stop(now, "the server has no result", CloseReason::ResultLate);
            }
            State::Session(_) if is_due(self.deadline) => return self.end_at_limit(now),
            _ if is_due(self.deadline) => {
                return self.stop(now, "no message in time", CloseReason::Timeout);
            }
            _ => {}
        }

        match self.lost_since {
            Some(since) if now.saturating_duration_since(since) >= RESUME_MAX => {
                self.close(CloseReason::Lost);
            }
            Some(_) => {}
            None if !self.exchange.is_silent(now) => self.keep_alive(now),
            None if self.is_session() => {
                self.disconnect(now);
                self.actions.push_back(Action::ControlLost);
            }
            None => self.close(CloseReason::Lost),
        }
    }

    /// When [`Self::handle_timeout`] is to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if matches!(self.state, State::Closed) {
            return None;
        }

        let connection = match self.lost_since {
            Some(since) => since.checked_add(RESUME_MAX),
            None => self.exchange.poll_timeout(),
        };
        earliest([self.deadline, self.session_end, connection])
    }

    /// Sends a message, now or after a resumption.
    pub(super) fn send(&mut self, now: Instant, message: ServerMessage) {
        match self.exchange.send(now, message) {
            Ok(Some(frame)) => self.actions.push_back(Action::Send(frame)),
            Ok(None) => {}
            // Messages of the owner that are too long are replaced before; what is left has bounded
            // members.
            Err(fault) => self.stop(now, &fault.to_string(), CloseReason::Stopping),
        }
    }

    /// A message of the client is wrong.
    pub(super) fn fault(&mut self, now: Instant, fault: Fault) {
        self.send_last(now, ServerMessage::Fault(fault.clone()));
        self.close(CloseReason::Fault(fault));
    }

    /// Ends the session with a reason for the client.
    pub(super) fn stop(&mut self, now: Instant, reason: &str, close: CloseReason) {
        self.send_last(
            now,
            ServerMessage::Bye {
                reason: reason.to_owned(),
            },
        );
        self.close(close);
    }

    pub(super) fn close(&mut self, reason: CloseReason) {
        if matches!(self.state, State::Closed) {
            return;
        }

        self.state = State::Closed;
        self.deadline = None;
        self.session_end = None;
        self.actions.push_back(Action::Close(reason));
    }

    fn send_last(&mut self, now: Instant, message: ServerMessage) {
        if let Ok(Some(frame)) = self.exchange.send(now, message) {
            self.actions.push_back(Action::Send(frame));
        }
    }

    fn end_at_limit(&mut self, now: Instant) {
        self.stop(
            now,
            "the session exceeded its agreed duration",
            CloseReason::TimeLimit,
        );
    }

    fn keep_alive(&mut self, now: Instant) {
        if self.is_connected() && self.exchange.needs_keep(now) {
            self.send(now, ServerMessage::Keep);
        }
    }

    fn disconnect(&mut self, now: Instant) {
        self.exchange.disconnect();
        self.drop_unsent();
        // From here on the session waits for a resumption.
        self.lost_since = Some(now);
    }

    /// Bytes for a connection that is gone; their messages are repeated.
    fn drop_unsent(&mut self) {
        self.actions
            .retain(|action| !matches!(action, Action::Send(_)));
    }
}
