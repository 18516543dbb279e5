//! The command line of `linerate test`.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use linerate_history::conclude::expect::{Expectations, Missed};
use linerate_http::plan::{Trust, fingerprint};
use linerate_model::PortRange;
use linerate_model::path::{Dialect, PathEvent, PathSpec, PhaseKind, PhaseTransport, Profile};
use linerate_model::spec::{AddressFamily, BindSpec};
use linerate_sweep::spec::grammar;
use linerate_sys::signal::{Signal, Signals};
use linerate_sys::socket::{self, Protocol};
use linerate_sys::{process, sockopt};

use super::expect::missed;
use super::record;
use super::record::RecordArgs;
use crate::output::{check_files, complain, exit_code, print};
use crate::servers::{self, ServerProtocol};
use linerate::diagnose::ProfileFiles;
use linerate::expect::missed_by_run;
use linerate::path::report;
use linerate::path::{
    IdentityOptions, Login, Observers, PathResult, PathTest, STAMP_PORT, SideProbe, Target, forget,
    host_and_port, plan, test_path,
};
use linerate::progress::style;
use linerate::{Outcome, Progress};

const COMMAND: &str = "linerate test";
const PORT: u16 = 5201;
/// Of servers of ndt7 with TLS.
const HTTPS_PORT: u16 = 443;

/// Examines a path.
pub(crate) fn main(args: TestArgs) -> Outcome {
    let limits = args.expect.clone();
    let output = args.output.clone();

    let (test, record_options) = match args.resolve() {
        Ok(Resolved::Test(resolved)) => *resolved,
        Ok(Resolved::Forget { host, port }) => return forget_key(&host, port),
        Err(text) => return complain(COMMAND, &text, Outcome::Usage),
    };
    // Before the test, because its result is lost where the file cannot be written.
    let files = output.json.iter().flatten().chain(&output.html);
    if let Err(reason) = check_files(files.chain(&output.flame)) {
        return complain(COMMAND, &reason, Outcome::NotCompleted);
    }
    if let Err(error) = output.profile_files().check() {
        return complain(COMMAND, &format!("--flame: {error}"), Outcome::NotCompleted);
    }

    let signals = match Signals::new(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup]) {
        Ok(signals) => signals,
        Err(error) => return complain(COMMAND, &error.text(), Outcome::NotCompleted),
    };
    let mut progress = Progress::new(output.quiet);
    let mut lines = JsonLines::new(output.jsonl);
    let mut on_event = |event: &PathEvent<'_>| lines.write(event);
    let mut observers = Observers {
        progress: &mut progress,
        on_event: &mut on_event,
    };
    let result = match test_path(&test, record_options, &signals, &mut observers) {
        Ok(result) => result,
        Err(error) => return complain(COMMAND, &error.to_string(), error.outcome),
    };

    progress.clear();
    record::report(result.recorded.message.clone());
    if let Err(reason) = write_reports(&output, &result) {
        return complain(COMMAND, &reason, Outcome::NotCompleted);
    }

    // An interrupted test decides no limit.
    let judged = limits
        .iter()
        .filter(|_| result.outcome != Outcome::Interrupted);
    let found: Vec<Missed> = judged
        .flat_map(|limits| missed_by_run(limits, &result.recorded.record))
        .collect();
    let outcome = missed(COMMAND, limits.as_ref(), &found, result.outcome);
    lines.write(&PathEvent::Verdict {
        exit_code: exit_code(outcome),
        diagnosis: result.diagnosis.as_ref(),
        missed: &found.iter().map(ToString::to_string).collect::<Vec<_>>(),
    });

    match lines.failure {
        Some(reason) => complain(COMMAND, &reason, Outcome::NotCompleted),
        None => outcome,
    }
}

/// Events on standard output, one line each.
struct JsonLines {
    is_wanted: bool,
    /// Why an event could not be written.
    failure: Option<String>,
}

impl JsonLines {
    fn new(is_wanted: bool) -> Self {
        Self {
            is_wanted,
            failure: None,
        }
    }

    fn write(&mut self, event: &PathEvent<'_>) {
        if !self.is_wanted {
            return;
        }

        if let Err(reason) = print(&report::event_line(event)) {
            self.is_wanted = false;
            self.failure = Some(reason);
        }
    }
}

/// Longest time of all repetitions against a native server; `None` where nothing is examined.
pub(crate) fn run_length(args: TestArgs) -> Option<Duration> {
    let repeat = args.repeat;
    let is_examined = !args.identity.forget;
    let once = Duration::from_secs(plan(&args.spec(), Dialect::Native).estimate_s);
    is_examined.then(|| once * repeat)
}

/// Which path is examined, and how.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct TestArgs {
    /// The server: linerate serve, or iperf3 from version 3.12 on; ndt7://HOST[:PORT] for a server of
    /// ndt7, ndt7s://HOST[:PORT] for one with TLS (port 443); NAME of servers.toml
    #[arg(value_name = "HOST[:PORT]")]
    host: String,
    /// Port of the server, where HOST has none, or a range, of which the first port is used whose
    /// server is not busy: 5201-5210 [default: 5201, and 862 of stamp]
    #[arg(short, long, value_name = "PORT[-LAST]")]
    port: Option<PortRange>,
    /// Time and data: quick (11 s), default (27 s), thorough (70 s), draft09 (parameters of the
    /// IETF draft on responsiveness)
    #[arg(long, value_name = "PROFILE", default_value = "default")]
    profile: ProfileArg,
    /// Only these phases: size, idle, down, up, both, datagrams, and by name alone rr, crr, cps,
    /// pps, pace, capacity, hops, stamp
    #[arg(long, value_name = "PHASE,...", value_delimiter = ',', value_parser = phase)]
    only: Vec<PhaseKind>,
    /// Without these phases
    #[arg(long, value_name = "PHASE,...", value_delimiter = ',', value_parser = phase, conflicts_with = "only")]
    skip: Vec<PhaseKind>,
    /// Length of each load; below 5 its confidence is low
    #[arg(short, long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    time: Option<u64>,
    /// Most bytes of all phases together, both directions
    #[arg(long, value_name = "SIZE", value_parser = grammar::volume)]
    max_bytes: Option<u64>,
    /// Streams of a load [default: one, then more until the rate stands still]
    #[arg(short = 'P', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=128))]
    streams: Option<u32>,
    /// Rate of each load and of datagrams [default: what the path carries]
    #[arg(short = 'b', long, value_name = "RATE", value_parser = grammar::rate)]
    rate: Option<u64>,
    /// Congestion control of the loads
    #[arg(short = 'C', long, value_name = "NAME")]
    congestion: Option<String>,
    /// DSCP of loads and probes
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=63))]
    dscp: u8,
    /// DSCPs of further probes, which show whether they wait less
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(0..=63))]
    probe_dscp: Vec<u8>,
    /// Transport of the loads
    #[arg(long, value_name = "TRANSPORT", default_value = "tcp")]
    transport: TransportArg,
    /// Loads without frames: the rate of the sockets alone, and no echo in the load's own streams
    #[arg(long)]
    raw: bool,
    /// Bytes of a request of rr and crr
    #[arg(long, value_name = "BYTES", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    request: u32,
    /// Bytes of a response of rr and crr
    #[arg(long, value_name = "BYTES", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    response: u32,
    /// IPv4 only
    #[arg(short = '4', conflicts_with = "v6")]
    v4: bool,
    /// IPv6 only
    #[arg(short = '6')]
    v6: bool,
    /// Local address, or a device: %eth0, 192.0.2.1%eth0
    #[arg(short = 'B', long, value_name = "ADDRESS[%DEV]")]
    bind: Option<String>,
    /// Address of the server for the control connection, where it is another one than that of the
    /// data; a server behind another local address needs --allow-split-address
    #[arg(long, value_name = "HOST[:PORT]")]
    control_via: Option<String>,
    /// Wait for a busy server so long
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=3600))]
    wait: u64,
    /// Number of examinations; limits of --expect hold for the medians
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Limits that the path must hold, for example down>=900M,p99<5ms,grade>=B
    #[arg(long, value_name = "LIMITS")]
    expect: Option<Expectations>,
    /// Delay against an iperf3 server: icmp (where net.ipv4.ping_group_range allows it), busy
    /// (handshakes at the port of the busy server), tcp:PORT (at another port of its host), none,
    /// or auto, the first of icmp and busy that works
    #[arg(long, value_name = "KIND", default_value = "auto", value_parser = side_probe)]
    side_probe: SideProbe,
    /// Do not ask the server for facts about its host
    #[arg(long)]
    no_facts: bool,
    /// Do not trace the hops of the path
    #[arg(long)]
    no_hops: bool,
    /// Look up the names of the hops (reverse DNS)
    #[arg(long, conflicts_with = "no_hops")]
    names: bool,
    #[command(flatten)]
    identity: IdentityArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    record: RecordArgs,
}

/// Identity of the server.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Identity of the server")]
struct IdentityArgs {
    /// The server's key has this fingerprint, as `linerate serve` prints it
    #[arg(long, value_name = "sha256:...")]
    pin: Option<String>,
    /// Both ends prove that they have the token of this file
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// User of a server that demands one; the password comes from the environment variable
    /// LINERATE_PASSWORD or is asked for
    #[arg(long, value_name = "NAME", conflicts_with = "token_file")]
    username: Option<String>,
    /// Send the password also to a server that is met for the first time
    #[arg(long, requires = "username")]
    accept_new: bool,
    /// Demand nothing of the server's identity, and remember nothing
    #[arg(long, conflicts_with_all = ["pin", "token_file", "username", "cacert", "pin_sha256"])]
    insecure: bool,
    /// PEM file with trusted authorities of ndt7s://, instead of this host's
    #[arg(long, value_name = "FILE", conflicts_with = "pin_sha256")]
    cacert: Option<PathBuf>,
    /// Trust the certificate of ndt7s:// with this SHA-256 and no other
    #[arg(long, value_name = "HEX", value_parser = fingerprint)]
    pin_sha256: Option<[u8; 32]>,
    /// Fail where the server speaks iperf3 alone
    #[arg(long)]
    native: bool,
    /// Forget the key of this server, instead of a test
    #[arg(long)]
    forget: bool,
}

/// Destinations and forms of the report.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Report")]
struct OutputArgs {
    /// Write the report as one JSON object, instead of text or to a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    json: Option<Option<PathBuf>>,
    /// Write what happens as lines of JSON, as soon as it happens, instead of text
    #[arg(long, conflicts_with = "json")]
    jsonl: bool,
    /// Add every single probe to the JSON object
    #[arg(long, requires = "json")]
    samples: bool,
    /// Write the report as one HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Draw what the CPUs of this host did during the loads as a flame graph (SVG, root)
    #[arg(long, value_name = "FILE")]
    flame: Option<PathBuf>,
    /// Print no progress
    #[arg(short, long)]
    quiet: bool,
    /// Print more values and the evidence of the verdict
    #[arg(short, long)]
    verbose: bool,
}

impl OutputArgs {
    fn profile_files(&self) -> ProfileFiles {
        ProfileFiles {
            flame: self.flame.clone(),
            ..ProfileFiles::default()
        }
    }
}

const NOTES: &str = "\
Phases:
  size       largest packets of each direction, DSCP and ECN
  idle       delays without load
  down, up   load from and to the server, and the delay that it adds to others
  both       both at the same time
  datagrams  loss by place, reordering and jitter at half of the rate found
  rr, crr    requests and responses per second: on open connections, or a new one for each
  cps, pps   most connections and datagrams per second without failures, and where these begin
  pace       datagrams on a schedule of 1000 per second; --rate 9.6M is 20000 (60 bytes each)
  capacity   most bits per second of IP packets, RFC 9097
  hops       routers of the path from both ends, without load; loads and idle measure them anyway
  stamp      delay, queues and loss by direction to a STAMP reflector (RFC 8762), by itself

The server's key is remembered at the first test and compared afterwards, like ssh does.

Examples:
  linerate test 192.0.2.7                          how good is the path?
  linerate test 192.0.2.7 --profile quick          in 11 seconds
  linerate test 192.0.2.7 --expect 'down>=900M,p99<5ms'  exit code 5 where it is not
  linerate test 192.0.2.7 --only idle,rr           delays and requests alone
  linerate test 192.0.2.7 --only hops --names      which routers are on the path?
  linerate test 192.0.2.7 --only stamp             delay and loss of a router's reflector
  linerate test ndt7s://ndt.example                against a server of M-Lab's speed test

Exit codes: 0 done, 1 not completed, 2 wrong command line, 4 no answer, refused, or another \
identity than demanded, 5 a limit of --expect was missed, 130 interrupted.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ProfileArg {
    Quick,
    Default,
    Thorough,
    Draft09,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TransportArg {
    /// TCP
    Tcp,
    /// Multipath TCP, with a table of its subflows
    Mptcp,
    /// TLS 1.3 over TCP
    Tls,
}

/// Variable of the environment with the password of a user.
const PASSWORD_VARIABLE: &str = "LINERATE_PASSWORD";

/// The password is read from the environment or from the terminal.
fn login(user: String) -> Result<Login, String> {
    let password = match std::env::var(PASSWORD_VARIABLE) {
        Ok(password) => password,
        Err(_) => process::read_password("Password: ").map_err(|error| {
            format!(
                "--username: no password in {PASSWORD_VARIABLE}, and none from a terminal: {error}"
            )
        })?,
    };
    Ok(Login::new(user, password))
}

/// The request of a command line.
enum Resolved {
    Test(Box<(PathTest, linerate::record::RecordOptions)>),
    Forget { host: String, port: u16 },
}

impl IdentityArgs {
    /// Certificates that are trusted, where the protocol has some.
    fn certificates(&self, is_tls: bool) -> Result<Option<Trust>, String> {
        let trust = match (&self.cacert, self.pin_sha256) {
            (Some(file), _) => Trust::File(file.clone()),
            (_, Some(pin)) => Trust::Pinned(pin),
            _ if self.insecure => Trust::Anything,
            _ => Trust::System,
        };
        if !is_tls && (self.cacert.is_some() || self.pin_sha256.is_some()) {
            return Err(
                "--cacert and --pin-sha256 are about certificates, which only ndt7s:// has"
                    .to_owned(),
            );
        }
        Ok(is_tls.then_some(trust))
    }
}

impl TestArgs {
    fn resolve(self) -> Result<Resolved, String> {
        self.named()?.resolve_host()
    }

    /// The same with the values of a server that the user has named in a file.
    fn named(mut self) -> Result<Self, String> {
        if let Some(server) = servers::find(&self.host)? {
            self.port = self.port.or(server.port);
            self.identity.native |= server.protocol == Some(ServerProtocol::Native);
            self.host = match server.protocol {
                Some(ServerProtocol::Ndt7) => format!("ndt7://{}", server.address),
                Some(ServerProtocol::Ndt7s) => format!("ndt7s://{}", server.address),
                _ => server.address,
            };
        }

        Ok(self)
    }

    fn resolve_host(self) -> Result<Resolved, String> {
        if self.raw && self.transport == TransportArg::Tls {
            return Err(
                "--raw and --transport tls exclude each other: TLS has records of its own"
                    .to_owned(),
            );
        }

        let ndt7s = self.host.strip_prefix("ndt7s://");
        let ndt7 = ndt7s.or_else(|| self.host.strip_prefix("ndt7://"));
        let is_ndt7 = ndt7.is_some();
        if is_ndt7 {
            self.check_ndt7()?;
        }
        let ndt7_trust = self.identity.certificates(ndt7s.is_some())?;
        let is_stamp = self.is_stamp()?;
        let default = match (is_stamp, ndt7s) {
            (true, _) => STAMP_PORT,
            (_, Some(_)) => HTTPS_PORT,
            _ => PORT,
        };
        let address = ndt7.map(|address| address.strip_suffix('/').unwrap_or(address));
        let ports = self.port.unwrap_or(default.into());
        if ports.is_range() && (is_ndt7 || is_stamp) {
            return Err(format!(
                "-p {ports}: servers of ndt7 and stamp have one port"
            ));
        }
        let (host, port) = host_and_port(address.unwrap_or(&self.host), ports.first)?;
        if self.identity.forget {
            return Ok(Resolved::Forget { host, port });
        }

        self.congestion
            .as_deref()
            .map_or(Ok(()), check_congestion)?;
        let record = self.record.resolve(true)?;
        let bind = self.bind_spec();

        let control_via = self
            .control_via
            .as_deref()
            .map(|text| host_and_port(text, port))
            .transpose()?;
        let target = Target {
            control_via,
            bind,
            ..Target::new(host, port, CONNECT_TIMEOUT)
        };

        let test = PathTest {
            target,
            ports: (port == ports.first).then_some(ports),
            is_ndt7,
            ndt7_trust,
            identity: IdentityOptions {
                pin: self.identity.pin.clone(),
                token_file: self.identity.token_file.clone(),
                login: self.identity.username.clone().map(login).transpose()?,
                accept_new: self.identity.accept_new,
                insecure: self.identity.insecure,
                requires_native: self.identity.native,
            },
            wants_facts: !self.no_facts,
            wants_names: self.names,
            wait_max: Duration::from_secs(self.wait),
            repeat: self.repeat,
            side_probe: self.side_probe,
            wants_samples: self.output.samples,
            wants_stacks: self.output.flame.is_some(),
            spec: self.spec(),
        };

        Ok(Resolved::Test(Box::new((test, record))))
    }

    /// True for packets of STAMP, whose reflector is no server of tests.
    fn is_stamp(&self) -> Result<bool, String> {
        if !self.only.contains(&PhaseKind::Stamp) {
            return Ok(false);
        }

        self.refuse("--only stamp", &[(self.only.len() > 1, "another phase")])?;
        Ok(true)
    }

    /// Refuses options that a server of ndt7 cannot fulfil.
    fn check_ndt7(&self) -> Result<(), String> {
        let demands = [
            (self.transport != TransportArg::Tcp, "--transport"),
            (self.streams.is_some_and(|streams| streams > 1), "--streams"),
            (self.rate.is_some(), "--rate"),
            (self.identity.forget, "--forget"),
            (self.only.contains(&PhaseKind::Stamp), "--only stamp"),
        ];
        self.refuse("ndt7://", &demands)
    }

    /// Refuses these options, and those about an identity and its connection, beside a protocol that
    /// has neither.
    fn refuse(&self, protocol: &str, more: &[(bool, &str)]) -> Result<(), String> {
        let identity = &self.identity;
        let demands = [
            (self.control_via.is_some(), "--control-via"),
            (identity.pin.is_some(), "--pin"),
            (identity.token_file.is_some(), "--token-file"),
            (identity.username.is_some(), "--username"),
            (identity.native, "--native"),
        ];
        let mut demanded = demands.iter().chain(more).filter(|(is_set, _)| *is_set);
        demanded.next().map_or(Ok(()), |(_, option)| {
            Err(format!("{protocol} cannot be combined with {option}"))
        })
    }

    fn spec(self) -> PathSpec {
        let without_hops = self.no_hops.then_some(PhaseKind::Hops);
        PathSpec {
            profile: match self.profile {
                ProfileArg::Quick => Profile::Quick,
                ProfileArg::Default => Profile::Default,
                ProfileArg::Thorough => Profile::Thorough,
                ProfileArg::Draft09 => Profile::Draft09,
            },
            only: self.only,
            skip: self.skip.into_iter().chain(without_hops).collect(),
            load: self.time.map(Duration::from_secs),
            bytes_max: self.max_bytes,
            streams: self.streams,
            rate_bps: self.rate.filter(|rate| *rate > 0),
            congestion: self.congestion,
            dscp: self.dscp,
            probe_dscps: self.probe_dscp,
            transport: match self.transport {
                TransportArg::Tcp => PhaseTransport::Tcp,
                TransportArg::Mptcp => PhaseTransport::Mptcp,
                TransportArg::Tls => PhaseTransport::Tls,
            },
            raw: self.raw,
            request_bytes: self.request,
            response_bytes: self.response,
        }
    }

    fn bind_spec(&self) -> BindSpec {
        let family = match (self.v4, self.v6) {
            (true, _) => Some(AddressFamily::V4),
            (_, true) => Some(AddressFamily::V6),
            _ => None,
        };
        let (host, device) = match self
            .bind
            .as_deref()
            .map(|bind| bind.split_once('%').unwrap_or((bind, "")))
        {
            Some((host, device)) => (
                Some(host).filter(|host| !host.is_empty()),
                Some(device).filter(|d| !d.is_empty()),
            ),
            None => (None, None),
        };

        BindSpec {
            host: host.map(str::to_owned),
            device: device.map(str::to_owned),
            family,
            ..BindSpec::default()
        }
    }
}

/// Longest time to reach any address of the server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

fn phase(text: &str) -> Result<PhaseKind, String> {
    let known = || PhaseKind::ALL.map(PhaseKind::name).join(", ");
    PhaseKind::ALL
        .into_iter()
        .find(|kind| kind.name() == text)
        .ok_or_else(|| format!("the phases are {}", known()))
}

fn side_probe(text: &str) -> Result<SideProbe, String> {
    match (text, text.strip_prefix("tcp:").map(str::parse)) {
        ("auto", _) => Ok(SideProbe::Auto),
        ("icmp", _) => Ok(SideProbe::Icmp),
        ("busy", _) => Ok(SideProbe::Busy),
        ("none", _) => Ok(SideProbe::None),
        (_, Some(Ok(port))) if port > 0 => Ok(SideProbe::Tcp(port)),
        _ => Err("the kinds are auto, icmp, busy, tcp:PORT (1 to 65535) and none".to_owned()),
    }
}

fn forget_key(host: &str, port: u16) -> Outcome {
    match forget(host, port) {
        Ok(true) => Outcome::Done,
        Ok(false) => complain(
            COMMAND,
            &format!("no key of {host} port {port} is known"),
            Outcome::NotCompleted,
        ),
        Err(error) => complain(COMMAND, &error.to_string(), error.outcome),
    }
}

fn write_reports(output: &OutputArgs, result: &PathResult) -> Result<(), String> {
    let json = || report::json(&result.report, result.diagnosis.as_ref(), &result.samples) + "\n";
    let to_file = |path: &PathBuf, text: String| {
        fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
    };

    if let Some(path) = &output.html {
        to_file(path, report::html(&result.recorded.record))?;
    }

    if let Some(Some(path)) = &output.json {
        to_file(path, json())?;
    }

    let profile_files = output.profile_files();
    if profile_files.are_wanted() {
        let written = profile_files.write(&result.stacks);
        written.map_err(|error| error.to_string())?;
    }

    match &output.json {
        _ if output.jsonl => Ok(()),
        Some(None) => print(&json()),
        _ => print(&report::text(
            &result.report,
            result.diagnosis.as_ref(),
            output.verbose,
            style(),
        )),
    }
}

/// Refuses a congestion control that this host does not have: without it the test would measure
/// another one.
fn check_congestion(name: &str) -> Result<(), String> {
    // Before a connection: TCP_CONGESTION of any socket shows if this host has the algorithm
    // (tcp(7)).
    let any_address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let socket = socket::open(&any_address, Protocol::Tcp).map_err(|error| error.text())?;

    sockopt::set_congestion(&socket, name).map_err(|error| {
        let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
            .unwrap_or_default();
        format!(
            "--congestion {name}: {}; this host has: {}",
            error.text(),
            available.trim()
        )
    })
}
