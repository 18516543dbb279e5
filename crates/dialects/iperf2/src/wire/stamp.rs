//! Wall-clock times as they travel.

use crate::wire::{put_word, word};

/// Seconds and microseconds since 1970. Two words on the wire; whatever a peer sends is a valid
/// value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub sec: u32,
    /// Microseconds, 0..=999999 from an honest peer.
    pub usec: u32,
}

impl Timestamp {
    /// The time `unix_ns` nanoseconds after 1970. The wire's seconds end in 2106.
    pub fn from_unix_ns(unix_ns: u64) -> Self {
        Self {
            sec: (unix_ns / 1_000_000_000) as u32,
            usec: (unix_ns % 1_000_000_000 / 1000) as u32,
        }
    }

    /// Nanoseconds since 1970; any two words fit.
    pub fn unix_ns(self) -> u64 {
        u64::from(self.sec) * 1_000_000_000 + u64::from(self.usec) * 1000
    }

    /// Nanoseconds from `earlier` to this time, negative if the clocks disagree.
    pub fn ns_since(self, earlier: Self) -> i64 {
        // Both are below 2^62.1, so neither conversion nor difference can overflow.
        self.unix_ns() as i64 - earlier.unix_ns() as i64
    }

    /// Checks whether both words are 0, which means "no time".
    pub fn is_unset(self) -> bool {
        self == Self::default()
    }

    pub(crate) fn read(bytes: &[u8], at: usize) -> Option<Self> {
        Some(Self {
            sec: word(bytes, at)?,
            usec: word(bytes, at + 4)?,
        })
    }

    pub(crate) fn write(self, bytes: &mut [u8], at: usize) {
        put_word(bytes, at, self.sec);
        put_word(bytes, at + 4, self.usec);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_and_hostile_ones_do_not_overflow() {
        let time = Timestamp::from_unix_ns(1_795_286_916_123_456_000);
        assert_eq!((time.sec, time.usec), (1_795_286_916, 123_456));
        assert_eq!(time.unix_ns(), 1_795_286_916_123_456_000);

        let hostile = Timestamp {
            sec: u32::MAX,
            usec: u32::MAX,
        };
        assert!(hostile.ns_since(Timestamp::default()) > 0);
        assert!(Timestamp::default().ns_since(hostile) < 0);
    }
}
