//! Requests of the lab to the host of the server: names, arguments, responses.

use linerate_model::http::Environment;
use serde::{Deserialize, Serialize};

/// Identity of the server, and facts about its host: no argument, [`Info`].
pub(super) const INFO: &str = "http.info";
/// Begins a cell: [`CellMark`], no response.
pub(super) const BEGIN_CELL: &str = "http.begin_cell";
/// Ends a cell: its id, its statistics. Repeated for the last one.
pub(super) const END_CELL: &str = "http.end_cell";
/// The last sample of the host: no argument, a `Reading` or null before the first.
pub(super) const LAST_READING: &str = "http.last_reading";
/// Restarts the threads of the server: no argument, no response.
pub(super) const RESTART_WORKERS: &str = "http.restart_workers";

/// Capability of a server whose threads can be restarted.
pub(super) const RESTART_CAPABILITY: &str = "restart-workers";
/// Prefix of the capability with the port of an iperf3 server beside the one under test:
/// `iperf3=5201`.
pub(super) const TCP_CAPABILITY: &str = "iperf3=";

/// Identity of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Info {
    /// Version of its program.
    pub version: String,
    /// Capabilities beyond measurements: [`RESTART_CAPABILITY`], [`TCP_CAPABILITY`].
    pub capabilities: Vec<String>,
    /// Processes that are measured.
    pub pids: Vec<u32>,
    /// The port under test; `None` where only a process is measured.
    pub port: Option<u16>,
    /// Facts about its host.
    pub environment: Environment,
}

impl Info {
    /// True if it has a capability.
    pub(super) fn can(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|known| known == capability)
    }
}

/// Start of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct CellMark {
    /// Id.
    pub id: String,
    /// Expected duration; cells above a minute are sampled once a second.
    pub expected_ms: Option<u64>,
    /// Warm-up: seconds are kept from here; a second mark of the same id begins the cell itself.
    #[serde(default)]
    pub is_warm_up: bool,
    /// Source of the traffic, if it is not the client of the session.
    pub peer: Option<std::net::IpAddr>,
}

impl CellMark {
    /// A cell with an id only.
    pub(super) fn named(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            ..Self::default()
        }
    }
}
