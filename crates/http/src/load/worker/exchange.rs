//! Requests and responses on the connections of a worker.

use std::collections::VecDeque;
use std::io;

use linerate_model::http::ErrorClass;
use linerate_sys::{clock, stream_io};

use super::{BUFFER_BYTES, LoadWorker};
use crate::load::failure;
use crate::load::pace::Pace;
use crate::load::ramp::Loss;
use crate::load::recorder::Sent;
use crate::load::response::{ReadProgress, ReceivedResponse};

impl LoadWorker<'_> {
    /// Sends `count` requests that were due at `due_ns`; in a closed loop they are due when they are sent.
    pub(super) fn send(&mut self, number: u32, count: usize, due_ns: u64) {
        let sent_ns = clock::monotonic_ns();
        let is_open_loop = matches!(self.pace, Pace::Open(_));
        if let Some(window) = self.run_state.window()
            && !is_open_loop
            && sent_ns >= window.end_ns
        {
            // The window has ended meanwhile: a closed loop sends nothing more.
            return;
        }
        let due_ns = if is_open_loop { due_ns } else { sent_ns };
        let sent = Sent { sent_ns, due_ns };
        let bytes_len = count * self.spec.request.len();
        let Some(connection) = self.pool.get_mut(number) else {
            return;
        };
        let is_blocked = connection.unsent_bytes > 0;
        for _ in 0..count {
            connection.outstanding.push_back(sent);
            self.recorder.sent(sent, self.backlog.starved_until_ns());
        }
        self.in_flight += count as u64;
        connection.unsent_bytes += u32::try_from(bytes_len).unwrap_or(u32::MAX);
        if !is_blocked {
            self.write(number);
        }
    }

    /// Sends unsent bytes as far as the send buffer has room.
    pub(super) fn write(&mut self, number: u32) {
        let Some(connection) = self.pool.get_mut(number) else {
            return;
        };
        let unsent = connection.unsent_bytes as usize;
        let Some(socket) = connection.socket() else {
            return;
        };
        // The rest is always the end of a sequence of whole requests.
        let part = tail(&self.requests, &self.spec.request, unsent);
        match stream_io::send(socket, part) {
            Ok(len) if len == unsent => connection.unsent_bytes = 0,
            Ok(len) => {
                connection.unsent_bytes -= u32::try_from(len).unwrap_or(0);
                self.pool.watch_writing(number, true);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.pool.watch_writing(number, true),
            Err(error) => self.broken(number, &error),
        }
    }

    /// Reads from a connection. Of large bodies only what arrives with the header is copied: the kernel discards the rest, which
    /// costs a fraction of that.
    pub(super) fn read(&mut self, number: u32) {
        if self.in_long_body(number).is_some() {
            return self.discard(number);
        }
        let Some(connection) = self.pool.get_mut(number) else {
            return;
        };
        let Some(socket) = connection.socket() else {
            return;
        };
        let kept_len = connection.kept.as_ref().map_or(0, |kept| kept.len());
        let (front, room) = self.buffer.split_at_mut(kept_len);
        let room_len = self.room_bytes.min(room.len());
        match stream_io::recv(socket, room.get_mut(..room_len).unwrap_or_default()) {
            Ok(0) => self.ended(number),
            Ok(len) => {
                if let Some(kept) = connection.kept.take() {
                    front.copy_from_slice(&kept);
                }
                self.feed(number, kept_len + len);
                let body_bytes = self.in_long_body(number);
                if body_bytes.is_some() || len == room_len {
                    // The next responses are likely to be alike.
                    let is_large = body_bytes.is_some_and(|body_bytes| body_bytes >= LARGE_BYTES);
                    self.room_bytes = if is_large { HEADER_ROOM_BYTES } else { BUFFER_BYTES };
                }
                if body_bytes.is_some() {
                    self.discard(number);
                }
            }
            Err(error) => self.broken(number, &error),
        }
    }

    /// Length of the current body, where enough of it is missing and needs no parsing.
    fn in_long_body(&mut self, number: u32) -> Option<u64> {
        let reader = &self.pool.get_mut(number)?.reader;
        let is_worth_it = reader.body_left()? >= DISCARDED_FROM_BYTES && !self.spec.verifies;
        is_worth_it.then(|| reader.body_len()).flatten()
    }

    /// Discards received bytes of a body in the kernel.
    fn discard(&mut self, number: u32) {
        let Some(connection) = self.pool.get_mut(number) else {
            return;
        };
        let (Some(socket), Some(left)) = (connection.socket(), connection.reader.body_left()) else {
            return;
        };
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(DISCARDED_MAX_BYTES);
        match stream_io::recv_discard(socket, len) {
            Ok(0) => self.ended(number),
            Ok(len) => {
                if let Some(response) = connection.reader.skip(len as u64) {
                    self.response_complete(number, &response);
                }
            }
            Err(error) => self.broken(number, &error),
        }
    }

    /// Parses the first `len` bytes of the buffer.
    fn feed(&mut self, number: u32, len: usize) {
        let mut used = 0;
        while used < len {
            let Some(connection) = self.pool.get_mut(number) else {
                return;
            };
            if connection.outstanding.is_empty() {
                let error = io::Error::new(io::ErrorKind::InvalidData, "a response without a request");
                return self.unreadable(number, &error);
            }
            let bytes = self.buffer.get(used..len).unwrap_or_default();
            match connection.reader.feed(bytes, &mut self.context) {
                Ok(ReadProgress::More) => return,
                Ok(ReadProgress::Incomplete(skipped)) => {
                    let kept = bytes.get(skipped..).unwrap_or_default();
                    connection.kept = (!kept.is_empty()).then(|| kept.into());
                    return;
                }
                Ok(ReadProgress::Complete(piece, response)) => {
                    used += piece;
                    if !self.response_complete(number, &response) {
                        return;
                    }
                }
                Err(error) => {
                    let error = io::Error::new(io::ErrorKind::InvalidData, error);
                    return self.unreadable(number, &error);
                }
            }
        }
    }

    /// A response is complete. Returns whether the connection stays open.
    fn response_complete(&mut self, number: u32, response: &ReceivedResponse) -> bool {
        let done_ns = clock::monotonic_ns();
        let Some(connection) = self.pool.get_mut(number) else {
            return false;
        };
        let Some(sent) = connection.outstanding.pop_front() else {
            return false;
        };
        let is_first_request = self.spec.sends_first_request && !connection.was_ready;
        connection.was_ready = true;
        let is_idle = connection.outstanding.is_empty();
        self.in_flight = self.in_flight.saturating_sub(1);
        self.awaiting_first = self.awaiting_first.saturating_sub(u32::from(is_first_request));
        self.recorder.response_complete(sent, done_ns, response);
        if !response.keeps_alive {
            self.closed_by_server(number);
            return false;
        }
        match (self.run_state.window(), &mut self.pace) {
            // A closed loop sends the next request at once.
            (Some(window), Pace::Closed) if done_ns < window.end_ns => self.send(number, 1, done_ns),
            (_, Pace::Thinking { .. }) if is_idle => self.pace.pause(number, done_ns),
            _ if is_idle => self.pool.release(number),
            _ => {}
        }
        // Sending the next request may have closed the connection.
        self.pool.get_mut(number).is_some_and(|connection| connection.is_open())
    }

    /// The server announced the close with its last response; later requests have none.
    fn closed_by_server(&mut self, number: u32) {
        let lost = self.pool.lose(number, Loss::Announced, &mut self.recorder);
        self.fail(lost, ErrorClass::Eof, "closed before the response");
    }

    /// The server closed the connection.
    fn ended(&mut self, number: u32) {
        let Some(connection) = self.pool.get_mut(number) else {
            return;
        };
        if let Some(response) = connection.reader.end() {
            self.response_complete(number, &response);
            return;
        }
        let was_ready = connection.was_ready;
        let lost = self.pool.lose(number, Loss::Unannounced, &mut self.recorder);
        if lost.is_empty() {
            self.recorder.stats.connections.dropped += 1;
        }
        self.forget_first_request(was_ready, &lost);
        self.fail(lost, ErrorClass::Eof, "closed before the response was complete");
    }

    /// The connection failed.
    fn broken(&mut self, number: u32, error: &io::Error) {
        if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) {
            return;
        }
        let Some(connection) = self.pool.get_mut(number) else {
            return;
        };
        let is_idle = connection.outstanding.is_empty();
        let class = failure::of_exchange(error, connection.has_begun(), is_idle);
        let was_ready = connection.was_ready;
        let lost = self.pool.lose(number, Loss::Unannounced, &mut self.recorder);
        if is_idle {
            self.recorder.stats.connections.dropped += 1;
            self.recorder
                .connection_failed(class, || linerate_sys::error::io_text(error));
        }
        self.forget_first_request(was_ready, &lost);
        self.fail(lost, class, &linerate_sys::error::io_text(error));
    }

    /// The response is malformed, so that nothing after it can be parsed.
    fn unreadable(&mut self, number: u32, error: &io::Error) {
        let was_ready = self.pool.get_mut(number).is_some_and(|connection| connection.was_ready);
        let lost = self.pool.lose(number, Loss::Unannounced, &mut self.recorder);
        if lost.is_empty() {
            self.recorder
                .connection_failed(ErrorClass::Protocol, || linerate_sys::error::io_text(error));
        }
        self.forget_first_request(was_ready, &lost);
        self.fail(lost, ErrorClass::Protocol, &error.to_string());
    }

    pub(super) fn forget_first_request(&mut self, was_ready: bool, lost: &VecDeque<Sent>) {
        if self.spec.sends_first_request && !was_ready && !lost.is_empty() {
            self.awaiting_first = self.awaiting_first.saturating_sub(1);
        }
    }

    pub(super) fn fail(&mut self, lost: VecDeque<Sent>, class: ErrorClass, text: &str) {
        let now_ns = clock::monotonic_ns();
        self.in_flight = self.in_flight.saturating_sub(lost.len() as u64);
        for sent in lost {
            self.recorder.failed(sent, now_ns, class, || text.to_owned());
        }
    }
}

/// The last `len` bytes of a sequence of requests.
fn tail<'a>(row: &'a [u8], one: &'a [u8], len: usize) -> &'a [u8] {
    let row = if len <= one.len() { one } else { row };
    row.get(row.len().saturating_sub(len)..).unwrap_or_default()
}

/// A body with at least this much missing is discarded in the kernel.
const DISCARDED_FROM_BYTES: u64 = 4096;
const DISCARDED_MAX_BYTES: usize = 16 << 20;
/// From here on a second call costs less than copying the body.
const LARGE_BYTES: u64 = 64 * 1024;
/// Buffer for the header of a response with a large body.
const HEADER_ROOM_BYTES: usize = 2048;
