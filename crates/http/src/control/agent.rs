//! What the control channel asks of the program behind it.

use std::net::IpAddr;
use std::time::Duration;

use linerate_model::http::{EndpointStats, Reading};

use super::message::{CellBegun, CellMark, Info};

/// Whoever knows the figures. Called from several threads at a time.
pub trait Agent: Send + Sync {
    /// Who this is, and what its host is like on the way to `peer`. May take a second.
    fn info(&self, peer: IpAddr) -> Info;

    /// Begins a cell: peaks and counters count from here. One that runs already is given up. `peer` is whose traffic it
    /// will be.
    ///
    /// # Errors
    /// Why not.
    fn begin_cell(&self, mark: &CellMark, peer: IpAddr) -> Result<CellBegun, Refusal>;

    /// Ends a cell and gives its figures; once more for the one that ended last.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] for any other.
    fn end_cell(&self, id: &str) -> Result<EndpointStats, Refusal>;

    /// Readings from this number on, as far as they are still kept. Waits up to `patience` for the first.
    fn readings(&self, from: u64, patience: Duration) -> Vec<Reading>;

    /// Makes the threads under test as if newly started.
    ///
    /// # Errors
    /// [`Refusal::Unsupported`] where there are none.
    fn restart_workers(&self) -> Result<(), Refusal>;
}

/// Why something is not done, in words for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// There is nothing of this name.
    #[error("{0}")]
    Unknown(String),
    /// This program cannot do it.
    #[error("{0}")]
    Unsupported(String),
    /// It was tried and failed.
    #[error("{0}")]
    Failed(String),
}

impl Refusal {
    /// The status code that says so.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::Unknown(_) => 404,
            Self::Unsupported(_) => 501,
            Self::Failed(_) => 500,
        }
    }
}
