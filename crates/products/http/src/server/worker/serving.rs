//! Reads requests from connections and sends responses.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Duration;

use linerate_model::network::Network;
use linerate_sys::poll::{Interest, Ready};
use linerate_sys::{PageBuffer, socket, stream_io};

use super::clock::Clock;
use super::connection_table::Connection;
use crate::message::request::HEADER_BYTES_MAX;
use crate::server::machine::{Closing, Machine, Next, RequestContext};
use crate::server::responses::{Response, ResponseWriter};
use crate::server::stats::Counters;
use crate::server::write_queue::{SocketTransport, Transport, Turn, WriteQueue};

/// State shared by all threads of a server.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Networks that are served.
    pub permitted: Vec<Network>,
    /// Longest request body in bytes.
    pub body_bytes_max: u64,
    /// Smallest chunk of a response that a client can request.
    pub chunk_bytes_min: u64,
    pub idle_timeout: Duration,
    pub connections_max: usize,
    /// Connections of all threads together.
    pub open: AtomicUsize,
    pub stop: AtomicBool,
}

/// Buffers and state that all connections of a thread use in turn.
pub(super) struct ConnectionIo {
    pub shared: Arc<Shared>,
    pub counters: Arc<Counters>,
    pub responses: ResponseWriter,
    /// Responses of the current connection; empty otherwise.
    pub queue: WriteQueue,
    pub buffer: PageBuffer,
    pub clock: Clock,
}

/// Next need of a connection. An error closes it, too: an incomplete request is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Await(Interest),
    Close,
}

const READ: Outcome = Outcome::Await(Interest::READ);

impl ConnectionIo {
    /// Handles an event of a connection.
    pub(super) fn serve(
        &mut self,
        connection: &mut Connection,
        event: &Ready,
    ) -> io::Result<Outcome> {
        let awaited = connection.awaited;
        if event.error {
            Ok(Outcome::Close)
        } else if awaited.read && (event.readable || event.hangup) {
            // A hang-up may follow unread requests; recv(2) returns 0 behind the last of them.
            self.read(connection)
        } else if event.hangup {
            // Reported regardless of the registered events.
            Ok(Outcome::Close)
        } else if awaited.write && event.writable {
            self.send(connection)
        } else {
            Ok(Outcome::Await(awaited))
        }
    }

    fn read(&mut self, connection: &mut Connection) -> io::Result<Outcome> {
        let mut kept = 0;
        if let Some(partial) = &mut connection.partial {
            if partial.is_closing {
                received(stream_io::recv_discard(&connection.fd, DISCARDED_AT_ONCE))?;
                return Ok(READ);
            }

            let skippable_bytes = partial.machine.skippable_bytes();
            // MSG_TRUNC discards payload in the kernel, which saves the copy (tcp(7)).
            // Kept bytes precede those in the socket, so they are parsed first.
            if partial.input.is_empty() && skippable_bytes > BUFFER_BYTES as u64 {
                let len = skippable_bytes.min(DISCARDED_AT_ONCE as u64) as usize;
                let skipped = received(stream_io::recv_discard(&connection.fd, len))? as u64;
                partial.machine.skip(skipped);
                self.counters.received_bytes.add(skipped);
                connection.since = self.clock.ticks();
                return Ok(READ);
            }

            kept = put_first(&partial.input, &mut self.buffer);
        }

        // Only an incomplete header is kept while input is awaited, so room is left: recv(2) of no
        // bytes would return 0, as at the end of the connection.
        let room = self.buffer.get_mut(kept..).unwrap_or_default();
        match received(stream_io::recv(&connection.fd, room))? {
            0 => Ok(READ),
            len => {
                self.counters.received_bytes.add(len as u64);
                self.parse(connection, kept, kept + len)
            }
        }
    }

    /// Parses the first `filled` bytes of the buffer, of which those from `new` on are new.
    fn parse(
        &mut self,
        connection: &mut Connection,
        new: usize,
        filled: usize,
    ) -> io::Result<Outcome> {
        let fresh = self.buffer.get(new..filled).unwrap_or_default();
        match &mut connection.partial {
            // No header ends without a line feed: one that arrives byte by byte is not parsed from
            // its start each time. One of the longest length is parsed, which refuses it.
            Some(partial) if new > 0 && filled < HEADER_BYTES_MAX && !fresh.contains(&b'\n') => {
                partial.input.extend_from_slice(fresh);
                Ok(READ)
            }
            _ => self.respond(connection, filled, &mut Turn::new()),
        }
    }

    /// Responds to the first `filled` bytes of the buffer as far as the turn allows, and keeps the
    /// rest.
    fn respond(
        &mut self,
        connection: &mut Connection,
        filled: usize,
        turn: &mut Turn,
    ) -> io::Result<Outcome> {
        let mut machine = match &mut connection.partial {
            Some(partial) => std::mem::take(&mut partial.machine),
            None => Machine::default(),
        };
        let context = RequestContext {
            responses: &self.responses,
            counters: &self.counters,
            body_bytes_max: self.shared.body_bytes_max,
            chunk_bytes_min: self.shared.chunk_bytes_min,
        };

        let input = self.buffer.get(..filled).unwrap_or_default();
        let mut transport = SocketTransport(&connection.fd);

        let exchange = exchange(
            &mut machine,
            input,
            &context,
            &mut self.queue,
            &mut transport,
            turn,
        );
        // The queue is shared: bytes for a lost connection must not reach the next one.
        let used = exchange.inspect_err(|_| drop(self.queue.take_rest()))?;
        // Bytes that complete nothing are no progress: a header that arrives byte by byte expires.
        if used > 0 || connection.partial.is_none() {
            connection.since = self.clock.ticks();
        }

        let left = input.get(used..).unwrap_or_default();
        if left.is_empty() && machine.is_idle() && self.queue.is_empty() {
            connection.partial = None;
            return Ok(READ);
        }

        let partial = connection.partial.get_or_insert_default();
        partial.input.clear();
        partial.input.extend_from_slice(left);
        partial.machine = machine;

        // `partial.output` is empty: nothing is read before it is sent.
        if !self.queue.is_empty() {
            partial.output = self.queue.take_rest();
        }

        self.next(connection)
    }

    /// Sends queued responses.
    fn send(&mut self, connection: &mut Connection) -> io::Result<Outcome> {
        let Some(partial) = &mut connection.partial else {
            return Ok(READ);
        };
        let mut transport = SocketTransport(&connection.fd);
        let mut turn = Turn::new();
        let flushed = partial
            .output
            .flush(&mut transport, &self.responses.content, &mut turn)?;
        self.counters.sent_bytes.add(flushed.bytes);

        if flushed.bytes > 0 {
            connection.since = self.clock.ticks();
        }

        if !flushed.is_done || partial.machine.closing != Closing::No {
            return self.next(connection);
        }

        // Pipelined requests that were kept have left the socket, so epoll reports no event for
        // them.
        let kept = put_first(&partial.input, &mut self.buffer);
        self.respond(connection, kept, &mut turn)
    }

    /// The event that an unfinished connection needs, or its end.
    fn next(&self, connection: &mut Connection) -> io::Result<Outcome> {
        let partial = connection.partial.get_or_insert_default();
        match partial.machine.closing {
            _ if !partial.output.is_empty() => Ok(Outcome::Await(Interest::WRITE)),
            Closing::No => Ok(READ),
            // Bytes behind the last request suggest more in the socket, for which the kernel would
            // send a reset.
            Closing::AfterResponse if partial.input.is_empty() => Ok(Outcome::Close),
            Closing::AfterResponse | Closing::Lingering => self.close_lingering(connection),
        }
    }

    /// Rejects a connection with 503.
    pub(super) fn refuse(&mut self, connection: &mut Connection) -> io::Result<Outcome> {
        let response = Response::refusal(SERVICE_UNAVAILABLE);
        self.responses
            .push(response, &self.counters, &mut self.queue);

        // What does not fit into an empty send buffer is dropped.
        let mut transport = SocketTransport(&connection.fd);
        if let Ok(flushed) =
            self.queue
                .flush(&mut transport, &self.responses.content, &mut Turn::new())
        {
            self.counters.sent_bytes.add(flushed.bytes);
        }

        drop(self.queue.take_rest());
        self.close_lingering(connection)
    }

    /// Lingering close: an immediate close would make the kernel send a reset for unread data,
    /// which can overtake the last response.
    fn close_lingering(&self, connection: &mut Connection) -> io::Result<Outcome> {
        socket::shutdown_write(&connection.fd).map_err(|error| error.source)?;
        connection.since = self.clock.ticks();
        let partial = connection.partial.get_or_insert_default();
        // `clear` would keep the memory until the connection is closed.
        partial.input = Vec::new();
        partial.is_closing = true;
        Ok(READ)
    }
}

/// Runs the machine over `input` and sends the responses; bytes of input consumed.
fn exchange(
    machine: &mut Machine,
    input: &[u8],
    context: &RequestContext<'_>,
    queue: &mut WriteQueue,
    transport: &mut impl Transport,
    turn: &mut Turn,
) -> io::Result<usize> {
    let mut used = 0;
    loop {
        let (taken, next) = machine.advance(input.get(used..).unwrap_or_default(), context, queue);
        used += taken;
        let flushed = queue.flush(transport, &context.responses.content, turn)?;
        context.counters.sent_bytes.add(flushed.bytes);

        // A queue that was full and is sent has room for further requests of this input.
        if next != Next::Flush || !flushed.is_done {
            return Ok(used);
        }
    }
}

/// Bytes received, 0 when there are none yet. The end of the connection is an error.
fn received(result: io::Result<usize>) -> io::Result<usize> {
    match result {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
            ) =>
        {
            Ok(0)
        }
        other => other,
    }
}

/// Copies to the front of the buffer; bytes copied.
fn put_first(input: &[u8], buffer: &mut [u8]) -> usize {
    // Kept input came out of a buffer of this size, so it fits.
    match buffer.get_mut(..input.len()) {
        Some(front) => {
            front.copy_from_slice(input);
            input.len()
        }
        None => 0,
    }
}

/// Discarded per call.
const DISCARDED_AT_ONCE: usize = 1 << 20;
const SERVICE_UNAVAILABLE: u16 = 503;

/// Larger than a header, so that an incomplete one and what follows it fit.
pub(super) const BUFFER_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::write_queue::tests::{MemoryTransport, transport};

    /// Requests behind each other, of which each takes a call or two, and a client that takes
    /// everything.
    #[test]
    fn requests_behind_each_other_are_answered_in_turns() {
        for (path, count) in [
            ("/b/32767", 500),
            ("/b/64m", 2),
            ("/b/64m?chunked=1", 1),
            ("/0", 1_000),
        ] {
            let input = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").repeat(count);
            let (counters, responses) = (
                Counters::default(),
                ResponseWriter::new(Arc::default(), false, None),
            );
            let context = RequestContext {
                responses: &responses,
                counters: &counters,
                body_bytes_max: 0,
                chunk_bytes_min: 1,
            };

            let (mut machine, mut queue, mut used) = (Machine::default(), WriteQueue::default(), 0);
            while used < input.len() || !queue.is_empty() {
                let rest = input.as_bytes().get(used..).unwrap_or_default();
                let mut client: MemoryTransport<'_> =
                    transport(&responses.content, usize::MAX, usize::MAX);

                let exchange = exchange(
                    &mut machine,
                    rest,
                    &context,
                    &mut queue,
                    &mut client,
                    &mut Turn::new(),
                );
                used += exchange.expect("memory does not fail");
                let sent = client.taken.len();
                assert!(
                    sent > 0 && sent <= 2 << 20,
                    "{path}: {sent} bytes in a turn"
                );
            }

            assert_eq!(counters.snapshot().responses, count as u64, "{path}");
        }
    }
}
