//! Checks before an experiment.

use linerate_macros::stored;

/// One of the two ends.
#[stored(Copy, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The load generator's host.
    Client,
    /// The server's host.
    Server,
}

/// Outcome of a check.
#[stored(Copy, Eq, PartialOrd, Ord)]
pub enum CheckStatus {
    /// Enough.
    Pass,
    /// Nothing to do, worth knowing.
    Info,
    /// May change the statistics.
    Warn,
    /// The cells named cannot be run as planned.
    Fail,
    /// Could not be checked.
    Unknown,
}

/// One check.
#[stored(Eq)]
pub struct Check {
    /// Stable name, for instance `nofile.hard`.
    pub id: String,
    /// Where.
    pub side: Side,
    /// Outcome.
    pub status: CheckStatus,
    /// The value found, with its unit.
    pub have: String,
    /// Requirement of the plan.
    pub need: String,
    /// Commands that change it, each with its undo; empty without.
    pub fix: Vec<String>,
    /// Commands that restore the former state, in this order.
    #[serde(default)]
    pub undo: Vec<String>,
    /// Further advice; empty without.
    #[serde(default)]
    pub advice: String,
    /// Cells it concerns, in words; empty for all.
    pub cells: Vec<String>,
}
