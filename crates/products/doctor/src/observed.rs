//! A host as input of the rules.

use linerate_model::snapshot::Snapshot;

use crate::period::Period;

/// One host as it was observed.
#[derive(Debug, Clone)]
pub struct Observed {
    /// Its facts. Of several readings, the last.
    pub snapshot: Snapshot,
    /// Growth of its counters, if they were read more than once. Counters of the other end of a
    /// test may be added to it.
    pub period: Option<Period>,
}

impl Observed {
    /// A host that was read once.
    pub const fn once(snapshot: Snapshot) -> Self {
        Self {
            snapshot,
            period: None,
        }
    }
}
