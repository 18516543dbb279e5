//! Requests and responses on the connections of an event loop.

use std::io;
use std::ops::Range;

use linerate_model::http::{ErrorClass, ErrorCounts};
use linerate_sys::stream_io;

use super::{BUFFER_BYTES, EventLoop};
use crate::load::failure;
use crate::load::ramp::Loss;
use crate::load::response::{ReadProgress, ReceivedResponse};
use crate::load::worker::LoadWorker;

impl EventLoop {
    /// Sends `count` requests that were due at `due_ns`.
    pub(super) fn send(&mut self, worker: &mut LoadWorker, number: u32, count: usize, due_ns: u64) {
        let connection = &mut self.connections[number as usize];
        let Some(sent) = worker.sending(due_ns) else {
            return;
        };
        worker.begin(count);
        connection
            .outstanding
            .extend(std::iter::repeat_n(sent, count));

        // Bytes that wait for room in the send buffer leave first, or requests would interleave.
        let is_blocked = connection.unsent_bytes > 0;
        let bytes_len = count * worker.spec.request.len();
        connection.unsent_bytes += u32::try_from(bytes_len).unwrap_or(u32::MAX);

        if !is_blocked {
            self.write(worker, number);
        }
    }

    /// Sends unsent bytes as far as the send buffer has room.
    pub(super) fn write(&mut self, worker: &mut LoadWorker, number: u32) {
        let connection = &mut self.connections[number as usize];
        let unsent = connection.unsent_bytes as usize;
        let Some(socket) = connection.socket() else {
            return;
        };

        // The rest is always the end of a sequence of whole requests.
        let part = tail(&self.requests, &worker.spec.request, unsent);
        match stream_io::send(socket, part) {
            Ok(len) if len == unsent => connection.unsent_bytes = 0,
            Ok(len) => {
                // `len` is at most `unsent`, so it fits and the difference is not negative.
                connection.unsent_bytes -= u32::try_from(len).unwrap_or(0);
                self.watch_writing(number, true);
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                self.watch_writing(number, true);
            }
            Err(error) => self.broken(worker, number, &error),
        }
    }

    /// Reads from a connection. Of large bodies only what arrives with the header is copied: the
    /// kernel discards the rest, which costs a fraction of that.
    pub(super) fn read(&mut self, worker: &mut LoadWorker, number: u32) {
        if self.in_long_body(number).is_some() {
            return self.discard(worker, number);
        }

        let connection = &mut self.connections[number as usize];
        let Some(socket) = connection.socket() else {
            return;
        };
        let kept_len = connection.kept.as_ref().map_or(0, |kept| kept.len());
        let (front, room) = self.buffer.split_at_mut(kept_len);
        let room_len = self.room_bytes.min(room.len());
        match stream_io::recv(socket, room.get_mut(..room_len).unwrap_or_default()) {
            Ok(0) => self.ended(worker, number),
            Ok(len) => {
                if let Some(kept) = connection.kept.take() {
                    front.copy_from_slice(&kept);
                }

                self.feed(worker, number, kept_len + len);
                let body_bytes = self.in_long_body(number);
                // A read that fills the room without a long body shows that the room is too small.
                if body_bytes.is_some() || len == room_len {
                    // The next responses are likely to be alike.
                    let is_large = body_bytes.is_some_and(|body_bytes| body_bytes >= LARGE_BYTES);
                    self.room_bytes = if is_large {
                        HEADER_ROOM_BYTES
                    } else {
                        BUFFER_BYTES
                    };
                }

                if body_bytes.is_some() {
                    self.discard(worker, number);
                }
            }
            Err(error) => self.broken(worker, number, &error),
        }
    }

    /// Length of the current body, where enough of it is missing and needs no parsing.
    fn in_long_body(&self, number: u32) -> Option<u64> {
        let reader = &self.connections[number as usize].reader;
        // A body that is compared has to be hashed, so it must reach user space.
        let is_worth_it = reader.body_left()? >= DISCARDED_FROM_BYTES && !self.context.is_hashed;
        is_worth_it.then(|| reader.body_len()).flatten()
    }

    /// Discards received bytes of a body in the kernel.
    fn discard(&mut self, worker: &mut LoadWorker, number: u32) {
        let connection = &mut self.connections[number as usize];
        let (Some(socket), Some(left)) = (connection.socket(), connection.reader.body_left())
        else {
            return;
        };
        let len = left.min(DISCARDED_MAX_BYTES as u64) as usize;
        match stream_io::recv_discard(socket, len) {
            Ok(0) => self.ended(worker, number),
            Ok(len) => {
                if let Some(response) = connection.reader.skip(len as u64) {
                    self.response_complete(worker, number, &response);
                }
            }
            Err(error) => self.broken(worker, number, &error),
        }
    }

    /// Parses the first `len` bytes of the buffer.
    fn feed(&mut self, worker: &mut LoadWorker, number: u32, len: usize) {
        let mut used = 0;
        while used < len {
            let connection = &mut self.connections[number as usize];
            let bytes = self.buffer.get(used..len).unwrap_or_default();
            // A server at its limit of connections sends 503 before any request, as `http serve`
            // does.
            if connection.outstanding.is_empty() {
                return match bytes.get(STATUS_PLACE) {
                    Some(b"503") => self.reject(
                        worker,
                        number,
                        ErrorClass::Status5xx,
                        ErrorCounts::UNASKED_503,
                    ),
                    _ => self.reject(
                        worker,
                        number,
                        ErrorClass::Protocol,
                        "a response without a request",
                    ),
                };
            }

            match connection.reader.feed(bytes, &mut self.context) {
                Ok(ReadProgress::More) => return,
                Ok(ReadProgress::Incomplete(skipped)) => {
                    // The buffer belongs to all connections of the thread, so an incomplete header
                    // is copied.
                    let kept = bytes.get(skipped..).unwrap_or_default();
                    connection.kept = (!kept.is_empty()).then(|| kept.into());
                    return;
                }
                Ok(ReadProgress::Complete(piece, response)) => {
                    used += piece;
                    if !self.response_complete(worker, number, &response) {
                        return;
                    }
                }
                Err(error) => {
                    return self.reject(worker, number, ErrorClass::Protocol, &error.to_string());
                }
            }
        }
    }

    /// A response is complete. Returns whether the connection stays open.
    fn response_complete(
        &mut self,
        worker: &mut LoadWorker,
        number: u32,
        response: &ReceivedResponse,
    ) -> bool {
        let connection = &mut self.connections[number as usize];
        // A response without a request was rejected before.
        let Some(sent) = connection.outstanding.pop_front() else {
            return false;
        };
        let is_idle = connection.outstanding.is_empty();
        let done_ns = worker.response_complete(number, sent, response);

        if !response.keeps_alive {
            // The server announced the close with its last response; later requests have none.
            self.fail(
                worker,
                number,
                Loss::Announced,
                ErrorClass::Eof,
                "closed before the response",
            );
            return false;
        }

        // One request for each response keeps the pipeline at its depth.
        if worker.sends_at_once(done_ns) {
            self.send(worker, number, 1, done_ns);
        } else if is_idle {
            // A pipeline is one slot, free once all of its requests have a response.
            worker.release(number, true, done_ns);
        }

        // Sending the next request may have closed the connection.
        self.connections[number as usize].is_open()
    }

    /// The server closed the connection.
    fn ended(&mut self, worker: &mut LoadWorker, number: u32) {
        let connection = &mut self.connections[number as usize];
        // The end of the connection completes a body without a length (RFC 9112, section 6.3).
        if let Some(response) = connection.reader.end() {
            self.response_complete(worker, number, &response);
            return;
        }

        let text = "closed before the response was complete";
        if self.fail(worker, number, Loss::Unannounced, ErrorClass::Eof, text) {
            worker.recorder.stats.connections.dropped += 1;
        }
    }

    /// The connection failed.
    fn broken(&mut self, worker: &mut LoadWorker, number: u32, error: &io::Error) {
        // No failure: epoll(7) reports the socket again while it has input.
        if matches!(
            error.kind(),
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
        ) {
            return;
        }

        let connection = &mut self.connections[number as usize];
        let is_idle = connection.outstanding.is_empty();
        let class = failure::of_exchange(error, connection.has_begun(), is_idle);

        let text = linerate_sys::error::io_text(error);
        // Where no request was outstanding, the failure counts as one of the connection.
        if self.fail(worker, number, Loss::Unannounced, class, &text) {
            worker.recorder.stats.connections.dropped += 1;
            worker.recorder.connection_failed(class, || text);
        }
    }

    /// The response is malformed or belongs to no request, so that nothing after it can be parsed.
    fn reject(&mut self, worker: &mut LoadWorker, number: u32, class: ErrorClass, text: &str) {
        if self.fail(worker, number, Loss::Unannounced, class, text) {
            worker.recorder.connection_failed(class, || text.to_owned());
        }
    }

    /// Closes a connection; its outstanding requests fail. Returns whether there were none.
    pub(super) fn fail(
        &mut self,
        worker: &mut LoadWorker,
        number: u32,
        loss: Loss,
        class: ErrorClass,
        text: &str,
    ) -> bool {
        let lost = self.connections[number as usize].close();
        let was_idle = lost.is_empty();
        worker.failed(number, lost, class, text);
        worker.lose(number, loss);
        was_idle
    }
}

/// The last `len` bytes of a sequence of requests.
fn tail<'a>(row: &'a [u8], one: &'a [u8], len: usize) -> &'a [u8] {
    let row = if len <= one.len() { one } else { row };
    row.get(row.len().saturating_sub(len)..).unwrap_or_default()
}

/// Place of the status in `HTTP/1.1 503`.
const STATUS_PLACE: Range<usize> = 9..12;
/// A body with at least this much missing is discarded in the kernel.
const DISCARDED_FROM_BYTES: u64 = 4096;
const DISCARDED_MAX_BYTES: usize = 16 << 20;
/// From here on a second call costs less than copying the body.
const LARGE_BYTES: u64 = 64 * 1024;
/// Buffer for the header of a response with a large body.
const HEADER_ROOM_BYTES: usize = 2048;
