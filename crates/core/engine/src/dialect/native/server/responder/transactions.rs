//! Requests and responses of one connection.

use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::AsFd;

use linerate_model::path::TransactionSpec;
use linerate_sys::sockopt;
use linerate_sys::stream_io::{self, Followed};

use super::meter::{Meter, Room};
use super::turn::Turn;
use crate::data::quota::Traffic;
use crate::wait::if_ready;

#[cfg(any(test, fuzzing))]
#[path = "../../../../../fuzzing/transactions.rs"]
pub(crate) mod fuzzing;

/// Counts what arrives and what is owed; of neither any bytes are kept.
pub(super) struct Transactions {
    request_bytes: u64,
    response_bytes: u64,
    /// Bytes of a request that is not complete.
    pending_bytes: u64,
    /// Answer to the head of the stream, as far as it is not sent.
    answer: Vec<u8>,
    /// Bytes of responses that are not sent.
    unsent_bytes: u64,
}

/// Requests and responses are at most this long.
const TRANSACTION_BYTES_MAX: u32 = 1 << 20;
/// Payload of responses; all connections send from here.
static RESPONSE: [u8; 64 << 10] = [b'r'; 64 << 10];
/// Writes in one turn at most, so that other connections have theirs.
const WRITES_PER_TURN: u32 = 4;
/// Bytes that the kernel keeps of a client that does not read, beside those in flight.
const NOT_SENT_MAX_BYTES: u32 = 128 << 10;

impl Transactions {
    pub(super) fn new(fd: impl AsFd, spec: TransactionSpec, answer: &[u8]) -> Self {
        // Without it the kernel keeps up to 4 MiB per connection.
        let _ = sockopt::TCP_NOTSENT_LOWAT.set(&fd, NOT_SENT_MAX_BYTES);
        let length = |bytes: u32| u64::from(bytes.clamp(1, TRANSACTION_BYTES_MAX));
        Self {
            request_bytes: length(spec.request_bytes),
            response_bytes: length(spec.response_bytes),
            pending_bytes: 0,
            answer: answer.to_vec(),
            unsent_bytes: 0,
        }
    }

    pub(super) fn has_unsent(&self) -> bool {
        !self.answer.is_empty() || self.unsent_bytes > 0
    }

    /// Sends what is owed, and reads once when nothing is owed any more.
    pub(super) fn advance(
        &mut self,
        fd: impl AsFd,
        buffer: &mut [u8],
        meter: &Meter,
    ) -> io::Result<Turn> {
        if self.unsent_bytes > 0 {
            if let Some(at_ns) = self.flush(&fd, meter)? {
                return Ok(Turn::NotBefore(at_ns));
            }
            if self.unsent_bytes > 0 {
                return Ok(Turn::Answered(0));
            }
        }

        let room = match meter.room(Traffic::Load)? {
            Room::Bytes(room) => room.min(buffer.len()),
            Room::NotBefore(at_ns) => return Ok(Turn::NotBefore(at_ns)),
        };
        let received = stream_io::recv(&fd, buffer.get_mut(..room).unwrap_or_default());
        match if_ready(received)? {
            Some(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Some(len) => {
                self.pending_bytes += len as u64;
                meter.charge(Traffic::Load, len as u64, 0);
            }
            None => {}
        }

        let requests = self.pending_bytes / self.request_bytes;
        self.pending_bytes %= self.request_bytes;
        self.unsent_bytes += requests * self.response_bytes;

        // Responses that a limit delays are answered requests, too.
        self.flush(&fd, meter)?;
        Ok(Turn::Answered(requests))
    }

    /// Sends what is owed. Returns when a limit of the server allows more, monotonic ns.
    fn flush(&mut self, fd: impl AsFd, meter: &Meter) -> io::Result<Option<u64>> {
        for _ in 0..WRITES_PER_TURN {
            let room = match meter.room(Traffic::Load)? {
                Room::Bytes(room) => room,
                Room::NotBefore(at_ns) if self.has_unsent() => return Ok(Some(at_ns)),
                Room::NotBefore(_) => break,
            };
            if !self.has_unsent() {
                break;
            }

            let responses = usize::try_from(self.unsent_bytes)
                .unwrap_or(usize::MAX)
                .min(RESPONSE.len())
                .min(room);
            // One write, so that the first response of a connection leaves with the answer to its
            // head.
            let parts = [
                &self.answer[..],
                RESPONSE.get(..responses).unwrap_or_default(),
            ]
            .map(IoSlice::new);
            let Some(len) = if_ready(stream_io::send_slices(&fd, &parts, Followed::No))? else {
                break;
            };
            meter.charge(Traffic::Load, 0, len as u64);
            let of_answer = len.min(self.answer.len());
            drop(self.answer.drain(..of_answer));
            self.unsent_bytes = self.unsent_bytes.saturating_sub((len - of_answer) as u64);
        }

        Ok(None)
    }
}
