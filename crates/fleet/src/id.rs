//! Names of hosts and numbers of tasks, as they stand in inventories and messages.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// Longest name of a host in bytes.
const HOST_MAX_BYTES: usize = 63;
/// Digits of a task number.
const TASK_DIGITS: usize = 16;

/// Name of a host in the inventory: `[A-Za-z0-9_.-]{1,63}` without a leading `-`. File names are made of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(String);

/// A test between two hosts of a run: a hash of its ends, path, variant and repetition. 16 hexadecimal digits in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u64);

/// A text that is no id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IdError {
    /// Not the name of a host.
    #[error("{0:?} is no host id: 1 to 63 of A-Z a-z 0-9 _ . -, not beginning with -")]
    Host(String),
    /// Not the number of a task.
    #[error("{0:?} is no task id: 16 hexadecimal digits in lower case")]
    Task(String),
}

impl HostId {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HostId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let is_id = (1..=HOST_MAX_BYTES).contains(&text.len())
            && !text.starts_with('-')
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
            // They name directories.
            && text.bytes().any(|byte| byte != b'.');
        if is_id { Ok(Self(text.to_owned())) } else { Err(IdError::Host(shortened(text))) }
    }
}

impl FromStr for TaskId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let is_id = text.len() == TASK_DIGITS && text.bytes().all(|byte| b"0123456789abcdef".contains(&byte));
        let number = is_id.then(|| u64::from_str_radix(text, 16).ok()).flatten();
        number.map(Self).ok_or_else(|| IdError::Task(shortened(text)))
    }
}

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for HostId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0)
    }
}

impl Serialize for TaskId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HostId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for TaskId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The begin of a text for an error.
fn shortened(text: &str) -> String {
    text.chars().take(HOST_MAX_BYTES + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_ids_are_short_names_that_cannot_be_options_or_directories() {
        for right in ["a", "pc07", "10.0.0.7", "_x.y-z", &"h".repeat(63)] {
            assert_eq!(right.parse::<HostId>().map(|id| id.to_string()), Ok(right.to_owned()));
        }
        for wrong in ["", "-a", "a b", "a/b", ".", "..", "ä", "a\n", &"h".repeat(64)] {
            assert!(wrong.parse::<HostId>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn task_ids_survive_their_text() {
        let id = TaskId(0xfe);
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in ["", "fe", "00000000000000FE", "+0000000000000fe", "00000000000000fe0"] {
            assert!(wrong.parse::<TaskId>().is_err(), "{wrong}");
        }
    }
}
