//! Loads and experiments as they run: hosts, signals, files and reports.

mod control_client;
mod embedding;
mod experiment;
mod generator;
mod host_agent;
mod idle_check;
pub mod lab;
pub mod load;
mod requests;
mod restartable_server;
mod sampled_load;
mod server_side;
mod signals;
mod tcp_baseline;
mod watch;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_host::connect_advice::{HTTP_SERVER, connect_failure};
use linerate_host::{EnvironmentQuery, environment};
use linerate_model::http::{Environment, NegotiatedProtocol};
use linerate_model::outcome::{Error, Outcome};

use crate::probe::ProbeError;

pub use embedding::{Embedding, LiveView};
pub use generator::{Opening, Resolved, local_address};
pub use host_agent::{HostAgent, tested_port};
pub use restartable_server::RestartableServer;
pub use server_side::ControlPath;

/// Text for standard output and standard error.
#[derive(Debug, Clone, Copy, Default)]
pub struct Output {
    /// Write one JSON object instead of text
    pub json: bool,
    /// Write one JSON object per second and one at the end
    pub json_stream: bool,
    /// No progress messages
    pub quiet: bool,
    /// A view on the terminal of standard error instead of progress messages
    pub tui: bool,
}

/// This host, on the way to `peer`; the load of other programs is observed for `period`.
fn own_environment(peer: IpAddr, period: Duration) -> Environment {
    environment(&EnvironmentQuery {
        version: env!("CARGO_PKG_VERSION"),
        pids: &[std::process::id()],
        port: None,
        peer: Some(peer),
        period,
    })
}

/// `HTTP/2 in plain text, `; empty for HTTP/1.1 in plain text, the default.
fn protocol_name(protocol: &NegotiatedProtocol) -> String {
    if protocol.is_plain_http1() {
        String::new()
    } else {
        format!("{protocol}, ")
    }
}

/// The host of an address as `getaddrinfo(3)` reads it, with the device of a link-local one.
fn host_text(address: SocketAddr) -> String {
    match address {
        SocketAddr::V6(address) if address.scope_id() != 0 => {
            format!("{}%{}", address.ip(), address.scope_id())
        }
        address => address.ip().to_string(),
    }
}

/// A server that could not be reached, or an invalid request.
fn probe_error(error: ProbeError) -> Error {
    match &error {
        ProbeError::Request(_) => Error::usage(error),
        ProbeError::Connect(address, _) => {
            let (host, port) = (host_text(*address), address.port());
            Error::new(
                Outcome::Unreachable,
                connect_failure(&error.to_string(), &host, port, HTTP_SERVER),
            )
        }
        _ => Error::new(Outcome::Unreachable, error),
    }
}
