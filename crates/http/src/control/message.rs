//! Messages of the control channel.

use std::net::IpAddr;

use linerate_model::http::{EndpointStats, Environment};
use serde::{Deserialize, Serialize};

/// Value of [`Info::program`].
pub const PROGRAM: &str = "linerate";
/// Prefix of the capability with the port of an iperf3 server beside the one under test: `iperf3=5201`.
pub const TCP_CAPABILITY: &str = "iperf3=";
/// Longest id of a cell.
const ID_BYTES_MAX: usize = 64;

/// Identity of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// Always [`PROGRAM`].
    pub program: String,
    /// Its version.
    pub version: String,
    /// Capabilities beyond measurements: `restart-workers`, [`TCP_CAPABILITY`].
    pub capabilities: Vec<String>,
    /// Processes that are measured.
    pub pids: Vec<u32>,
    /// The port under test; `None` where only a process is measured.
    pub port: Option<u16>,
    /// Facts about its host.
    pub environment: Environment,
}

impl Info {
    /// Whether it has a capability.
    #[must_use]
    pub fn can(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|known| known == capability)
    }
}

/// Both clocks of the server at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// `CLOCK_MONOTONIC`.
    pub monotonic_ns: u64,
    /// UNIX time.
    pub unix_ns: u64,
}

/// Start of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CellMark {
    /// Id: letters, digits, `.`, `_` and `-`, at most 64.
    pub id: String,
    /// Expected duration; cells above a minute are sampled once a second.
    pub expected_ms: Option<u64>,
    /// Warm-up: seconds are kept from here; a second mark of the same id begins the cell itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_warm_up: bool,
    /// Source of the traffic, if it is not the client of the channel.
    pub peer: Option<IpAddr>,
}

impl CellMark {
    /// A cell with an id only.
    #[must_use]
    pub fn named(id: impl Into<String>) -> Self {
        Self { id: id.into(), ..Self::default() }
    }

    /// Whether the id is valid in a path.
    #[must_use]
    pub fn has_valid_id(&self) -> bool {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        (1..=ID_BYTES_MAX).contains(&self.id.len()) && self.id.bytes().all(is_plain)
    }
}

/// A cell that has begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellBegun {
    /// Its id.
    pub id: String,
    /// Time on the monotonic clock of the server.
    pub at_ns: u64,
    /// Memory, descriptors and sockets before it.
    pub baseline: EndpointStats,
}

/// Body of an error response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ErrorText {
    pub(super) error: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_is_valid_in_a_path() {
        for good in ["matrix-10240-c64-r1", "A.b_9", &"x".repeat(64)] {
            assert!(CellMark::named(good).has_valid_id(), "{good}");
        }
        for bad in ["", "a/b", "a b", "ä", "a?b", "a%20", &"x".repeat(65)] {
            assert!(!CellMark::named(bad).has_valid_id(), "{bad}");
        }
    }

    #[test]
    fn mark_needs_an_id_only() {
        let mark: CellMark = serde_json::from_str(r#"{"id":"a"}"#).expect("enough");
        assert_eq!(mark, CellMark::named("a"));
        assert!(serde_json::from_str::<CellMark>("{}").is_err());
    }
}
