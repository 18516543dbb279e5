//! The amount of a test, in one 32-bit word.

use std::time::Duration;

use linerate_model::EndCondition;

/// End condition of a sender.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Amount {
    /// Not stated.
    #[default]
    Open,
    /// Number of bytes, header included.
    Bytes(u32),
    /// Number of steps of 10 ms.
    Ticks(u32),
}

impl Amount {
    /// Most bytes the word can carry.
    pub const BYTES_MAX: u32 = 0x7fff_ffff;

    /// Reads the word: with the highest bit set a negative number of ticks, else bytes.
    pub fn from_word(word: u32) -> Self {
        match word {
            0 => Self::Open,
            bytes if bytes & TIME == 0 => Self::Bytes(bytes),
            negative => Self::Ticks(negative.wrapping_neg()),
        }
    }

    /// The word.
    pub fn to_word(self) -> u32 {
        match self {
            Self::Open => 0,
            Self::Bytes(bytes) => bytes.min(Self::BYTES_MAX),
            Self::Ticks(ticks) => ticks.min(TIME).wrapping_neg(),
        }
    }

    /// The amount of a test; `None` for more bytes than the word can carry.
    pub fn of_end(end: EndCondition) -> Option<Self> {
        Some(match end {
            EndCondition::Duration(time) => {
                let ticks = time.as_nanos() / TICK.as_nanos();
                Self::Ticks(u32::try_from(ticks).unwrap_or(TIME).clamp(1, TIME))
            }
            EndCondition::Bytes(bytes) => Self::Bytes(
                u32::try_from(bytes)
                    .ok()
                    .filter(|b| *b <= Self::BYTES_MAX)?,
            ),
            EndCondition::Blocks(_) | EndCondition::Unlimited => Self::Open,
        })
    }

    /// The same for a test.
    pub fn to_end(self) -> EndCondition {
        match self {
            Self::Open => EndCondition::Unlimited,
            Self::Bytes(bytes) => EndCondition::Bytes(u64::from(bytes)),
            Self::Ticks(ticks) => EndCondition::Duration(TICK * ticks),
        }
    }
}

/// Unit of times.
const TICK: Duration = Duration::from_millis(10);
/// The bit that makes a number a time.
const TIME: u32 = 0x8000_0000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_captures() {
        let rows = [
            (
                EndCondition::Duration(Duration::from_millis(300)),
                0xffff_ffe2,
            ),
            (EndCondition::Duration(Duration::from_secs(1)), 0xffff_ff9c),
            (EndCondition::Bytes(256 << 10), 0x0004_0000),
            (EndCondition::Unlimited, 0),
        ];
        for (end, word) in rows {
            let amount = Amount::of_end(end).expect("it fits");
            assert_eq!(amount.to_word(), word, "{end:?}");
            assert_eq!(Amount::from_word(word).to_end(), end);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_or_cut() {
        assert_eq!(Amount::of_end(EndCondition::Bytes(3 << 30)), None);
        let endless = EndCondition::Duration(Duration::from_secs(u64::MAX));
        assert_eq!(Amount::of_end(endless), Some(Amount::Ticks(TIME)));
        assert_eq!(
            Amount::from_word(Amount::Ticks(TIME).to_word()),
            Amount::Ticks(TIME)
        );
        assert_eq!(
            Amount::of_end(EndCondition::Duration(Duration::ZERO)),
            Some(Amount::Ticks(1))
        );
    }
}
