//! Requests and replies of a bounce-back test. The first request is where other tests have
//! their header.

mod machines;

use std::time::Duration;

use linerate_model::spec::Payload;
use thiserror::Error;

use crate::wire::stamp::Timestamp;
use crate::wire::{half, put_half, put_word, word};

pub use machines::{Reply, Requester, Responder, RoundTrip};

/// First word of every request and reply.
pub const MARK: u32 = crate::wire::header::first::BOUNCE_BACK;
/// Bytes before the digits.
pub const HEAD_LEN: usize = 64;
/// Largest request or reply that is accepted from a peer.
pub const MESSAGE_LEN_MAX: u32 = 16 << 20;
/// Longest hold that is accepted from a peer.
pub const HOLD_MAX: Duration = Duration::from_secs(60);

/// The head of a request, and of its reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BounceHead {
    /// Bytes of the request, this head included.
    pub request_bytes: u32,
    /// Bytes of the reply, `None` for as many (2.2.1).
    pub reply_bytes: Option<u32>,
    /// Number of the burst, from 1.
    pub burst: u32,
    /// The server is to acknowledge at once.
    pub quick_ack: bool,
    /// Client and server share a clock.
    pub trip_times: bool,
    /// TOS byte of the server's replies.
    pub tos: Option<u8>,
    /// The last request, without a reply.
    pub stop: bool,
    /// Time the server is to wait.
    pub hold: Duration,
    /// Client's clock when the request was written.
    pub sent: Timestamp,
    /// Server's clock when it had arrived.
    pub received: Option<Timestamp>,
    /// Server's clock when the reply was written.
    pub replied: Option<Timestamp>,
}

/// A request no server should obey.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BounceError {
    /// Does not begin as one.
    #[error("this is not a bounce-back request")]
    Mark,
    /// Shorter than its own head, or beyond every limit.
    #[error("a bounce-back message of {0} bytes is not possible")]
    Size(u32),
    /// Longer than anybody waits.
    #[error("holding a bounce-back reply for {0} us is not possible")]
    Hold(u32),
}

impl BounceHead {
    /// Reads the head, which must be complete.
    ///
    /// # Errors
    /// When it is no head, or requests more than the limits allow.
    pub fn parse(bytes: &[u8; HEAD_LEN]) -> Result<Self, BounceError> {
        let word = |at| word(bytes, at).unwrap_or_default();
        let flags = half(bytes, 12).unwrap_or_default();
        if word(0) != MARK {
            return Err(BounceError::Mark);
        }

        let request_bytes = checked_len(word(4))?;
        let reply_bytes = (flags & REPLY_SIZE != 0)
            .then(|| checked_len(word(60)))
            .transpose()?;
        let hold = Duration::from_micros(u64::from(word(44)));
        // A held reply occupies a place of the server, so the time is bounded.
        if hold > HOLD_MAX {
            return Err(BounceError::Hold(word(44)));
        }

        Ok(Self {
            request_bytes,
            reply_bytes,
            burst: word(8),
            quick_ack: flags & QUICK_ACK != 0,
            trip_times: flags & CLOCKS_AGREE != 0,
            tos: (flags & TOS != 0).then(|| half(bytes, 14).unwrap_or_default() as u8),
            stop: flags & STOP != 0,
            hold,
            sent: Timestamp::read(bytes, 20).unwrap_or_default(),
            received: server_time(bytes, 28),
            replied: server_time(bytes, 36),
        })
    }

    /// Writes the head over the start of a message.
    pub fn write(&self, bytes: &mut [u8]) {
        let bits = [
            (self.quick_ack, QUICK_ACK),
            (self.trip_times, CLOCKS_AGREE),
            (self.tos.is_some(), TOS),
            (self.stop, STOP),
            (self.reply_bytes.is_some(), REPLY_SIZE),
        ];
        let flags = bits
            .iter()
            .filter(|(set, _)| *set)
            .fold(0, |word, (_, bit)| word | bit);
        put_word(bytes, 0, MARK);
        put_word(bytes, 4, self.request_bytes);
        put_word(bytes, 8, self.burst);
        put_half(bytes, 12, flags);
        put_half(bytes, 14, self.tos.map_or(FILLER, u16::from));
        put_word(bytes, 16, 0);
        self.sent.write(bytes, 20);
        // Requests leave the times of the server as placeholders.
        self.received.unwrap_or(UNKNOWN).write(bytes, 28);
        self.replied.unwrap_or(UNKNOWN).write(bytes, 36);
        put_word(
            bytes,
            44,
            u32::try_from(self.hold.as_micros()).unwrap_or(u32::MAX),
        );

        for at in (48..60).step_by(4) {
            put_word(bytes, at, u32::from(FILLER) << 16 | u32::from(FILLER));
        }

        if let Some(len) = self.reply_bytes {
            put_word(bytes, 60, len);
        }
    }

    /// Bytes of the reply.
    pub fn reply_len(&self) -> u32 {
        self.reply_bytes.unwrap_or(self.request_bytes)
    }

    /// A whole message: head and digits. A request shorter than its head is cut, as real clients
    /// cut it.
    pub fn message(&self, len: u32) -> Vec<u8> {
        let mut bytes = vec![0; len.min(MESSAGE_LEN_MAX) as usize];
        // The word at 60 is part of the digits unless a reply size is named.
        if let Some(tail) = bytes.get_mut(60..) {
            Payload::fill_repeating(tail);
        }

        self.write(&mut bytes);
        bytes
    }
}

fn checked_len(len: u32) -> Result<u32, BounceError> {
    if (HEAD_LEN as u32..=MESSAGE_LEN_MAX).contains(&len) {
        Ok(len)
    } else {
        Err(BounceError::Size(len))
    }
}

fn server_time(bytes: &[u8], at: usize) -> Option<Timestamp> {
    Timestamp::read(bytes, at).filter(|time| *time != UNKNOWN)
}

const QUICK_ACK: u16 = 0x8000;
const CLOCKS_AGREE: u16 = 0x4000;
const TOS: u16 = 0x2000;
const STOP: u16 = 0x1000;
const REPLY_SIZE: u16 = 0x0800;
/// Value of unused fields.
const FILLER: u16 = 0x5a5a;
/// Placeholder for the times of the server.
const UNKNOWN: Timestamp = Timestamp {
    sec: u32::MAX,
    usec: u32::MAX,
};
