//! Loads of an HTTP server.

pub use linerate_http::run::load::{LoadEnd, LoadPlan, work};

use super::embedding::open_view;
use crate::Error;

/// Runs a load: probes the server, sends requests, reports what was measured.
///
/// # Errors
/// Options that this host or the server does not allow, or a server that does not answer.
pub fn run(plan: &LoadPlan) -> Result<LoadEnd, Error> {
    linerate_http::run::load::run(plan, open_view)
}
