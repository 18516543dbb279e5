//! A server: any number of clients, each connection and flow identified by its source address.
//!
//! A connection without a complete header is pending and blocks no other. Then it joins a session:
//! the connections of one client address at one time, reported together.

mod client_session;
mod connect_back;
pub(crate) mod half_open;
mod iperf2_server;
mod listen;
mod pending;
mod udp_listener;

use linerate_model::policy::Iperf2Listener;
use linerate_model::spec::ServerSpec;
use linerate_model::{Failure, ServerReporter};

use crate::error::failure;
use crate::interrupts::Interrupts;
use crate::server::Server;
use iperf2_server::Iperf2Server;

/// Serves until interrupted, until its time limit, or for a number of connections.
///
/// # Errors
/// When the server cannot listen, cannot report, or was interrupted.
pub fn run(
    spec: &ServerSpec,
    reporter: &mut dyn ServerReporter,
    interrupts: &dyn Interrupts,
) -> Result<(), Failure> {
    let dialect = Iperf2Server::open(spec, reporter)?;
    let mut server = Server::new(spec, reporter, interrupts).map_err(failure)?;
    server.add(Box::new(dialect)).map_err(failure)?;
    server.run(|| Ok(()))
}

/// Opens the listeners of the policy of a server with other dialects.
pub(crate) fn beside_others(
    spec: &ServerSpec,
) -> Result<Option<impl crate::server::dialect::ServerDialect + use<>>, Failure> {
    match spec.policy.iperf2 {
        Iperf2Listener::Port(port) => Iperf2Server::open_both(spec, port).map(Some),
        Iperf2Listener::SamePort => Iperf2Server::open_without_listeners(spec).map(Some),
        _ => Ok(None),
    }
}
