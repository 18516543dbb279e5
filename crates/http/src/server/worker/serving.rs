//! What happens to a connection that has something to tell.

use std::io;

use linerate_sys::poll::Ready;
use linerate_sys::stream_io;

use super::table::{Token, WaitsFor};
use super::wire::SocketWire;
use super::{BUFFER_BYTES, Worker};
use crate::message::request::HEAD_BYTES_MAX;
use crate::server::conversation::{Conversation, Desk, Ending, Next};
use crate::server::outbox::{Outbox, Wire};

impl Worker {
    /// Reacts to an event of the connection, if it is still there.
    pub(super) fn serve(&mut self, token: Token, event: &Ready) {
        let Some(connection) = self.table.get(token) else {
            return;
        };
        let waits_for = connection.waits_for;
        if event.error {
            return self.close(token);
        }
        match waits_for {
            WaitsFor::Input if event.readable || event.hangup => self.read(token),
            // A hang-up is told again and again, whatever is waited for.
            _ if event.hangup => self.close(token),
            WaitsFor::Room if event.writable => self.send(token),
            _ => {}
        }
    }

    fn read(&mut self, token: Token) {
        let Some(connection) = self.table.get(token) else {
            return;
        };
        let mut kept = 0;
        if let Some(spill) = &connection.spill {
            if spill.lingers {
                return self.discard(token);
            }
            if spill.input.is_empty() && spill.conversation.skippable_bytes() > BUFFER_BYTES as u64 {
                return self.skip(token);
            }
            kept = put_first(&spill.input, &mut self.buffer);
        }
        let room = self.buffer.get_mut(kept..).unwrap_or_default();
        match stream_io::recv(&connection.fd, room) {
            Ok(received @ 1..) => {
                self.counters.received_bytes.add(received as u64);
                self.understand(token, kept, kept + received);
            }
            Err(error) if is_transient(&error) => {}
            // The peer has gone, or said that it sends no more; half a request is none.
            Ok(0) | Err(_) => self.close(token),
        }
    }

    /// Throws away what a peer says after our last word.
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

    /// Takes a part of a body, of which only the length matters.
    fn skip(&mut self, token: Token) {
        let Some(connection) = self.table.get(token) else {
            return;
        };
        let Some(spill) = &mut connection.spill else { return };
        let wanted = usize::try_from(spill.conversation.skippable_bytes()).unwrap_or(usize::MAX);
        match stream_io::recv_discard(&connection.fd, wanted.min(SKIPPED_AT_ONCE)) {
            Ok(skipped @ 1..) => {
                self.counters.received_bytes.add(skipped as u64);
                spill.conversation.skip(skipped as u64);
                connection.since = self.clock.ticks();
            }
            Err(error) if is_transient(&error) => {}
            Ok(0) | Err(_) => self.close(token),
        }
    }

    /// Looks at the first `filled` bytes of the buffer, those from `new` on for the first time.
    fn understand(&mut self, token: Token, new: usize, filled: usize) {
        let Some(connection) = self.table.get(token) else {
            return;
        };
        let fresh = self.buffer.get(new..filled).unwrap_or_default();
        match &mut connection.spill {
            // No head ends without a line feed: one that comes byte by byte is not read from its start each time.
            Some(spill) if new > 0 && filled < HEAD_BYTES_MAX && !fresh.contains(&b'\n') => {
                spill.input.extend_from_slice(fresh);
            }
            _ => self.converse(token, filled),
        }
    }

    /// Answers what stands in the first `filled` bytes of the buffer, and keeps what is left of it.
    fn converse(&mut self, token: Token, filled: usize) {
        let Some(connection) = self.table.get(token) else {
            return;
        };
        let mut conversation = match &mut connection.spill {
            Some(spill) => std::mem::take(&mut spill.conversation),
            None => Conversation::default(),
        };
        let mut desk = Desk {
            answers: &self.answers,
            counters: &self.counters,
            body_bytes_max: self.shared.body_bytes_max,
            is_paced: connection.is_paced,
        };
        let input = self.buffer.get(..filled).unwrap_or_default();
        let mut wire = SocketWire(&connection.fd);
        let talk = talk(&mut conversation, input, &mut desk, &mut self.outbox, &mut wire);
        let Ok(used) = talk else {
            drop(self.outbox.take_rest());
            return self.close(token);
        };
        if used > 0 || connection.spill.is_none() {
            connection.since = self.clock.ticks();
        }
        let left = input.get(used..).unwrap_or_default();
        if left.is_empty() && conversation.is_blank() && self.outbox.is_empty() {
            connection.spill = None;
            return self.wait_for(token, WaitsFor::Input);
        }
        let spill = connection.spill.get_or_insert_default();
        spill.input.clear();
        spill.input.extend_from_slice(left);
        spill.conversation = conversation;
        if !self.outbox.is_empty() {
            spill.output = self.outbox.take_rest();
        }
        self.settle(token);
    }

    /// Goes on with answers that did not fit.
    fn send(&mut self, token: Token) {
        let Some(connection) = self.table.get(token) else {
            return;
        };
        let Some(spill) = &mut connection.spill else { return };
        let mut wire = SocketWire(&connection.fd);
        let Ok(flushed) = spill.output.flush(&mut wire, self.answers.content()) else {
            return self.close(token);
        };
        self.counters.sent_bytes.add(flushed.bytes);
        if flushed.bytes > 0 {
            connection.since = self.clock.ticks();
        }
        if !flushed.is_done || spill.conversation.ending() != Ending::Open {
            return self.settle(token);
        }
        let kept = put_first(&spill.input, &mut self.buffer);
        self.converse(token, kept);
    }

    /// Decides what a connection with something unfinished waits for.
    fn settle(&mut self, token: Token) {
        let Some(spill) = self.table.get(token).and_then(|connection| connection.spill.as_ref()) else {
            return;
        };
        if !spill.output.is_empty() {
            return self.wait_for(token, WaitsFor::Room);
        }
        match spill.conversation.ending() {
            Ending::Open => self.wait_for(token, WaitsFor::Input),
            Ending::Agreed if spill.input.is_empty() => self.close(token),
            Ending::Agreed | Ending::CutShort => self.linger(token),
        }
    }
}

/// Lets the conversation answer `input` and sends the answers; how much of the input was used.
fn talk(
    conversation: &mut Conversation,
    input: &[u8],
    desk: &mut Desk<'_>,
    outbox: &mut Outbox,
    wire: &mut impl Wire,
) -> io::Result<usize> {
    let mut used = 0;
    loop {
        let advance = conversation.advance(input.get(used..).unwrap_or_default(), desk, outbox);
        used += advance.used;
        let flushed = outbox.flush(wire, desk.answers.content())?;
        desk.counters.sent_bytes.add(flushed.bytes);
        if advance.next != Next::Flush || !flushed.is_done {
            return Ok(used);
        }
    }
}

/// Copies to the front of the buffer; how much that was.
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

/// Most bytes thrown away by one call.
const SKIPPED_AT_ONCE: usize = 1 << 20;
