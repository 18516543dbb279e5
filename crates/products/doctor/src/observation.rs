//! A test observed by both ends: what one end sends to the other, and the diagnosis of both
//! observations together.

mod direction;
mod end;
mod loss;

use linerate_model::finding::Diagnosis;
use linerate_model::printable::acts;
use linerate_model::snapshot::Snapshot;
use serde::{Deserialize, Serialize};

use crate::judge::diagnose_with;
use crate::observed::Observed;
use crate::period::Period;
use crate::slices::slices;
use crate::timeline::{RunFacts, TestInterval};
use direction::DIRECTIONS;
use end::end;
use loss::{loss, record_loss};

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

/// Diagnoses a test by the observations of its client and, if it sent one, its server.
pub fn diagnose_test(
    client: EndpointObservation,
    server: Option<EndpointObservation>,
) -> Diagnosis {
    let peer = server.as_ref();
    let runs = DIRECTIONS.map(|direction| direction.run(&client, peer));
    let existing = DIRECTIONS
        .iter()
        .zip(&runs)
        .filter(|(_, run)| run.is_some());
    let timelines: Vec<Vec<TestInterval>> = existing
        .map(|(direction, _)| direction.timeline(&client, peer))
        .collect();

    let same_host = is_same_host(&client.snapshot, peer.map(|server| &server.snapshot));
    let part_of_client = ["sender", "receiver"];
    let part_of_server = ["receiver", "sender"];

    let client = end("client", client, &runs, part_of_client, same_host);
    let server = server.map(|server| end("server", server, &runs, part_of_server, same_host));
    let mut observed: Vec<Observed> = std::iter::once(client).chain(server).collect();

    let loss = loss(&observed, &runs);
    // Before the diagnosis: rules read the parts as facts of the run.
    observed
        .iter_mut()
        .for_each(|one| record_loss(&mut one.snapshot, &loss));
    let loss = loss.into_iter().map(|(_, split)| split).collect();
    let mut diagnosis = diagnose_with(&observed, &[], &slices(&observed, &timelines));
    diagnosis.loss = loss;

    diagnosis
}

/// The fact that the peer runs on this machine, maybe in another network namespace.
pub const PEER_IS_HERE: &str = "route.peer.is_here";

/// True if both ends run on one host; `None` where a server that was not observed may be anywhere.
fn is_same_host(client: &Snapshot, server: Option<&Snapshot>) -> Option<bool> {
    match server {
        // Network namespaces of one machine share its boot id, and its CPUs.
        Some(server) => Some(client.boot_id.is_some() && client.boot_id == server.boot_id),
        None => {
            let is_loopback = client.text("route.peer.dev") == Some("lo");
            // Otherwise the server is one of the other programs that the advice would end.
            let is_known = is_loopback || client.flag(PEER_IS_HERE).is_some_and(|is_here| is_here);
            is_known.then_some(true)
        }
    }
}

#[cfg(test)]
mod tests;
