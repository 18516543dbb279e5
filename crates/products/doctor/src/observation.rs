//! A test observed by both ends: what one end sends to the other, and the diagnosis of both
//! observations together.

mod direction;
mod end;
mod endpoint;
mod loss;

use linerate_model::finding::Diagnosis;
use linerate_model::snapshot::Snapshot;

use crate::judge::diagnose_with;
use crate::observed::Observed;
use crate::slices::slices;
use crate::timeline::TestInterval;
use direction::DIRECTIONS;
use end::end;
pub use endpoint::EndpointObservation;
use loss::{loss, record_loss};

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
pub(crate) fn is_same_host(client: &Snapshot, server: Option<&Snapshot>) -> Option<bool> {
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
