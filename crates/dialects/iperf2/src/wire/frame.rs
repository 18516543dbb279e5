//! Isochronous words inside a datagram. Their place depends on the release of the sender.

use crate::wire::stamp::Timestamp;
use crate::wire::version::Version;
use crate::wire::{put_word, word};

/// Position of a datagram in its frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrameWords {
    /// Microseconds between two frames.
    pub period_us: u32,
    /// Sender's clock at the start of the first frame.
    pub start: Timestamp,
    /// Number of the frame before.
    pub previous: u32,
    /// Number of this frame, from 1.
    pub number: u32,
    /// Bytes of this frame.
    pub size_bytes: u32,
    /// Bytes of this frame that are still to come, this datagram included.
    pub left_bytes: u32,
}

impl FrameWords {
    /// Bytes a datagram needs to hold the words of this release.
    pub fn end(version: Version) -> usize {
        offset(version) + 32
    }

    /// Reads the words; `None` when the datagram is too short or has none.
    pub fn parse(datagram: &[u8], version: Version) -> Option<Self> {
        let at = offset(version);
        let words = Self {
            period_us: word(datagram, at)?,
            start: Timestamp::read(datagram, at + 4)?,
            previous: word(datagram, at + 12)?,
            number: word(datagram, at + 16)?,
            size_bytes: word(datagram, at + 20)?,
            left_bytes: word(datagram, at + 24)?,
        };
        (words.number > 0).then_some(words)
    }

    /// Writes the words into a datagram, as far as that is long enough.
    pub fn write(&self, datagram: &mut [u8], version: Version) {
        let at = offset(version);
        put_word(datagram, at, self.period_us);
        self.start.write(datagram, at + 4);
        put_word(datagram, at + 12, self.previous);
        put_word(datagram, at + 16, self.number);
        put_word(datagram, at + 20, self.size_bytes);
        put_word(datagram, at + 24, self.left_bytes);
    }

    /// The datagram that completes its frame, if it has that many bytes.
    pub fn is_last_of_frame(&self, datagram_bytes: usize) -> bool {
        self.left_bytes as usize <= datagram_bytes
    }
}

fn offset(version: Version) -> usize {
    if version.has_wide_header() { 80 } else { 76 }
}
