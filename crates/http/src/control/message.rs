//! What both ends of the control channel say.

use std::net::IpAddr;

use linerate_model::http::{EndpointStats, Environment, Phase};
use serde::{Deserialize, Serialize};

/// What [`Info::program`] says.
pub const PROGRAM: &str = "linerate";
/// Begins the capability that tells the port of an iperf3 server beside the one under test: `iperf3=5201`.
pub const TCP_CAPABILITY: &str = "iperf3=";
/// Longest name of a cell.
const ID_BYTES_MAX: usize = 64;

/// Who answers on the control channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// Always [`PROGRAM`].
    pub program: String,
    /// Version of it.
    pub version: String,
    /// What it can do beyond figures: `restart-workers`, [`TCP_CAPABILITY`].
    pub capabilities: Vec<String>,
    /// The processes whose figures these are.
    pub pids: Vec<u32>,
    /// The port under test; absent where only a process is watched.
    pub port: Option<u16>,
    /// Its host.
    pub environment: Environment,
}

impl Info {
    /// Whether it can do something.
    #[must_use]
    pub fn can(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|known| known == capability)
    }
}

/// Both clocks of the server at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// `CLOCK_MONOTONIC`.
    pub monotonic_ns: u64,
    /// Since 1970.
    pub unix_ns: u64,
}

/// A cell that begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellMark {
    /// Its name: letters, digits, `.`, `_` and `-`, at most 64.
    pub id: String,
    /// Part of the experiment.
    #[serde(default)]
    pub phase: Option<Phase>,
    /// Bytes of a body.
    #[serde(default)]
    pub payload_bytes: Option<u64>,
    /// Connections.
    #[serde(default)]
    pub connections: Option<u32>,
    /// How long it will take; cells above a minute are read once a second.
    #[serde(default)]
    pub expected_ms: Option<u64>,
    /// It only warms up: seconds are kept from here, and the cell itself begins by a second mark of the same name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_warm_up: bool,
    /// Whose traffic it will be, where that is not whoever controls it.
    #[serde(default)]
    pub peer: Option<IpAddr>,
}

impl CellMark {
    /// A cell of which only the name is known.
    #[must_use]
    pub fn named(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            phase: None,
            payload_bytes: None,
            connections: None,
            expected_ms: None,
            is_warm_up: false,
            peer: None,
        }
    }

    /// Whether its name can stand in a path.
    #[must_use]
    pub fn has_valid_id(&self) -> bool {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        (1..=ID_BYTES_MAX).contains(&self.id.len()) && self.id.bytes().all(is_plain)
    }
}

/// A cell that has begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellBegun {
    /// Its name.
    pub id: String,
    /// When, monotonic clock of the server.
    pub at_ns: u64,
    /// What is so before it: memory, descriptors, sockets.
    pub baseline: EndpointStats,
}

/// Why something was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ErrorText {
    pub(super) error: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_cells_can_stand_in_a_path() {
        for good in ["matrix-10240-c64-r1", "A.b_9", &"x".repeat(64)] {
            assert!(CellMark::named(good).has_valid_id(), "{good}");
        }
        for bad in ["", "a/b", "a b", "ä", "a?b", "a%20", &"x".repeat(65)] {
            assert!(!CellMark::named(bad).has_valid_id(), "{bad}");
        }
    }

    #[test]
    fn a_mark_needs_a_name_only() {
        let mark: CellMark = serde_json::from_str(r#"{"id":"a"}"#).expect("enough");
        assert_eq!(mark, CellMark::named("a"));
        assert!(serde_json::from_str::<CellMark>("{}").is_err());
    }
}
