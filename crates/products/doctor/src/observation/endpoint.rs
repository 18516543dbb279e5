//! Observation of a test by one of its ends.

use linerate_model::printable::acts;
use linerate_model::snapshot::Snapshot;
use serde::{Deserialize, Serialize};

use crate::period::Period;
use crate::timeline::{RunFacts, TestInterval};

/// Observation of a test by one end. Sent as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndpointObservation {
    /// The host at the end of the test.
    pub snapshot: Snapshot,
    /// Its counters over the test.
    pub period: Option<Period>,
    /// Client to server, as this end saw it.
    pub forward: Option<RunFacts>,
    /// Server to client, as this end saw it.
    pub reverse: Option<RunFacts>,
    /// The intervals of [`Self::forward`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forward_intervals: Vec<TestInterval>,
    /// The intervals of [`Self::reverse`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reverse_intervals: Vec<TestInterval>,
}

impl EndpointObservation {
    /// Parses the observation of a peer. Only [`Self::forward`] and [`Self::reverse`] hold runs.
    ///
    /// # Errors
    /// When the text is no observation.
    pub fn from_peer(text: &str) -> Result<Self, serde_json::Error> {
        let mut observation: Self = serde_json::from_str(text)?;
        // Reports print keys: control characters of a peer must not reach a terminal.
        let is_plain = |key: &str| !key.contains(acts);
        // Runs of a peer are `forward` and `reverse`; other facts of runs would mix with them.
        observation
            .snapshot
            .facts
            .retain(|key, _| is_plain(key) && !key.starts_with("run."));
        observation.snapshot.counters.retain(|key, _| is_plain(key));

        Ok(observation)
    }
}
