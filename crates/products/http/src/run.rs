//! Loads and experiments as they run: hosts, signals, files and reports.

mod control_client;
mod experiment;
mod generator;
mod host_agent;
mod idle_check;
pub mod lab;
pub mod load;
mod outputs;
mod progress;
mod requests;
mod restartable_server;
mod sampled_load;
mod server_side;
mod tcp_baseline;
mod watch;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_host::connect_advice::{HTTP_SERVER, connect_failure};
use linerate_host::{EnvironmentQuery, environment};
use linerate_model::http::{Environment, NegotiatedProtocol};
use linerate_model::live::LiveState;
use linerate_model::outcome::{Error, Outcome};
use linerate_sys::signal::{self, Signal, Signals};

use crate::probe::ProbeError;

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
            let host = host_text(*address);
            let port = address.port();
            Error::new(
                Outcome::Unreachable,
                connect_failure(&error.to_string(), &host, port, HTTP_SERVER),
            )
        }
        _ => Error::new(Outcome::Unreachable, error),
    }
}

/// A view of what runs: changes the state that is shown, and ends when it is dropped.
pub type LiveView = Box<dyn Fn(&mut dyn FnMut(&mut LiveState))>;

/// Opens a view on the terminal; `None` where there is no terminal that can show it.
pub type OpenView = fn() -> Option<LiveView>;

/// Ctrl-C while a load or an experiment runs: once ends it with what is known, twice at once.
#[derive(Debug)]
struct Stop {
    /// For callers that wait for signals themselves and report one by [`Self::note`].
    signals: Signals,
    times: u32,
}

impl Stop {
    /// # Errors
    /// The operating system's.
    fn new() -> Result<Self, Error> {
        let signals = Signals::new(&SIGNALS);
        Ok(Self {
            signals: signals.map_err(|error| Error::failed(error.text()))?,
            times: 0,
        })
    }

    /// A signal was taken elsewhere.
    fn note(&mut self) {
        self.times += 1;
    }

    /// True if an end was requested. The second request ends the process at once.
    fn is_wanted(&mut self) -> bool {
        while let Ok(Some(_)) = self.signals.take() {
            self.times += 1;
        }

        if self.times > 1 {
            std::process::exit(INTERRUPTED);
        }
        self.times > 0
    }
}

/// Leaves the signals to other threads; for one that starts before [`Stop`].
fn leave_to_others() {
    // A thread without the block ends the process by a signal, as before there is a `Stop`.
    let _ = signal::block(&SIGNALS);
}

/// Those that end an experiment.
const SIGNALS: [Signal; 3] = [Signal::Interrupt, Signal::Terminate, Signal::Hangup];

/// As shells have it: 128 and the number of SIGINT.
const INTERRUPTED: i32 = 130;
