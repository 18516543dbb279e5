//! `linerate http serve`: the options of the HTTP server.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use linerate_http::server::{Access, Listen, PORT, ServerSpec, SocketSpec};
use linerate_model::network::Network;
use linerate_model::policy::{AccessRules, AccessSource};

use super::control::ControlArgs;
use crate::output::warn;
use linerate::command_line::values;
use linerate::http::agent::ControlChannel;
use linerate::http::serve::{HttpServer, ServePlan, TcpSpec};
use linerate::{Error, Outcome};
use linerate_sys::sd_notify;
use linerate_sys::signal::{Signal, Signals};

/// Options of the HTTP server.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct ServeArgs {
    /// Listen on this address; may be repeated [default: port 8080 of every address]
    #[arg(short, long, value_name = "ADDRESS:PORT")]
    bind: Vec<SocketAddr>,
    /// Threads, each with its own listeners [default: one per CPU the process may use]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Accept queue per thread and address; limited by net.core.somaxconn
    #[arg(long, value_name = "N", default_value_t = 65_535, value_parser = clap::value_parser!(u32).range(1..=2_147_483_647))]
    backlog: u32,
    /// Concurrent connections; others get 503 [default: 90 % of the descriptor limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_conns: Option<u32>,
    /// Idle timeout of connections
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = values::seconds)]
    idle_timeout: Duration,
    /// Longest request body; longer ones get 413
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = body_size)]
    max_body: u64,
    /// Let clients request chunks of less than 64 bytes, whose framing costs more than their
    /// payload
    #[arg(long)]
    allow_tiny_chunks: bool,
    /// Serve these networks only; may be repeated [default: networks of this host, and private
    /// addresses]
    #[arg(long, value_name = "CIDR")]
    allow: Vec<Network>,
    /// Add `Server: linerate/VERSION` to every response
    #[arg(long)]
    server_header: bool,
    /// Omit the Date field
    #[arg(long)]
    no_date: bool,
    /// Serve iperf3 tests as well, to the same addresses, for the TCP baseline of the lab [port:
    /// 5201]
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = TCP_PORT)]
    tcp: Option<u16>,
    /// Send buffer of the sockets
    #[arg(long, value_name = "SIZE", value_parser = buffer_size)]
    sndbuf: Option<u32>,
    /// Receive buffer of the sockets
    #[arg(long, value_name = "SIZE", value_parser = buffer_size)]
    rcvbuf: Option<u32>,
    /// Congestion control of the sockets
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    /// Open no control channel: clients get no measurements of this host
    #[arg(long, conflicts_with_all = ["control", "control_allow", "token_file"])]
    no_control: bool,
    #[command(flatten)]
    control: ControlArgs,
}

/// Default port of iperf3.
const TCP_PORT: &str = "5201";

const NOTES: &str = "\
Paths: /b/SIZE with sizes as 1500, 10k or 64m; ?chunked=SIZE sends chunks of that size (64 or more), ?random=1 bytes \
that cannot be compressed. POST or PUT /sink reads a body and answers 204.

Signals: SIGTERM and SIGINT end the server, which then prints its statistics.

Examples:
  linerate http serve --token-file t              port 8080, networks of this host
  linerate http serve --allow 198.51.100.0/24     another network";

/// Serves until a signal comes, then writes statistics.
///
/// # Errors
/// A listener that cannot be opened.
pub(super) fn run(plan: &ServePlan) -> Result<Outcome, Error> {
    // Before any thread starts: threads inherit the signal mask.
    let signals = Signals::new(&[Signal::Interrupt, Signal::Terminate]).map_err(Error::failed)?;
    let server = HttpServer::start(plan)?;
    for warning in &server.warnings {
        warn("linerate http", warning);
    }

    super::say(&server.introduction);
    // Notification of the service manager is optional.
    let _ = sd_notify::notify("READY=1");
    super::wait_for_signal(&signals);

    let _ = sd_notify::notify("STOPPING=1");
    super::say(&server.stop());
    Ok(Outcome::Done)
}

impl ServeArgs {
    /// Resolves the options.
    ///
    /// # Errors
    /// Invalid options.
    pub(crate) fn resolve(&self) -> Result<ServePlan, String> {
        // The control channel listens one port above the first listener.
        let port = self.bind.first().map_or(PORT, SocketAddr::port);
        let mut control = (!self.no_control)
            .then(|| self.control.resolve(port))
            .transpose()?;
        if let Some(channel) = &mut control {
            self.narrow(channel);
        }

        let spec = self.spec();
        let tcp = self.tcp.filter(|port| *port != 0).map(|port| {
            let allow = spec
                .access
                .networks()
                .into_iter()
                .map(AccessSource::Network)
                .collect();
            let mut tcp = TcpSpec::new(port, AccessRules::new(allow, Vec::new()));
            tcp.host = self.bind.first().map(|address| address.ip().to_string());
            tcp
        });

        let mut plan = ServePlan::new(spec);
        plan.control = control;
        plan.tcp = tcp;
        Ok(plan)
    }

    /// Addresses outside the access list have no access to the control channel either.
    fn narrow(&self, control: &mut ControlChannel) {
        // Without a token the channel serves this host alone, and the list would widen that.
        if control.token_file.is_some() && control.allow.is_empty() {
            control.allow.clone_from(&self.allow);
        }
    }

    fn spec(&self) -> ServerSpec {
        ServerSpec {
            listen: if self.bind.is_empty() {
                Listen::Everywhere(PORT)
            } else {
                Listen::At(self.bind.clone())
            },
            threads: self.threads.map(usize::from),
            backlog: self.backlog,
            connections_max: self.max_conns.and_then(|count| usize::try_from(count).ok()),
            idle_timeout: self.idle_timeout,
            body_bytes_max: self.max_body,
            allow_tiny_chunks: self.allow_tiny_chunks,
            access: if self.allow.is_empty() {
                Access::LocalNetworks
            } else {
                Access::Networks(self.allow.clone())
            },
            server_header: self
                .server_header
                .then(|| concat!("linerate/", env!("CARGO_PKG_VERSION")).to_owned()),
            without_date: self.no_date,
            socket: SocketSpec {
                send_buffer_bytes: self.sndbuf,
                receive_buffer_bytes: self.rcvbuf,
                congestion: self.congestion.clone(),
            },
        }
    }
}

/// Parses a size such as 1500, 64K or 1G, powers of 1024.
fn body_size(text: &str) -> Result<u64, String> {
    values::size_bytes(text, BODY_BYTES_MAX)
        .ok_or_else(|| format!("{text:?}: expected a size, for example 64M, at most 1T"))
}

fn buffer_size(text: &str) -> Result<u32, String> {
    let bytes = values::size_bytes(text, BUFFER_BYTES_MAX)
        .and_then(|bytes| u32::try_from(bytes).ok())
        .filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| format!("{text:?}: expected a size, for example 256K, at most 1G"))
}

const BODY_BYTES_MAX: u64 = 1 << 40;
const BUFFER_BYTES_MAX: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary_and_bounded() {
        assert_eq!((body_size("64M"), body_size("0")), (Ok(64 << 20), Ok(0)));
        assert_eq!(buffer_size("256K"), Ok(256 << 10));

        for bad in ["", "x", "-1", "2T"] {
            assert!(body_size(bad).is_err(), "{bad}");
        }

        for bad in ["0", "2G", "-1"] {
            assert!(buffer_size(bad).is_err(), "{bad}");
        }
    }
}
