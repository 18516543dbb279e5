//! Both ends of a cell.

use linerate_model::http::{CellFacts, EndpointFacts, Peak, Side};

use crate::rules::prelude::*;

/// Name of an end in sentences.
pub(super) const fn name(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

/// One endpoint; a server's is unknown without an agent there.
pub(super) fn endpoint(facts: &CellFacts, side: Side) -> Result<&EndpointFacts, NoMatch> {
    match (side, &facts.server) {
        (Side::Client, _) => Ok(&facts.client),
        (Side::Server, Some(server)) => Ok(server),
        (Side::Server, None) => unknown(SERVER_CPUS, "is not known: no agent there"),
    }
}

pub(super) const SERVER_CPUS: &str = "how busy the server's CPUs were";

/// A value as a share of its limit.
pub(super) fn fullness(peak: Option<Peak>) -> Option<f64> {
    let peak = peak?;
    let limit = peak.limit.filter(|limit| *limit > 0)?;
    Some(peak.peak as f64 / limit as f64)
}
