//! Requests and answers on the connections of a lane.

use std::collections::VecDeque;
use std::io;

use linerate_model::http::ErrorClass;
use linerate_sys::{clock, stream_io};

use super::{BUFFER_BYTES, Lane};
use crate::load::answer::{Answer, Fed};
use crate::load::failure;
use crate::load::pace::Pace;
use crate::load::ramp::Loss;
use crate::load::recorder::Sent;

impl Lane<'_> {
    /// Sends `count` requests that were due at `due_ns`; in a closed loop they are due when they are sent.
    pub(super) fn send(&mut self, number: u32, count: usize, due_ns: u64) {
        let sent_ns = clock::monotonic_ns();
        let is_open_loop = matches!(self.pace, Pace::Open(_));
        if let Some(window) = self.course.window()
            && !is_open_loop
            && sent_ns >= window.end_ns
        {
            // The end came while it was decided: what is sent now would not count, and nothing else will be sent.
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

    /// Writes what is unsent of a connection's requests, as far as there is room.
    pub(super) fn write(&mut self, number: u32) {
        let Some(connection) = self.pool.get_mut(number) else {
            return;
        };
        let unsent = connection.unsent_bytes as usize;
        let Some(socket) = connection.socket() else {
            return;
        };
        // What is left is always the end of a row of whole requests.
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

    /// Takes what a connection has delivered. Of large bodies only what comes with the head is copied: the kernel drops the
    /// rest, which costs a fraction of that.
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
                    // The next answers will be like this one.
                    let is_large = body_bytes.is_some_and(|body_bytes| body_bytes >= LARGE_BYTES);
                    self.room_bytes = if is_large { HEAD_ROOM_BYTES } else { BUFFER_BYTES };
                }
                if body_bytes.is_some() {
                    self.discard(number);
                }
            }
            Err(error) => self.broken(number, &error),
        }
    }

    /// The length of the body that is arriving, where enough of it is still to come that nobody has to look at.
    fn in_long_body(&mut self, number: u32) -> Option<u64> {
        let reader = &self.pool.get_mut(number)?.reader;
        let is_worth_it = reader.body_left()? >= DISCARDED_FROM_BYTES && !self.spec.verifies;
        is_worth_it.then(|| reader.body_len()).flatten()
    }

    /// Has the kernel drop what has arrived of a body.
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
                if let Some(answer) = connection.reader.skip(len as u64) {
                    self.answered(number, &answer);
                }
            }
            Err(error) => self.broken(number, &error),
        }
    }

    /// Reads the first `len` bytes of the buffer as the connection's next ones.
    fn feed(&mut self, number: u32, len: usize) {
        let mut used = 0;
        while used < len {
            let Some(connection) = self.pool.get_mut(number) else {
                return;
            };
            if connection.outstanding.is_empty() {
                let error = io::Error::new(io::ErrorKind::InvalidData, "an answer that nobody asked for");
                return self.useless(number, &error);
            }
            let bytes = self.buffer.get(used..len).unwrap_or_default();
            match connection.reader.feed(bytes, &mut self.reading) {
                Ok(Fed::More) => return,
                Ok(Fed::Keep(skipped)) => {
                    let kept = bytes.get(skipped..).unwrap_or_default();
                    connection.kept = (!kept.is_empty()).then(|| kept.into());
                    return;
                }
                Ok(Fed::Complete(piece, answer)) => {
                    used += piece;
                    if !self.answered(number, &answer) {
                        return;
                    }
                }
                Err(error) => {
                    let error = io::Error::new(io::ErrorKind::InvalidData, error);
                    return self.useless(number, &error);
                }
            }
        }
    }

    /// An answer is complete. Returns whether the connection goes on.
    fn answered(&mut self, number: u32, answer: &Answer) -> bool {
        let done_ns = clock::monotonic_ns();
        let Some(connection) = self.pool.get_mut(number) else {
            return false;
        };
        let Some(sent) = connection.outstanding.pop_front() else {
            return false;
        };
        let is_touch = self.spec.touches && !connection.was_ready;
        connection.was_ready = true;
        let is_idle = connection.outstanding.is_empty();
        self.in_flight = self.in_flight.saturating_sub(1);
        self.touching = self.touching.saturating_sub(u32::from(is_touch));
        self.recorder.answered(sent, done_ns, answer);
        if !answer.keeps_alive {
            self.closed_by_server(number);
            return false;
        }
        match (self.course.window(), &mut self.pace) {
            // A connection of a closed loop always has something to do.
            (Some(window), Pace::Closed) if done_ns < window.end_ns => self.send(number, 1, done_ns),
            (_, Pace::Thinking { .. }) if is_idle => self.pace.pause(number, done_ns),
            _ if is_idle => self.pool.release(number),
            _ => {}
        }
        // Sending the next request may have shown that the connection is gone.
        self.pool.get_mut(number).is_some_and(|connection| connection.is_open())
    }

    /// The server said with its last answer that it closes; requests behind that one were not answered.
    fn closed_by_server(&mut self, number: u32) {
        let lost = self.pool.lose(number, Loss::Announced, &mut self.recorder);
        self.fail(lost, ErrorClass::Eof, "closed before the answer");
    }

    /// The connection came to its end in order.
    fn ended(&mut self, number: u32) {
        let Some(connection) = self.pool.get_mut(number) else {
            return;
        };
        if let Some(answer) = connection.reader.end() {
            self.answered(number, &answer);
            return;
        }
        let is_touched = connection.was_ready;
        let lost = self.pool.lose(number, Loss::Unannounced, &mut self.recorder);
        if lost.is_empty() {
            self.recorder.tally.connections.dropped += 1;
        }
        self.forget_touch(is_touched, &lost);
        self.fail(lost, ErrorClass::Eof, "closed before the answer was complete");
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
        let is_touched = connection.was_ready;
        let lost = self.pool.lose(number, Loss::Unannounced, &mut self.recorder);
        if is_idle {
            self.recorder.tally.connections.dropped += 1;
            self.recorder
                .connection_failed(class, || linerate_sys::error::io_text(error));
        }
        self.forget_touch(is_touched, &lost);
        self.fail(lost, class, &linerate_sys::error::io_text(error));
    }

    /// The server sent what cannot be read, so nothing after it can either.
    fn useless(&mut self, number: u32, error: &io::Error) {
        let is_touched = self.pool.get_mut(number).is_some_and(|connection| connection.was_ready);
        let lost = self.pool.lose(number, Loss::Unannounced, &mut self.recorder);
        if lost.is_empty() {
            self.recorder
                .connection_failed(ErrorClass::Protocol, || linerate_sys::error::io_text(error));
        }
        self.forget_touch(is_touched, &lost);
        self.fail(lost, ErrorClass::Protocol, &error.to_string());
    }

    pub(super) fn forget_touch(&mut self, was_ready: bool, lost: &VecDeque<Sent>) {
        if self.spec.touches && !was_ready && !lost.is_empty() {
            self.touching = self.touching.saturating_sub(1);
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

/// The last `len` bytes of a row of requests.
fn tail<'a>(row: &'a [u8], one: &'a [u8], len: usize) -> &'a [u8] {
    let row = if len <= one.len() { one } else { row };
    row.get(row.len().saturating_sub(len)..).unwrap_or_default()
}

/// A body of which this much is to come is dropped in the kernel instead of copied.
const DISCARDED_FROM_BYTES: u64 = 4096;
const DISCARDED_MAX_BYTES: usize = 16 << 20;
/// From here on a second call costs less than copying the body.
const LARGE_BYTES: u64 = 64 * 1024;
/// Room for the head of an answer whose body is large.
const HEAD_ROOM_BYTES: usize = 2048;
