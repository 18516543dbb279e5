//! Carries out the command lines of the HTTP lab.

pub mod agent;
pub mod generator;
pub mod lab;
pub mod load;
mod observed;
pub mod output;
mod restartable_server;
pub mod serve;
pub mod server_side;
mod signals;
pub(crate) mod watch;
pub mod worker;

use linerate_http::probe::ProbeError;

use crate::{Error, Outcome};

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
