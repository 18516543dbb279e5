//! Work of a session for another thread: checks of logins and long results. The session waits
//! for the answer and keeps what arrives meanwhile.

use std::time::Instant;

use super::{Phase, Server, ServerAction};
use crate::wire::auth::Refusal;
use crate::wire::error_code::ErrorCode;
use crate::wire::framing::frame;
use crate::wire::results::Results;
use crate::wire::state::State;

/// Longest results that are parsed at once, those of about 50 streams: less work than a change of
/// threads.
const RESULTS_PARSED_HERE_BYTES: usize = 16 << 10;
/// Bytes that a caller may have read after the end of a frame.
const EARLY_BYTES_MAX: usize = 16 << 10;

impl Server {
    pub(super) fn finish_login(&mut self, now: Instant, verdict: Result<String, Refusal>) {
        match (
            verdict,
            std::mem::replace(&mut self.dialogue.phase, Phase::Closed),
        ) {
            (Ok(user), Phase::CheckingLogin(params)) => self.admit(now, *params, Some(user)),
            (Err(refusal), _) => self.refuse_login(refusal),
            (Ok(_), phase) => self.dialogue.phase = phase,
        }
    }

    pub(super) fn refuse_login(&mut self, refusal: Refusal) {
        self.refusal = Some(refusal);
        self.fail(ErrorCode::AuthTest, 0, None);
    }

    pub(super) fn handle_results(&mut self, now: Instant, text: Vec<u8>) {
        if text.len() <= RESULTS_PARSED_HERE_BYTES {
            return self.finish_results(now, Results::parse(&text).map(Box::new));
        }

        if let Phase::Exchanging(_, ours) =
            std::mem::replace(&mut self.dialogue.phase, Phase::Closed)
        {
            self.dialogue.push(ServerAction::ParseResults(text));
            self.dialogue.enter(now, Phase::ParsingResults(ours), None);
        }
    }

    pub(super) fn finish_results(&mut self, now: Instant, theirs: Result<Box<Results>, ErrorCode>) {
        let theirs = match theirs {
            Ok(results) if results.name_only_streams_below(self.agreed.total_streams) => results,
            Ok(_) => return self.fail(ErrorCode::StreamId, 0, None),
            Err(code) => return self.fail(code, 0, None),
        };
        self.dialogue.push(ServerAction::PeerResults(theirs));

        if let Phase::Exchanging(_, ours) | Phase::ParsingResults(ours) = &self.dialogue.phase {
            let mut bytes = frame(&ours.to_json());
            bytes.push(State::DisplayResults.byte());
            self.dialogue.push(ServerAction::Send(bytes));
        }

        self.dialogue.enter(
            now,
            Phase::Finishing,
            Some(self.setup.policy.handshake_timeout),
        );
    }

    /// The caller reads no more than what it has read already, unless it disregards what it is
    /// asked for.
    pub(super) fn keep_early(&mut self, input: &[u8]) {
        if self.early.len() + input.len() > EARLY_BYTES_MAX {
            return self.fail(ErrorCode::Message, 0, None);
        }
        self.early.extend_from_slice(input);
    }

    pub(super) fn handle_early(&mut self, now: Instant) {
        let early = std::mem::take(&mut self.early);
        self.handle_control(now, &early);
    }
}
