//! One connection as the protocol sees it: requests in, answers out, in order. No socket, no clock.

use super::answers::{Answers, Reply};
use super::asked::Asked;
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
    ending: Ending,
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
    pub(crate) answers: &'a Answers,
    /// Counts them.
    pub(crate) counters: &'a Counters,
    /// Longest request body in bytes.
    pub(crate) body_bytes_max: u64,
    /// The connection is one of [`super::body_path::is_paced`].
    pub(crate) is_paced: bool,
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
        self.arriving.is_none() && self.ending == Ending::Open
    }

    /// Whether the connection goes on when the answers have left.
    pub(crate) fn ending(&self) -> Ending {
        self.ending
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
            let (taken, needs_more) = match &self.arriving {
                Some(_) => self.take_body(rest, desk, outbox),
                None => self.take_head(rest, desk, outbox),
            };
            used += taken;
            if needs_more {
                return Advance { used, next: Next::Read };
            }
        }
    }

    /// Bytes of a head that were used, and whether more of it has to arrive.
    fn take_head(&mut self, input: &[u8], desk: &mut Desk<'_>, outbox: &mut Outbox) -> (usize, bool) {
        if input.is_empty() {
            return (0, true);
        }
        match RequestHead::parse(input) {
            Ok(None) => (0, true),
            Ok(Some(head)) => {
                desk.counters.requests.add(1);
                self.take_request(&head, desk, outbox);
                (head.len, false)
            }
            Err(error) => {
                desk.counters.requests.add(1);
                self.refuse(error.status(), desk, outbox);
                (0, false)
            }
        }
    }

    fn take_request(&mut self, head: &RequestHead<'_>, desk: &mut Desk<'_>, outbox: &mut Outbox) {
        let reply = Reply {
            asked: Asked::read(head.method, head.target),
            is_http11: head.is_http11,
            keep_alive: head.keep_alive,
        };
        let body = match head.framing {
            BodyFraming::None | BodyFraming::UntilClose => return self.answer(reply, desk, outbox),
            BodyFraming::Length(length) if length > desk.body_bytes_max => {
                return self.refuse(CONTENT_TOO_LARGE, desk, outbox);
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
    }

    /// Bytes of a body that were used, and whether more of it has to arrive.
    fn take_body(&mut self, input: &[u8], desk: &mut Desk<'_>, outbox: &mut Outbox) -> (usize, bool) {
        let Some(mut arriving) = self.arriving.take() else {
            return (0, false);
        };
        match arriving.take(input, desk.body_bytes_max) {
            Ok((used, true)) => {
                self.answer(arriving.reply, desk, outbox);
                (used, false)
            }
            Ok((used, false)) => {
                self.arriving = Some(arriving);
                (used, true)
            }
            Err(status) => {
                self.refuse(status, desk, outbox);
                (input.len(), false)
            }
        }
    }

    fn answer(&mut self, reply: Reply, desk: &mut Desk<'_>, outbox: &mut Outbox) {
        if !reply.keep_alive {
            self.ending = Ending::Agreed;
        }
        desk.answers.push(reply, desk.is_paced, desk.counters, outbox);
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
