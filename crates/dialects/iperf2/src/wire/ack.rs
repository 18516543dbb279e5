//! A server's answer to the header of a TCP connection: who it is, and when the header arrived.

use crate::wire::stamp::Timestamp;
use crate::wire::version::Version;
use crate::wire::{put_word, word};

/// Bytes of the answer.
pub const ACK_LEN: usize = 28;
/// Bytes of the answer with times.
pub const TIMED_ACK_LEN: usize = 52;

/// Marks the answer.
const TYPE: u32 = 2;

/// A server's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerAck {
    /// Release of the server.
    pub version: Version,
    /// For clients that send their clock.
    pub times: Option<AckTimes>,
}

/// When the header was sent, arrived and was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckTimes {
    /// Client's clock: the time in the header.
    pub sent: Timestamp,
    /// Server's clock: arrival of the connection.
    pub accepted: Timestamp,
    /// Server's clock: this answer.
    pub answered: Timestamp,
}

/// Comparison of the two clocks from the answer, in ns. Meaningful as far as the clocks agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockCheck {
    /// One-way delay of the header.
    pub send_ns: i64,
    /// One-way delay of the answer.
    pub ack_ns: i64,
}

impl ServerAck {
    /// The answer's bytes.
    pub fn emit(&self) -> Vec<u8> {
        let len = if self.times.is_some() {
            TIMED_ACK_LEN
        } else {
            ACK_LEN
        };
        let mut bytes = vec![0; len];
        let (upper, lower) = self.version.to_words();

        put_word(&mut bytes, 0, TYPE);
        put_word(&mut bytes, 4, len as u32);
        put_word(&mut bytes, 12, upper);
        put_word(&mut bytes, 16, lower);

        if let Some(times) = self.times {
            times.sent.write(&mut bytes, 28);
            times.accepted.write(&mut bytes, 36);
            times.answered.write(&mut bytes, 44);
        }

        bytes
    }

    /// Reads an answer; `None` if the bytes are none, or not all of it.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let len = word(bytes, 4)? as usize;
        if word(bytes, 0)? != TYPE || len > bytes.len() || !(len == ACK_LEN || len == TIMED_ACK_LEN)
        {
            return None;
        }

        let version = Version::from_words(word(bytes, 12)?, word(bytes, 16)?)?;
        let times = (len == TIMED_ACK_LEN).then(|| {
            Some(AckTimes {
                sent: Timestamp::read(bytes, 28)?,
                accepted: Timestamp::read(bytes, 36)?,
                answered: Timestamp::read(bytes, 44)?,
            })
        });
        Some(Self {
            version,
            times: times.flatten(),
        })
    }
}

impl AckTimes {
    /// Compares the clocks; `now` is the client's when the answer arrived.
    pub fn clock_check(&self, now: Timestamp) -> ClockCheck {
        ClockCheck {
            send_ns: self.accepted.ns_since(self.sent),
            ack_ns: now.ns_since(self.answered),
        }
    }
}
