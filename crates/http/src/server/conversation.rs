//! One connection as the protocol sees it: requests in, answers out, in order. No socket, no clock.

use super::answers::{Answers, Leaving, Reply};
use super::asked::{Asked, Pause};
use super::figures::Counters;
use super::outbox::Outbox;
use crate::message::chunked::Decoder;
use crate::message::framing::BodyFraming;
use crate::message::request::RequestHead;

/// What a connection remembers between two pieces of input. Nothing, most of the time.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// A request whose body has not arrived completely.
    arriving: Option<Arriving>,
    /// An answer that waits for something.
    waiting: Option<Reply>,
    ending: Ending,
    /// Nothing follows the request that is being answered, as far as its input tells.
    is_last_in_sight: bool,
}

/// Whether a connection goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Ending {
    /// Further requests are read.
    #[default]
    Open,
    /// It ends with the answers, and the client knows.
    Agreed,
    /// It ends with the answers, and the client may still be sending.
    CutShort,
}

/// What answers a conversation.
#[derive(Debug)]
pub(crate) struct Desk<'a> {
    /// Writes the answers.
    pub(crate) answers: &'a mut Answers,
    /// Counts them.
    pub(crate) counters: &'a Counters,
    /// Limits and permissions.
    pub(crate) rules: Rules,
    /// The connection is one of [`super::body_path::is_paced`].
    pub(crate) is_paced: bool,
}

/// Limits and permissions of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Longest request body in bytes.
    pub(crate) body_bytes_max: u64,
    /// Clients may ask for pauses, closes and status codes.
    pub(crate) with_aids: bool,
}

/// What came of a piece of input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Advance {
    /// Bytes that were understood; the rest has to be shown again.
    pub(crate) used: usize,
    /// What has to happen now.
    pub(crate) next: Next,
}

/// What has to happen before a conversation goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// More has to arrive.
    Read,
    /// The answers so far have to leave first.
    Flush,
    /// Time has to pass; then [`Conversation::resume`].
    Wait(Pause),
    /// The connection ends when the answers have left.
    End,
}

#[derive(Debug)]
struct Arriving {
    body: Body,
    /// Payload so far.
    received_bytes: u64,
    reply: Reply,
}

#[derive(Debug)]
enum Body {
    /// Bytes that are missing.
    Length(u64),
    Chunks(Decoder),
}

impl Conversation {
    /// Whether there is nothing to remember.
    pub(crate) fn is_blank(&self) -> bool {
        self.arriving.is_none() && self.waiting.is_none() && self.ending == Ending::Open
    }

    /// Whether the connection goes on when the answers have left.
    pub(crate) fn ending(&self) -> Ending {
        self.ending
    }

    /// Whether an answer waits for time to pass.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Whether a request's body is arriving.
    pub(crate) fn is_arriving(&self) -> bool {
        self.arriving.is_some()
    }

    /// Bytes of payload that are certain to come and need not be looked at; never the last one, so that what follows it
    /// is always looked at.
    pub(crate) fn skippable_bytes(&self) -> u64 {
        match &self.arriving {
            Some(Arriving {
                body: Body::Length(missing),
                ..
            }) => missing.saturating_sub(1),
            _ => 0,
        }
    }

    /// Counts payload that was taken from the socket without being looked at, at most [`Self::skippable_bytes`].
    pub(crate) fn skip(&mut self, bytes: u64) {
        if let Some(Arriving {
            body: Body::Length(missing),
            ..
        }) = &mut self.arriving
        {
            *missing = missing.saturating_sub(bytes).max(1);
        }
    }

    /// Understands as much of `input` as it can, which is everything up to an incomplete head, and adds the answers.
    pub(crate) fn advance(&mut self, input: &[u8], desk: &mut Desk<'_>, outbox: &mut Outbox) -> Advance {
        let mut used = 0;
        loop {
            if self.ending != Ending::Open {
                return Advance { used, next: Next::End };
            }
            if outbox.is_full() {
                return Advance {
                    used,
                    next: Next::Flush,
                };
            }
            let rest = input.get(used..).unwrap_or_default();
            let (taken, next) = match &self.arriving {
                Some(_) => self.take_body(rest, desk, outbox),
                None => self.take_head(rest, desk, outbox),
            };
            used += taken;
            if let Some(next) = next {
                return Advance { used, next };
            }
        }
    }

    /// Gives the answer that waited.
    pub(crate) fn resume(&mut self, desk: &mut Desk<'_>, outbox: &mut Outbox) {
        if let Some(reply) = self.waiting.take() {
            self.answer(reply, desk, outbox);
        }
    }

    fn take_head(&mut self, input: &[u8], desk: &mut Desk<'_>, outbox: &mut Outbox) -> (usize, Option<Next>) {
        if input.is_empty() {
            return (0, Some(Next::Read));
        }
        match RequestHead::parse(input) {
            Ok(None) => (0, Some(Next::Read)),
            Ok(Some(head)) => {
                desk.counters.requests.add(1);
                self.is_last_in_sight = head.len == input.len();
                (head.len, self.take_request(&head, desk, outbox))
            }
            Err(error) => {
                desk.counters.requests.add(1);
                self.refuse(error.status(), desk, outbox);
                (0, None)
            }
        }
    }

    fn take_request(&mut self, head: &RequestHead<'_>, desk: &mut Desk<'_>, outbox: &mut Outbox) -> Option<Next> {
        let asked = Asked::read(head.method, head.target, desk.rules.with_aids);
        let reply = Reply {
            asked,
            is_http11: head.is_http11,
            keep_alive: head.keep_alive && !asked.close,
        };
        let body = match head.framing {
            BodyFraming::None | BodyFraming::UntilClose => return self.answer_in_time(reply, desk, outbox),
            BodyFraming::Length(length) if length > desk.rules.body_bytes_max => {
                self.refuse(CONTENT_TOO_LARGE, desk, outbox);
                return None;
            }
            BodyFraming::Length(length) => Body::Length(length),
            BodyFraming::Chunked => Body::Chunks(Decoder::new()),
        };
        if head.expects_continue {
            Answers::push_continue(outbox);
        }
        self.arriving = Some(Arriving {
            body,
            received_bytes: 0,
            reply,
        });
        None
    }

    fn take_body(&mut self, input: &[u8], desk: &mut Desk<'_>, outbox: &mut Outbox) -> (usize, Option<Next>) {
        let Some(mut arriving) = self.arriving.take() else {
            return (0, None);
        };
        match arriving.take(input, desk.rules.body_bytes_max) {
            Ok((used, true)) => (used, self.answer_in_time(arriving.reply, desk, outbox)),
            Ok((used, false)) => {
                self.arriving = Some(arriving);
                (used, Some(Next::Read))
            }
            Err(status) => {
                self.refuse(status, desk, outbox);
                (input.len(), None)
            }
        }
    }

    fn answer_in_time(&mut self, reply: Reply, desk: &mut Desk<'_>, outbox: &mut Outbox) -> Option<Next> {
        let Some(pause) = reply.asked.pause else {
            self.answer(reply, desk, outbox);
            return None;
        };
        self.waiting = Some(reply);
        Some(Next::Wait(pause))
    }

    fn answer(&mut self, reply: Reply, desk: &mut Desk<'_>, outbox: &mut Outbox) {
        if !reply.keep_alive {
            self.ending = Ending::Agreed;
        }
        let leaving = Leaving {
            is_alone: self.is_last_in_sight && outbox.is_empty(),
            is_paced: desk.is_paced,
        };
        desk.answers.push(reply, leaving, desk.counters, outbox);
    }

    fn refuse(&mut self, status: u16, desk: &mut Desk<'_>, outbox: &mut Outbox) {
        self.answer(Reply::refusal(status), desk, outbox);
        self.ending = Ending::CutShort;
    }
}

impl Arriving {
    /// Bytes used, and whether the body is complete; or the status of a refusal.
    fn take(&mut self, input: &[u8], body_bytes_max: u64) -> Result<(usize, bool), u16> {
        match &mut self.body {
            Body::Length(missing) => {
                let used = usize::try_from(*missing).unwrap_or(usize::MAX).min(input.len());
                *missing -= used as u64;
                Ok((used, *missing == 0))
            }
            Body::Chunks(decoder) => take_chunks(decoder, input, &mut self.received_bytes, body_bytes_max),
        }
    }
}

/// Piece by piece, so that the first thing that is wrong decides, however the input is cut.
fn take_chunks(
    decoder: &mut Decoder,
    input: &[u8],
    received_bytes: &mut u64,
    body_bytes_max: u64,
) -> Result<(usize, bool), u16> {
    let mut used = 0;
    loop {
        let rest = input.get(used..).unwrap_or_default();
        let piece = decoder.piece(rest).map_err(|_| BAD_REQUEST)?;
        used += piece.framing + piece.payload;
        *received_bytes += piece.payload as u64;
        if *received_bytes > body_bytes_max {
            return Err(CONTENT_TOO_LARGE);
        }
        if piece.is_end || used == input.len() {
            return Ok((used, piece.is_end));
        }
    }
}

const BAD_REQUEST: u16 = 400;
const CONTENT_TOO_LARGE: u16 = 413;
