//! Interface between the control channel and the program.

use std::net::IpAddr;
use std::time::Duration;

use linerate_model::http::{EndpointStats, Reading};

use super::message::{CellBegun, CellMark, Info};

/// Provides measurements of the server. Called from several threads.
pub trait Agent: Send + Sync {
    /// Identity, and facts about the host on the path to `peer`. May take a second.
    fn info(&self, peer: IpAddr) -> Info;

    /// Begins a cell: peaks and counters start here. A running cell is dropped. `peer` is the source of the traffic.
    ///
    /// # Errors
    /// Why not.
    fn begin_cell(&self, mark: &CellMark, peer: IpAddr) -> Result<CellBegun, Refusal>;

    /// Ends a cell and returns its measurements; repeated for the last one.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] for any other.
    fn end_cell(&self, id: &str) -> Result<EndpointStats, Refusal>;

    /// Samples from this number on that are still kept. Waits up to `timeout` for the first.
    fn readings(&self, from: u64, timeout: Duration) -> Vec<Reading>;

    /// The last sample, however old.
    fn last_reading(&self) -> Option<Reading>;

    /// Restarts the threads under test.
    ///
    /// # Errors
    /// [`Refusal::Unsupported`] without such threads.
    fn restart_workers(&self) -> Result<(), Refusal>;
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// No such object.
    #[error("{0}")]
    Unknown(String),
    /// Not supported by this program.
    #[error("{0}")]
    Unsupported(String),
    /// Failed.
    #[error("{0}")]
    Failed(String),
}

impl Refusal {
    /// The status code.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::Unknown(_) => 404,
            Self::Unsupported(_) => 501,
            Self::Failed(_) => 500,
        }
    }
}
