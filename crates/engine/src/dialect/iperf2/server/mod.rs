//! A server: any number of clients, each connection and flow identified by its source address.
//!
//! A connection without a complete header is pending and blocks no other. Then it joins a session: the connections of one
//! client address at one time, reported together.

mod client_session;
mod dial;
pub(crate) mod half_open;
mod iperf2_server;
mod pending;
mod udp_listener;

use std::time::{Duration, Instant};

use linerate_model::spec::ServerSpec;
use linerate_model::{Failure, FailureKind, ServerEvent, ServerReporter};
use linerate_sys::poll::{Epoll, Interest};
use linerate_sys::scheduling;

use super::connect::{failure, os};
use crate::interrupts::Interrupts;
use crate::server::shared_state::SharedServerState;
pub(crate) use iperf2_server::Iperf2Server;

const SERVER: u64 = 0;
const INTERRUPT: u64 = 1;

/// Serves until interrupted, until its time is over, or for a number of connections.
///
/// # Errors
/// When the server cannot listen, cannot report, or was interrupted.
pub fn run(spec: &ServerSpec, reporter: &mut dyn ServerReporter, interrupts: &dyn Interrupts) -> Result<(), Failure> {
    // Clients wait for answers of this thread while others move data; a short scheduling slice reduces that wait.
    let _ = scheduling::wake_soon();
    let mut shared = SharedServerState::new(spec)?;
    let mut server = Iperf2Server::open(spec, reporter)?;
    let epoll = Epoll::new().map_err(|e| os("test", &e))?;
    epoll
        .add(server.fd(), SERVER, Interest::READ)
        .map_err(|e| os("test", &e))?;
    epoll
        .add(interrupts.fd(), INTERRUPT, Interest::READ)
        .map_err(|e| os("test", &e))?;
    let mut events = Vec::new();
    let mut stopping: Option<String> = None;
    loop {
        server.advance(&mut shared.lend(reporter));
        if server.is_over() {
            return stopping.map_or(Ok(()), |signal| Err(interruption(&signal)));
        }
        let left = server.deadline().map(|t| t.saturating_duration_since(Instant::now()));
        epoll
            .wait(&mut events, left.map(|l| l.min(Duration::from_secs(3600))))
            .map_err(|e| failure(e.to_string()))?;
        if !events.iter().any(|e| e.token == INTERRUPT) {
            continue;
        }
        let signal = interrupts.take();
        let Some(signal_text) = signal else { continue };
        reporter.server_event(&ServerEvent::Stopping {
            signal_text: signal_text.clone(),
        });
        if stopping.is_some() {
            server.terminate(&mut shared.lend(reporter));
        } else if server.has_tests() {
            reporter.warning("Waiting for server threads to complete. Interrupt again to force quit.");
        }
        server.close();
        stopping = Some(signal_text);
    }
}

fn interruption(signal: &str) -> Failure {
    Failure {
        kind: FailureKind::Interrupted,
        message: format!("the server has terminated by signal {signal}"),
        code: None,
    }
}
