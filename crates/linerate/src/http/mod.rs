//! The HTTP lab: a server of payloads, a load generator, and experiments with both.

pub mod agent;
mod generator;
pub mod lab;
pub mod load;
mod observed;
mod output;
mod restartable_server;
pub mod serve;
mod server_side;
mod signals;
pub(crate) mod watch;
pub mod worker;

use linerate_http::probe::ProbeError;

use crate::{Error, Outcome};

pub use generator::{Opening, Resolved};
pub use linerate_doctor::http::too_many_connections;
pub use output::{Files, Output};
pub use server_side::ControlPath;

fn cannot_watch(error: impl std::fmt::Display) -> Error {
    Error::failed(format!("cannot watch this host: {error}"))
}

/// A server that could not be reached, or an invalid request.
fn probe_error(error: ProbeError) -> Error {
    match error {
        ProbeError::Request(_) => Error::usage(error),
        error => Error::new(Outcome::Unreachable, error),
    }
}
