//! The command line of `linerate http load`.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use linerate::http::too_many_connections;
use linerate_history::conclude::expect::Expectations;
use linerate_http::load::LoadSpec;
use linerate_http::plan;
use linerate_http::protocol::Protocol;
use linerate_http::request::RequestSpec;
use linerate_http::target::Target;
use linerate_model::http::units::nanoseconds;
use linerate_model::http::{Arrivals, Mode, Ports};
use linerate_sys::error::io_text;
use linerate_sys::file_system;

use super::OutputArgs;
use super::protocol::{self, ProtocolArgs};
use super::target_access::{ControlAccess, SafetyArgs};
use super::values;
use crate::expect::missed;
use crate::record::{self, RecordArgs};
use linerate::http::load::{self, LoadEnd, LoadPlan};
use linerate::http::{Opening, Resolved};
use linerate::{Error, Outcome};

/// Options of a load.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct LoadArgs {
    /// URL; several ports of one server as a range, http://host:8080-8083/
    #[arg(value_name = "URL")]
    url: String,
    /// Connections
    #[arg(short, long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    connections: u32,
    /// Duration of the measurement
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = values::duration)]
    duration: Duration,
    /// Unrecorded load before it
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = values::duration)]
    warmup: Duration,
    #[command(flatten, next_help_heading = "Pace")]
    pace: PaceArgs,
    #[command(flatten, next_help_heading = "Request")]
    request: RequestArgs,
    #[command(flatten)]
    protocol: ProtocolArgs,
    #[command(flatten, next_help_heading = "Connections")]
    opening: OpeningArgs,
    #[command(flatten)]
    control: ControlAccess,
    #[command(flatten)]
    safety: SafetyArgs,
    #[command(flatten, next_help_heading = "Report")]
    output: OutputArgs,
    /// Rate of the path in bit/s, such as 1G, for the ceiling of the network [default: measured, or
    /// that of the link]
    #[arg(long, value_name = "RATE", value_parser = plan::line_rate)]
    line_rate: Option<f64>,
    /// Write everything that was counted: throughputs, latencies, failures, what it cost both ends
    #[arg(short, long)]
    verbose: bool,
    /// Limits that the load must hold, for example ok>=10K,p99<5ms,err<0.1%
    #[arg(long, value_name = "LIMITS")]
    expect: Option<Expectations>,
    #[command(flatten)]
    record: RecordArgs,
}

#[derive(Debug, Args)]
struct PaceArgs {
    /// Requests per second of all connections together, on a schedule (open loop)
    #[arg(short, long, value_name = "RATE", value_parser = values::rate, conflicts_with_all = ["pipeline", "think", "idle"])]
    rate: Option<f64>,
    /// Distribution of due times: even, or as of independent users
    #[arg(long, value_name = "HOW", default_value = "uniform")]
    arrival: ArrivalArg,
    /// Requests each connection keeps outstanding
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pipeline: u32,
    /// Pause between a response and the next request of a connection
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = values::duration)]
    think: Duration,
    /// Hold idle connections, after one request on each; those without a response are not held,
    /// because a server accepts them only when it has a descriptor
    #[arg(long)]
    idle: bool,
    /// With --idle: one request per connection and period, spread evenly
    #[arg(long, value_name = "TIME", value_parser = values::duration, requires = "idle")]
    heartbeat: Option<Duration>,
    /// Send one request on every connection before the load begins; --idle does so by default
    #[arg(long)]
    touch: bool,
    /// With --idle: send no request. Whether the server has accepted the connections is then not
    /// known
    #[arg(long, requires = "idle", conflicts_with_all = ["touch", "heartbeat"])]
    no_touch: bool,
    /// Busy-wait for the last 50 µs before a due time
    #[arg(long)]
    spin: bool,
    /// Seed of Poisson arrivals
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Response timeout, of the only request before the load as well
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::duration)]
    timeout: Duration,
}

#[derive(Debug, Args)]
struct RequestArgs {
    /// Method
    #[arg(short = 'X', long, value_name = "METHOD", default_value = "GET")]
    method: String,
    /// Header field to add, or to replace a default one
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = values::field)]
    headers: Vec<(String, String)>,
    /// File to send as the body of each request
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,
    /// Host field, instead of the host of the URL
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Allow methods other than GET and HEAD
    #[arg(long)]
    allow_unsafe_methods: bool,
    /// Require all bodies to equal the first
    #[arg(long)]
    verify: bool,
}

#[derive(Debug, Args)]
struct OpeningArgs {
    /// Threads [default: CPUs this process may use]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
    /// Worker processes, each with its own descriptor limit: a number, or auto
    #[arg(long, value_name = "N", default_value = "auto")]
    procs: String,
    /// Connections opened per second, or max
    #[arg(long, value_name = "RATE", default_value = "2000/s", value_parser = values::ramp)]
    ramp: std::option::Option<u32>,
    /// Connections being opened at a time
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=65_535))]
    inflight_connects: u32,
    /// Connect timeout [default: 3s, or --timeout where that is shorter]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    connect_timeout: Option<Duration>,
    /// Times a connection is reopened after an unannounced loss
    #[arg(long, value_name = "N", default_value_t = 3)]
    reconnects: u8,
    /// Local addresses
    #[arg(long, value_name = "ADDRESS,...", value_delimiter = ',')]
    src: Vec<IpAddr>,
    /// Range of local addresses, for example 10.0.0.10-20
    #[arg(long, value_name = "RANGE", value_parser = values::address_range)]
    src_range: Option<std::vec::Vec<IpAddr>>,
    /// All addresses of a device
    #[arg(long, value_name = "DEVICE")]
    src_dev: Option<String>,
    /// How local ports are chosen: by the kernel within its range, or any free one from 1024 on
    #[arg(long, value_name = "WHO", default_value = "auto")]
    ports: PortsArg,
    /// How connections are closed: by a reset, which leaves no TIME_WAIT, or in order
    #[arg(long, value_name = "HOW", default_value = "auto")]
    close: CloseArg,
    /// TCP keepalive interval of idle connections
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    tcp_keepalive: Option<Duration>,
    /// Address of a name, instead of resolving it
    #[arg(long, value_name = "HOST:PORT:ADDRESS", value_parser = values::resolve)]
    resolve: Vec<Resolved>,
    /// IPv4 only
    #[arg(short = '4', conflicts_with = "v6")]
    v4: bool,
    /// IPv6 only
    #[arg(short = '6')]
    v6: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ArrivalArg {
    /// One every 1/RATE
    Uniform,
    /// Exponential gaps
    Poisson,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PortsArg {
    /// By the kernel, unless there are too many connections for its range
    Auto,
    /// By the kernel
    Kernel,
    /// Any free port from 1024 on
    Explicit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CloseArg {
    /// By a reset on loopback, otherwise in order
    Auto,
    /// By a reset
    Rst,
    /// In order
    Fin,
}

const NOTES: &str = "\
Limits for servers that do not prove to be linerate's: public addresses bear 16 connections, 100 \
requests/s, 30 s and 1 GB; private ones 1024 connections and 100 GB. The load ends by itself when \
server errors or timeouts exceed 5 %, connections that fail 20 %, for 3 s, or when the server asks \
for a pause. Redirections are never followed.

Examples:
  linerate http load http://192.0.2.7:8080/b/1k -c 64             how many requests per second?
  linerate http load http://192.0.2.7:8080/b/1k -c 64 --rate 5k   how long do they take at 5,000/s?
  linerate http load http://192.0.2.7:8080/0 -c 10000 --idle      does it hold 10,000 connections?
  linerate http load https://192.0.2.7:8443/b/1k -k --h2 -m 8     HTTP/2, any certificate

Exit codes: 0 done, 1 not completed, 2 wrong command line, 4 no answer from the server, \
5 a limit of --expect was missed, 130 interrupted.";

impl LoadArgs {
    /// Time of the measurement and of the load before it.
    pub(super) fn run_length(&self) -> Duration {
        self.duration + self.warmup
    }

    /// Runs the load.
    ///
    /// # Errors
    /// A load that could not be made.
    pub(super) fn run(&self, plan: &LoadPlan) -> Result<Outcome, Error> {
        let LoadEnd {
            outcome,
            trial,
            record_message,
            ..
        } = load::run(plan)?;
        record::report(record_message);
        let (Some(limits), Some(trial), Outcome::Done) = (&self.expect, &trial, outcome) else {
            return Ok(outcome);
        };

        Ok(missed(
            "linerate http load",
            Some(limits),
            &limits.missed(&[trial]),
            outcome,
        ))
    }

    /// # Errors
    /// Invalid options.
    pub(crate) fn resolve(&self) -> Result<LoadPlan, String> {
        let target: Target = self.url.parse().map_err(|error| format!("{error}"))?;
        let wanted = self.protocol.over(&plan::Protocol::default())?;
        let protocol = protocol::resolve(&wanted, &target)?;
        self.check_protocol(&protocol, wanted.streams)?;

        // A load of no time has no rate.
        if self.duration.is_zero() {
            return Err("--duration must not be 0".to_owned());
        }

        let request = self.request()?;
        let opening = &self.opening;
        let mut sources = opening.src.clone();
        sources.extend(opening.src_range.iter().flatten());

        let spec = LoadSpec {
            destinations: Vec::new(),
            sources,
            ports: match opening.ports {
                PortsArg::Auto => Ports::Auto,
                PortsArg::Kernel => Ports::Kernel,
                PortsArg::Explicit => Ports::Explicit,
            },
            request: request.bytes(&target).map_err(|error| error.to_string())?,
            // HEAD has no body, whatever Content-Length states (RFC 9110, section 9.3.2).
            is_head: request.method == "HEAD",
            mode: self.mode(&protocol, wanted.streams),
            protocol,
            streams: wanted.streams,
            connections: self.connections,
            sends_first_request: self.pace.touch || (self.pace.idle && !self.pace.no_touch),
            ramp_per_s: opening.ramp,
            connects_in_flight: opening.inflight_connects,
            connect_timeout_ns: nanoseconds(
                opening
                    .connect_timeout
                    // The connect timeout never exceeds that of a response, which includes the
                    // connection.
                    .unwrap_or_else(|| CONNECT_TIMEOUT.min(self.pace.timeout)),
            ),
            timeout_ns: nanoseconds(self.pace.timeout),
            warmup_ns: nanoseconds(self.warmup),
            duration_ns: nanoseconds(self.duration),
            reconnects_max: opening.reconnects,
            resets_at_end: false,
            verifies: self.request.verify,
            spins: self.pace.spin,
            tcp_keepalive_s: opening.tcp_keepalive.map(|pause| {
                u32::try_from(pause.as_secs())
                    .unwrap_or(u32::MAX)
                    // The kernel takes whole seconds up to MAX_TCP_KEEPIDLE, 32,767 (TCP_KEEPIDLE,
                    // tcp(7)).
                    .clamp(1, KEEPALIVE_MAX_S)
            }),
            seed: self.pace.seed,
            port_range: None,
            ports_skipped: Vec::new(),
        };
        let claims = self.safety.claims(&target)?;
        Ok(LoadPlan {
            target,
            spec,
            claims,
            control: self.control.resolve()?,
            opening: opening.resolve()?,
            asks_first: !self.safety.yes,
            tolerates_failures: self.safety.no_breaker,
            line_rate_bps: self.line_rate,
            is_verbose: self.verbose,
            output: self.output.resolve(),
            record: self.record.resolve(true)?,
        })
    }

    /// # Errors
    /// Options the protocol does not support, and their alternative.
    fn check_protocol(&self, protocol: &Protocol, streams: u32) -> Result<(), String> {
        if protocol.is_plain_http1() {
            return Ok(());
        }

        if self.pace.pipeline > 1 {
            // Requests of HTTP/2 are concurrent by streams; pipelining is a feature of HTTP/1.1.
            let instead = if protocol.is_http2 {
                "--streams N has as many under way on each connection"
            } else {
                "--h2 --streams N has as many under way on each connection"
            };
            return Err(format!(
                "--pipeline is for HTTP/1.1 in plain text; {instead}"
            ));
        }

        if self.pace.spin {
            return Err("--spin is for HTTP/1.1 in plain text".to_owned());
        }

        too_many_connections(self.connections, streams).map_or(Ok(()), Err)
    }

    fn mode(&self, protocol: &Protocol, streams: u32) -> Mode {
        let pace = &self.pace;
        match pace.rate {
            Some(rate_per_s) => Mode::Open {
                rate_per_s,
                arrivals: match pace.arrival {
                    ArrivalArg::Uniform => Arrivals::Uniform,
                    ArrivalArg::Poisson => Arrivals::Poisson,
                },
            },
            None if pace.idle => Mode::Idle {
                heartbeat_ns: pace
                    .heartbeat
                    .map(nanoseconds)
                    .filter(|period_ns| *period_ns > 0),
            },
            None => Mode::Closed {
                // A stream carries one request.
                pipeline: if protocol.is_http2 {
                    streams
                } else {
                    pace.pipeline
                },
                think_ns: nanoseconds(pace.think),
            },
        }
    }

    fn request(&self) -> Result<RequestSpec, String> {
        let args = &self.request;
        // GET and HEAD are safe methods (RFC 9110, section 9.2.1).
        let is_safe = matches!(args.method.as_str(), "GET" | "HEAD");
        if !is_safe && !args.allow_unsafe_methods {
            return Err(format!(
                "{} may change something at the server; --allow-unsafe-methods allows it",
                args.method.escape_debug()
            ));
        }

        let mut fields = args.headers.clone();
        if let Some(host) = &args.host {
            fields.push(("Host".to_owned(), host.clone()));
        }

        Ok(RequestSpec {
            method: args.method.clone(),
            fields,
            body: args.body.as_deref().map_or(Ok(Vec::new()), read_body)?,
        })
    }
}

impl OpeningArgs {
    fn resolve(&self) -> Result<Opening, String> {
        let opening = Opening {
            threads: self.threads,
            processes: match self.procs.as_str() {
                "auto" => None,
                number => match number.parse() {
                    Ok(count) if (1..=PROCESSES_MAX).contains(&count) => Some(count),
                    _ => {
                        return Err(format!(
                            "--procs takes auto or a number from 1 to {PROCESSES_MAX}"
                        ));
                    }
                },
            },
            source_device: self.src_dev.clone(),
            resets_at_end: match self.close {
                CloseArg::Auto => None,
                CloseArg::Rst => Some(true),
                CloseArg::Fin => Some(false),
            },
            resolved: self.resolve.clone(),
            only_v6: match (self.v4, self.v6) {
                (true, _) => Some(false),
                (_, true) => Some(true),
                _ => None,
            },
        };

        Ok(opening)
    }
}

fn read_body(path: &Path) -> Result<Vec<u8>, String> {
    let trouble = |error: std::io::Error| {
        format!("cannot read --body {}: {}", path.display(), io_text(&error))
    };
    file_system::read_bytes(path, BODY_MAX_BYTES).map_err(trouble)
}

/// Longest wait for a connection, unless another one is given.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const BODY_MAX_BYTES: u64 = 64 << 20;
const PROCESSES_MAX: u32 = 256;
const KEEPALIVE_MAX_S: u32 = 32_767;
