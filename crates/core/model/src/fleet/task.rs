//! Measurements of a fleet run: tasks, and rounds of tasks that run at the same time.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use linerate_macros::stored;
use thiserror::Error;

use super::HostId;
use crate::text::stored_as_text;

/// Digits of a hash.
const HASH_DIGITS: usize = 32;

/// One test from one host to another. Whichever round it runs in, it is the same task. A copy
/// shares the texts.
#[stored(Eq, PartialOrd, Ord, Hash)]
pub struct Task {
    /// The host that sends.
    pub source: HostId,
    /// The host that receives.
    pub sink: HostId,
    /// Name of the path in the inventory: `phys`.
    pub path: Arc<str>,
    /// Factor and level: `cc=bbr`, `senders=4`; empty without one.
    #[serde(default)]
    pub variant: Arc<str>,
    /// Which repetition, from 0.
    #[serde(default)]
    pub repetition: u32,
}

impl Task {
    /// The first test from `source` to `sink` on `path`, with nothing varied.
    pub fn new(source: HostId, sink: HostId, path: impl Into<Arc<str>>) -> Self {
        Self {
            source,
            sink,
            path: path.into(),
            variant: "".into(),
            repetition: 0,
        }
    }
}

/// Tests that start at the same time.
#[stored(Eq)]
pub struct Round {
    /// Its tests.
    pub tasks: Vec<Task>,
    /// Reason of its choice.
    pub mode: FleetMode,
}

impl Round {
    /// `tasks` that start at the same time.
    pub const fn new(tasks: Vec<Task>, mode: FleetMode) -> Self {
        Self { tasks, mode }
    }
}

/// Which tests may run at the same time.
#[stored(Copy, Default, Eq, PartialOrd, Ord, Hash)]
#[serde(rename_all = "kebab-case")]
pub enum FleetMode {
    /// One pair at a time.
    Isolated,
    /// Pairs that have no host in common.
    #[default]
    Rounds,
    /// The same, and no more pairs cross the uplink of a rack than it carries.
    RackSafe,
    /// All pairs at once.
    Stress,
    /// Several senders to one sink, or several sinks of one sender.
    Ladder,
}

/// True if the two directions of a pair run at the same time.
#[stored(Copy, Default, Eq, PartialOrd, Ord, Hash)]
#[serde(rename_all = "kebab-case")]
pub enum PairDirection {
    /// Both at once.
    #[default]
    Both,
    /// One after the other.
    OneWay,
}

/// A text that is no hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("not 32 hexadecimal digits in lower case")]
pub struct HashIdError;

fn number(text: &str) -> Option<u128> {
    let is_hash =
        // `from_str_radix` would accept a sign and capital letters, which no stored hash has.
        text.len() == HASH_DIGITS && text.bytes().all(|byte| b"0123456789abcdef".contains(&byte));
    is_hash
        .then(|| u128::from_str_radix(text, 16).ok())
        .flatten()
}

/// A hash of 128 bits, stored as 32 hexadecimal digits.
macro_rules! hash_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u128);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:032x}", self.0)
            }
        }

        impl FromStr for $name {
            type Err = HashIdError;

            fn from_str(text: &str) -> Result<Self, HashIdError> {
                number(text).map(Self).ok_or(HashIdError)
            }
        }

        stored_as_text!($name, { "type": "string", "pattern": "^[0-9a-f]{32}$" });
    };
}

hash_id! {
    /// Identity of a plan: a hash of its sorted hosts, mode, options and seed.
    PlanHash
}

hash_id! {
    /// Identity of a task: a hash of its members and of the plan's hash, never of a round.
    TaskId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_survive_their_text() {
        let id = TaskId(0x0123_4567);
        assert_eq!(id.to_string(), "00000000000000000000000001234567");
        assert_eq!(id.to_string().parse(), Ok(id));

        for wrong in [
            "",
            "x",
            "1",
            "0000000000000000000000000000000G",
            "+0000000000000000000000001234567",
        ] {
            assert!(wrong.parse::<TaskId>().is_err(), "{wrong}");
        }
    }
}
