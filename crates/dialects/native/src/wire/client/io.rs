//! Bytes, time, and connections that come and go.

use std::time::{Duration, Instant};

use crate::wire::exchange::earliest;
use crate::wire::message::{ClientMessage, Fault, Resume};

use super::{
    ANSWER_TIMEOUT, Action, Awaited, Link, Machine, ProtocolFailure, RESUME_MAX, RESUME_SPACING,
    State,
};

impl Machine {
    /// Takes plaintext of the control connection, in pieces of any size.
    pub fn handle_bytes(&mut self, now: Instant, bytes: &[u8]) {
        let mut input = bytes;
        // Bytes of a lost connection have no place in the numbers of the new one.
        while !input.is_empty() && self.can_receive() {
            match self.exchange.receive(now, &mut input) {
                Ok(None) => {}
                Ok(Some(message)) => self.handle_message(now, message),
                Err(fault) => self.wrong(now, fault),
            }
        }

        self.keep_alive(now);
    }

    /// The control connection was closed or broke, or a new one could not be made. A session
    /// continues for [`RESUME_MAX`] from the first loss; anything else has failed.
    pub fn control_lost(&mut self, now: Instant) {
        let since = match (self.state, self.link) {
            (State::Closed, _) => return,
            (State::Session(_), Link::Connected) => now,
            (State::Session(_), Link::Lost { since, .. } | Link::Resuming { since }) => since,
            _ => return self.fail(ProtocolFailure::Closed),
        };
        self.exchange.disconnect();
        // Frames of the old connection are repeated after the resumption, if they count at all.
        self.actions
            .retain(|action| !matches!(action, Action::Send(_) | Action::ConnectAgain));

        // A server that closes each new connection at once must not be dialled in a loop.
        let earliest = self
            .resumed_at
            .and_then(|at| at.checked_add(RESUME_SPACING));
        self.link = Link::Lost {
            since,
            connect_at: Some(earliest.map_or(now, |at| at.max(now))),
        };
        self.connect_again(now);
    }

    /// A new connection has passed its TLS handshake; `proof` covers its exporter and
    /// [`Machine::resume_point`]. Without effect if the session is not lost.
    pub fn resume(&mut self, now: Instant, proof: &[u8; 32]) {
        let (Link::Lost { since, .. }, Some(point)) = (self.link, self.resume_point()) else {
            return;
        };
        self.actions
            .retain(|action| !matches!(action, Action::ConnectAgain));
        // Nothing of the old connection may be continued in the middle of a frame.
        self.exchange.attach(now);
        self.link = Link::Resuming { since };
        self.resumed_at = Some(now);

        let resume = Resume {
            session: point.session,
            number: point.number,
            received: point.received,
            proof: crate::wire::hex::encode(proof),
        };
        match self.exchange.frame(now, ClientMessage::Resume(resume)) {
            Ok(frame) => self.actions.push_back(Action::Send(frame)),
            Err(fault) => self.fail(ProtocolFailure::TooLong(fault)),
        }
    }

    /// The server continues the session.
    pub(super) fn resumed(&mut self, now: Instant, received: u64) {
        // The server may have dropped messages that this end no longer keeps.
        let Some(frames) = self.exchange.repeat(now, received) else {
            return self.wrong(
                now,
                Fault::new("received", format!("{received} does not fit")),
            );
        };
        self.link = Link::Connected;

        // Time without a connection does not count.
        if let Some(awaited) = &mut self.awaited {
            awaited.since = now;
        }

        self.actions.push_back(Action::Resumed);
        self.actions.extend(frames.into_iter().map(Action::Send));
    }

    /// Takes the time, at or after [`Self::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.state == State::Closed {
            return;
        }

        if self.facts_until.is_some_and(|until| now >= until) {
            self.facts_until = None;
            // Facts are an addition: their absence must not end a test.
            self.actions.push_back(Action::Facts("null".to_owned()));
        }

        match self.link {
            Link::Lost { since, .. } | Link::Resuming { since }
                if passed(now, since, RESUME_MAX) =>
            {
                self.fail(ProtocolFailure::Lost);
            }
            Link::Lost { .. } => self.connect_again(now),
            Link::Resuming { .. }
                if self
                    .resumed_at
                    .is_some_and(|at| passed(now, at, ANSWER_TIMEOUT)) =>
            {
                self.control_lost(now);
            }
            Link::Resuming { .. } => {}
            Link::Connected => self.handle_answer_timeout(now),
        }
    }

    fn handle_answer_timeout(&mut self, now: Instant) {
        match self.awaited {
            Some(Awaited { kind, limit, since }) if passed(now, since, limit) => {
                // The server frees the session at once instead of waiting for a resumption.
                self.send_last(now, ClientMessage::Bye);
                self.fail(ProtocolFailure::Timeout { awaited: kind });
            }
            // Before its hello a client waits for nothing.
            _ if self.state != State::Idle && self.exchange.is_silent(now) => {
                self.control_lost(now);
            }
            _ => self.keep_alive(now),
        }
    }

    /// When [`Self::handle_timeout`] is to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if matches!(self.state, State::Closed | State::Idle) {
            return None;
        }

        let connection = match self.link {
            Link::Lost { since, connect_at } => {
                earliest([since.checked_add(RESUME_MAX), connect_at])
            }
            Link::Resuming { since } => {
                let answer = self
                    .resumed_at
                    .and_then(|at| at.checked_add(ANSWER_TIMEOUT));
                earliest([since.checked_add(RESUME_MAX), answer])
            }
            Link::Connected => {
                let answer = self
                    .awaited
                    .and_then(|awaited| awaited.since.checked_add(awaited.limit));
                earliest([self.exchange.poll_timeout(), answer])
            }
        };
        earliest([connection, self.facts_until])
    }

    /// Sends a message, now or after a resumption.
    pub(super) fn send(&mut self, now: Instant, message: ClientMessage) {
        match self.exchange.send(now, message) {
            Ok(Some(frame)) => self.actions.push_back(Action::Send(frame)),
            Ok(None) => {}
            Err(fault) => self.fail(ProtocolFailure::TooLong(fault)),
        }
    }

    pub(super) fn send_last(&mut self, now: Instant, message: ClientMessage) {
        if let Ok(Some(frame)) = self.exchange.send(now, message) {
            self.actions.push_back(Action::Send(frame));
        }
    }

    pub(super) fn expect(&mut self, now: Instant, kind: &'static str, limit: Duration) {
        self.awaited = Some(Awaited {
            kind,
            limit,
            since: now,
        });
    }

    /// A message of the server is wrong.
    pub(super) fn wrong(&mut self, now: Instant, fault: Fault) {
        self.send_last(now, ClientMessage::Fault(fault.clone()));
        self.fail(ProtocolFailure::Wrong(fault));
    }

    pub(super) fn fail(&mut self, failure: ProtocolFailure) {
        if self.state != State::Closed {
            self.actions.push_back(Action::Failed(failure));
            self.close();
        }
    }

    pub(super) fn close(&mut self) {
        if self.state != State::Closed {
            self.state = State::Closed;
            self.actions.push_back(Action::Close);
        }
    }

    fn can_receive(&self) -> bool {
        self.state != State::Closed && !matches!(self.link, Link::Lost { .. })
    }

    fn keep_alive(&mut self, now: Instant) {
        let is_open = !matches!(self.state, State::Closed | State::Idle);
        if is_open && self.link == Link::Connected && self.exchange.needs_keep(now) {
            self.send(now, ClientMessage::Keep);
        }
    }

    fn connect_again(&mut self, now: Instant) {
        if let Link::Lost {
            since,
            connect_at: Some(at),
        } = self.link
            && now >= at
        {
            self.link = Link::Lost {
                since,
                connect_at: None,
            };
            self.actions.push_back(Action::ConnectAgain);
        }
    }
}

fn passed(now: Instant, since: Instant, limit: Duration) -> bool {
    now.saturating_duration_since(since) >= limit
}
