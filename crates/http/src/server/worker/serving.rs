//! Handles readiness of connections.

use std::io;

use linerate_sys::poll::Ready;
use linerate_sys::stream_io;

use super::connection_table::{AwaitedEvent, Token};
use super::{BUFFER_BYTES, Worker};
use crate::message::request::HEADER_BYTES_MAX;
use crate::server::machine::{Closing, Machine, Next, RequestContext};
use crate::server::write_queue::{SocketTransport, Transport, WriteQueue};

impl Worker {
    /// Handles an event of a connection, if it still exists.
    pub(super) fn serve(&mut self, token: Token, event: &Ready) {
        let Some(connection) = self.table.get(token) else {
            return;
        };
        let awaited = connection.awaited;
        if event.error {
            return self.close(token);
        }
        match awaited {
            AwaitedEvent::Readable if event.readable || event.hangup => self.read(token),
            // A hang-up is reported regardless of the registered events.
            _ if event.hangup => self.close(token),
            AwaitedEvent::Writable if event.writable => self.send(token),
            _ => {}
        }
    }

    fn read(&mut self, token: Token) {
        let Some(connection) = self.table.get(token) else {
            return;
        };
        let mut kept = 0;
        if let Some(partial) = &connection.partial {
            if partial.is_closing {
                return self.discard(token);
            }
            if partial.input.is_empty() && partial.machine.skippable_bytes() > BUFFER_BYTES as u64 {
                return self.skip(token);
            }
            kept = put_first(&partial.input, &mut self.buffer);
        }
        let room = self.buffer.get_mut(kept..).unwrap_or_default();
        match stream_io::recv(&connection.fd, room) {
            Ok(received @ 1..) => {
                self.counters.received_bytes.add(received as u64);
                self.parse(token, kept, kept + received);
            }
            Err(error) if is_transient(&error) => {}
            // An incomplete request is dropped.
            Ok(0) | Err(_) => self.close(token),
        }
    }

    /// Discards data after the last response.
    fn discard(&mut self, token: Token) {
        let Some(connection) = self.table.get(token) else {
            return;
        };
        match stream_io::recv_discard(&connection.fd, SKIPPED_AT_ONCE) {
            Ok(1..) => {}
            Err(error) if is_transient(&error) => {}
            Ok(0) | Err(_) => self.close(token),
        }
    }

    /// Discards part of a body.
    fn skip(&mut self, token: Token) {
        let Some(connection) = self.table.get(token) else {
            return;
        };
        let Some(partial) = &mut connection.partial else { return };
        let wanted = usize::try_from(partial.machine.skippable_bytes()).unwrap_or(usize::MAX);
        match stream_io::recv_discard(&connection.fd, wanted.min(SKIPPED_AT_ONCE)) {
            Ok(skipped @ 1..) => {
                self.counters.received_bytes.add(skipped as u64);
                partial.machine.skip(skipped as u64);
                connection.since = self.clock.ticks();
            }
            Err(error) if is_transient(&error) => {}
            Ok(0) | Err(_) => self.close(token),
        }
    }

    /// Parses the first `filled` bytes of the buffer, of which those from `new` on are new.
    fn parse(&mut self, token: Token, new: usize, filled: usize) {
        let Some(connection) = self.table.get(token) else {
            return;
        };
        let fresh = self.buffer.get(new..filled).unwrap_or_default();
        match &mut connection.partial {
            // No header ends without a line feed: one that arrives byte by byte is not parsed from its start each time.
            Some(partial) if new > 0 && filled < HEADER_BYTES_MAX && !fresh.contains(&b'\n') => {
                partial.input.extend_from_slice(fresh);
            }
            _ => self.respond(token, filled),
        }
    }

    /// Responds to the first `filled` bytes of the buffer and keeps the rest.
    fn respond(&mut self, token: Token, filled: usize) {
        let Some(connection) = self.table.get(token) else {
            return;
        };
        let mut machine = match &mut connection.partial {
            Some(partial) => std::mem::take(&mut partial.machine),
            None => Machine::default(),
        };
        let context = RequestContext {
            responses: &self.responses,
            counters: &self.counters,
            body_bytes_max: self.shared.body_bytes_max,
        };
        let input = self.buffer.get(..filled).unwrap_or_default();
        let mut transport = SocketTransport(&connection.fd);
        let exchange = exchange(&mut machine, input, &context, &mut self.queue, &mut transport);
        let Ok(used) = exchange else {
            drop(self.queue.take_rest());
            return self.close(token);
        };
        if used > 0 || connection.partial.is_none() {
            connection.since = self.clock.ticks();
        }
        let left = input.get(used..).unwrap_or_default();
        if left.is_empty() && machine.is_idle() && self.queue.is_empty() {
            connection.partial = None;
            return self.await_event(token, AwaitedEvent::Readable);
        }
        let partial = connection.partial.get_or_insert_default();
        partial.input.clear();
        partial.input.extend_from_slice(left);
        partial.machine = machine;
        if !self.queue.is_empty() {
            partial.output = self.queue.take_rest();
        }
        self.update_interest(token);
    }

    /// Sends queued responses.
    fn send(&mut self, token: Token) {
        let Some(connection) = self.table.get(token) else {
            return;
        };
        let Some(partial) = &mut connection.partial else { return };
        let mut transport = SocketTransport(&connection.fd);
        let Ok(flushed) = partial.output.flush(&mut transport, self.responses.content()) else {
            return self.close(token);
        };
        self.counters.sent_bytes.add(flushed.bytes);
        if flushed.bytes > 0 {
            connection.since = self.clock.ticks();
        }
        if !flushed.is_done || partial.machine.closing() != Closing::No {
            return self.update_interest(token);
        }
        let kept = put_first(&partial.input, &mut self.buffer);
        self.respond(token, kept);
    }

    /// Registers for the event that an unfinished connection needs, or closes it.
    fn update_interest(&mut self, token: Token) {
        let Some(partial) = self.table.get(token).and_then(|connection| connection.partial.as_ref()) else {
            return;
        };
        if !partial.output.is_empty() {
            return self.await_event(token, AwaitedEvent::Writable);
        }
        match partial.machine.closing() {
            Closing::No => self.await_event(token, AwaitedEvent::Readable),
            Closing::AfterResponse if partial.input.is_empty() => self.close(token),
            Closing::AfterResponse | Closing::Lingering => self.close_lingering(token),
        }
    }
}

/// Runs the machine over `input` and sends the responses; bytes of input consumed.
fn exchange(
    machine: &mut Machine,
    input: &[u8],
    context: &RequestContext<'_>,
    queue: &mut WriteQueue,
    transport: &mut impl Transport,
) -> io::Result<usize> {
    let mut used = 0;
    loop {
        let advance = machine.advance(input.get(used..).unwrap_or_default(), context, queue);
        used += advance.used;
        let flushed = queue.flush(transport, context.responses.content())?;
        context.counters.sent_bytes.add(flushed.bytes);
        if advance.next != Next::Flush || !flushed.is_done {
            return Ok(used);
        }
    }
}

/// Copies to the front of the buffer; bytes copied.
fn put_first(input: &[u8], buffer: &mut [u8]) -> usize {
    match buffer.get_mut(..input.len()) {
        Some(front) => {
            front.copy_from_slice(input);
            input.len()
        }
        None => 0,
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Discarded per call.
const SKIPPED_AT_ONCE: usize = 1 << 20;
