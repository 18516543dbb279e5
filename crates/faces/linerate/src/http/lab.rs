//! Experiments with an HTTP server.

pub use linerate_http::run::lab::{Directory, LabSpec, PLAN_FILE, Stage};

use super::embedding::open_view;
use crate::{Error, Outcome};

/// Carries out an experiment, or the selected part of it.
///
/// # Errors
/// An invalid plan, hosts that do not have what it needs, or a server that does not answer.
pub fn run(spec: &LabSpec) -> Result<Outcome, Error> {
    linerate_http::run::lab::run(spec, open_view)
}
