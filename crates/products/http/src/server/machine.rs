//! The HTTP/1.1 state machine of one connection: requests in, responses out, in order. No socket,
//! no clock.

use super::resource::Resource;
use super::responses::{Response, ResponseWriter};
use super::stats::Counters;
use super::write_queue::WriteQueue;
use crate::message::body::{BodyError, BodyFraming, BodyReader};
use crate::message::request::RequestHeader;

/// State kept between two inputs; empty between requests.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    /// A request with an incomplete body.
    pub pending: Option<PendingRequest>,
    pub closing: Closing,
}

/// Closing of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Closing {
    /// It is persistent.
    #[default]
    No,
    /// After the last response, which announces it.
    AfterResponse,
    /// After the last response; what the client still sends is discarded.
    Lingering,
}

/// Shared state that handling a request needs.
#[derive(Debug)]
pub(crate) struct RequestContext<'a> {
    /// Writes response headers.
    pub responses: &'a ResponseWriter,
    /// Statistics of the thread.
    pub counters: &'a Counters,
    /// Longest request body in bytes.
    pub body_bytes_max: u64,
    /// Smallest chunk of a response that a client can request.
    pub chunk_bytes_min: u64,
}

/// Event that the machine waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// More input.
    Read,
    /// Room in the write queue.
    Flush,
    /// Closing, once the write queue is empty.
    End,
}

#[derive(Debug)]
pub(crate) struct PendingRequest {
    body: BodyReader,
    response: Response,
}

impl Machine {
    /// True if the machine holds no state.
    pub(crate) fn is_idle(&self) -> bool {
        self.pending.is_none() && self.closing == Closing::No
    }

    /// Payload bytes still due that need no parsing; never the last one, so that the end of the
    /// body is parsed with what follows it.
    pub(crate) fn skippable_bytes(&self) -> u64 {
        let missing = self
            .pending
            .as_ref()
            .and_then(|pending| pending.body.left_bytes());
        missing.map_or(0, |missing| missing.saturating_sub(1))
    }

    /// Accounts for payload discarded in the kernel, at most [`Self::skippable_bytes`].
    pub(crate) fn skip(&mut self, bytes: u64) {
        if let Some(pending) = &mut self.pending {
            pending.body.skip(bytes);
        }
    }

    /// Parses `input` up to an incomplete header and queues the responses. Returns the bytes
    /// consumed, the rest of which is passed again with more input, and the required next step.
    pub(crate) fn advance(
        &mut self,
        input: &[u8],
        context: &RequestContext<'_>,
        queue: &mut WriteQueue,
    ) -> (usize, Next) {
        let mut used = 0;
        loop {
            // Requests after the one that closes the connection are not processed (RFC 9112,
            // section 9.6).
            if self.closing != Closing::No {
                return (used, Next::End);
            }
            // Bounds the memory of a client that pipelines requests and does not read the
            // responses.
            if queue.is_full() {
                return (used, Next::Flush);
            }

            let rest = input.get(used..).unwrap_or_default();
            let (taken, needs_more) = match &self.pending {
                Some(_) => self.take_body(rest, context, queue),
                None => self.take_header(rest, context, queue),
            };
            used += taken;

            if needs_more {
                return (used, Next::Read);
            }
        }
    }

    /// Bytes consumed by a header, and whether it is incomplete.
    fn take_header(
        &mut self,
        input: &[u8],
        context: &RequestContext<'_>,
        queue: &mut WriteQueue,
    ) -> (usize, bool) {
        if input.is_empty() {
            return (0, true);
        }

        match RequestHeader::parse(input) {
            Ok(None) => (0, true),
            Ok(Some(head)) => {
                context.counters.requests.add(1);
                self.take_request(&head, context, queue);
                (head.len, false)
            }
            Err(error) => {
                context.counters.requests.add(1);
                self.refuse(error.status(), context, queue);
                // What follows is not consumed: it is discarded with the connection.
                (0, false)
            }
        }
    }

    fn take_request(
        &mut self,
        head: &RequestHeader<'_>,
        context: &RequestContext<'_>,
        queue: &mut WriteQueue,
    ) {
        let response = Response {
            resource: Resource::read(head.method, head.target, context.chunk_bytes_min),
            is_http11: head.is_http11,
            keep_alive: head.keep_alive,
        };
        if head.framing == BodyFraming::None {
            return self.respond(response, context, queue);
        }

        // The only error at this point is a length above the limit.
        let Ok(body) = BodyReader::new(head.framing, context.body_bytes_max) else {
            return self.refuse(CONTENT_TOO_LARGE, context, queue);
        };
        // The client may wait for it before it sends the body (RFC 9110, section 10.1.1).
        if head.expects_continue {
            queue.write(|bytes| bytes.extend_from_slice(CONTINUE));
        }

        self.pending = Some(PendingRequest { body, response });
    }

    /// Bytes consumed by a body, and whether it is incomplete.
    fn take_body(
        &mut self,
        input: &[u8],
        context: &RequestContext<'_>,
        queue: &mut WriteQueue,
    ) -> (usize, bool) {
        let Some(mut pending) = self.pending.take() else {
            return (0, false);
        };
        match pending.body.read(input, context.body_bytes_max, |_| {}) {
            Ok((used, true)) => {
                self.respond(pending.response, context, queue);
                (used, false)
            }
            Ok((used, false)) => {
                self.pending = Some(pending);
                (used, true)
            }
            Err(error) => {
                let is_too_large = matches!(error, BodyError::TooLarge(_));
                self.refuse(
                    if is_too_large {
                        CONTENT_TOO_LARGE
                    } else {
                        BAD_REQUEST
                    },
                    context,
                    queue,
                );
                (input.len(), false)
            }
        }
    }

    fn respond(
        &mut self,
        response: Response,
        context: &RequestContext<'_>,
        queue: &mut WriteQueue,
    ) {
        if !response.keep_alive {
            self.closing = Closing::AfterResponse;
        }
        context.responses.push(response, context.counters, queue);
    }

    fn refuse(&mut self, status: u16, context: &RequestContext<'_>, queue: &mut WriteQueue) {
        self.respond(Response::refusal(status), context, queue);
        // The end of a refused request is not known, so nothing after it can be parsed.
        self.closing = Closing::Lingering;
    }
}

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
const BAD_REQUEST: u16 = 400;
const CONTENT_TOO_LARGE: u16 = 413;
