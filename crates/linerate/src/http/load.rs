//! `linerate http load`: probes the server, runs one load and reports it.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_doctor::http::{cell_verdict, run_flags};
use linerate_host as host;
use linerate_http::control::CellMark;
use linerate_http::load::{self, Breaker, LoadSpec, Local, SecondPart};
use linerate_http::probe::{self, ProbeResult, ProbeTarget};
use linerate_http::safety_limits::{self, TargetOwnership, TargetScope};
use linerate_lab::http::ceiling::IpVersion;
use linerate_lab::http::cells::Phases;
use linerate_lab::http::plan::Plan;
use linerate_lab::http::study::{Setup, StudyInput, study};
use linerate_model::http::{Cell, CellKey, CellRun, Flag, LoadResult, Mode, Phase, RunState};
use linerate_report::http::{LoadReport, load_json, load_text};
use linerate_sys::interfaces;

use super::lab::{is_local, is_wanted, outputs};
use super::observed::{BothSides, LoadProgress, Observed, step_of};
use super::server_side::ServerSide;
use super::signals::Stop;
use super::watch::Watch;
use super::{cannot_watch, generator, probe_error};
use crate::Error;
use crate::Outcome;
use crate::http::generator::Opening;
use crate::http::output::Output;
use crate::http::server_side::ControlPath;
use crate::progress::Progress;
use linerate_http::protocol::Protocol;
use linerate_http::safety_limits::Demand;
use linerate_http::target::Target;
use linerate_lab::http::units::nanoseconds;

/// A load as far as the command line determines it.
#[derive(Debug, Clone)]
pub struct LoadPlan {
    /// The server and the path.
    pub target: Target,
    /// The request as bytes.
    pub request: Vec<u8>,
    /// HTTP/1.1 or HTTP/2, with or without TLS.
    pub protocol: Protocol,
    /// Concurrent requests per connection of HTTP/2.
    pub streams: u32,
    /// Whether the method is HEAD, whose responses have no body.
    pub is_head: bool,
    /// Connections, mode and duration, as the safety limits see them.
    pub demand: Demand,
    /// Statements about the ownership of the server.
    pub claims: TargetOwnership,
    /// Access to the control channel of the server.
    pub control: ControlPath,
    /// Recorded part.
    pub duration: Duration,
    /// Unrecorded part before it.
    pub warmup: Duration,
    /// Longest time for a response.
    pub timeout: Duration,
    /// Details of the pace.
    pub pace: PaceDetails,
    /// How connections are opened and closed.
    pub opening: Opening,
    /// Whether all bodies must equal the first.
    pub verifies: bool,
    /// Whether the user confirms a load on a foreign server.
    pub asks_first: bool,
    /// Whether the load continues although the server fails.
    pub tolerates_failures: bool,
    /// Form of the output.
    pub output: Output,
}

/// Details common to all modes.
#[derive(Debug, Clone, Copy)]
pub struct PaceDetails {
    /// One request on every connection before the load begins.
    pub sends_first_request: bool,
    /// Busy-waiting before a due time.
    pub spins: bool,
    /// Seed of random arrivals.
    pub seed: u64,
}

/// Runs a load: probes the server, sends requests, reports what was measured.
///
/// # Errors
/// Options that this host or the server does not allow, or a server that does not answer.
pub fn run(plan: &LoadPlan) -> Result<Outcome, Error> {
    let opening = &plan.opening;
    let destinations = generator::addresses(&plan.target, &opening.resolved, opening.only_v6)?;
    let first = *destinations.first().ok_or_else(|| Error::usage("the URL names no port"))?;
    let mut side = ServerSide::contact(first, &plan.control)?;
    let claims = TargetOwnership {
        is_ours: side.as_ref().is_some_and(|side| side.info.port == Some(first.port())),
        ..plan.claims
    };
    let bytes_max = safety_limits::check(&plan.demand, scope(first), claims).map_err(Error::usage)?;
    let answer = probe_server(plan, first)?;
    let mut progress = Progress::new(plan.output.quiet);
    let remark = introduction(first, &answer);
    progress.line(&remark);
    if redirects_elsewhere(plan, &answer) {
        return Err(Error::failed(
            "the server redirects to another host, which is not followed; name that one if it is yours",
        ));
    }
    if plan.asks_first && !claims.is_ours && !is_local(first.ip()) && !is_wanted()? {
        return Ok(Outcome::NotCompleted);
    }
    let stop = Stop::new()?;
    let breaker = Breaker::new(plan.tolerates_failures || claims.is_ours, bytes_max);
    let spec = spec(plan, destinations)?;
    let result = watched(plan, spec, breaker, (side.as_mut(), stop), progress)?;
    report(plan, &result, side.as_ref(), remark)
}

/// A load and the measurements of both hosts.
struct Watched {
    load: LoadResult,
    sides: BothSides,
}

fn watched(
    plan: &LoadPlan,
    spec: LoadSpec,
    breaker: Breaker,
    (side, mut stop): (Option<&mut ServerSide>, Stop),
    progress: Progress,
) -> Result<Watched, Error> {
    let are_local = spec.destinations.iter().all(|address| is_local(address.ip()));
    let (threads, processes) = (plan.opening.threads, plan.opening.processes);
    let threads = generator::threads(are_local, threads);
    let pool = generator::worker_pool(spec.connections, threads, processes)?;
    let server = spec.destinations.first().map_or(IpAddr::from([0; 4]), SocketAddr::ip);
    let own = host::Watched {
        pids: vec![std::process::id()],
        tested: match spec.destinations.first() {
            Some(server) => host::Tested::Client { server: *server, ports: None },
            None => host::Tested::Nothing,
        },
    };
    let watch = Watch::start(own).map_err(cannot_watch)?;
    let mut progress = SecondsPrinter {
        progress,
        is_stream: plan.output.json_stream,
        seconds_total: (plan.duration + plan.warmup).as_secs(),
    };
    let mut seen = Observed {
        watch: &watch,
        side,
        stop: &mut stop,
        progress: &mut progress,
        mark: CellMark { expected_ms: Some(spec.duration_ns / 1_000_000), ..CellMark::named("load") },
        server,
        step: step_of(&spec),
        stats: BothSides::default(),
    };
    let outcome = load::run(spec, &pool, Some(breaker), &mut seen);
    let sides = seen.stats;
    progress.progress.clear();
    let mut load = outcome.map_err(Error::failed)?;
    load.flags = run_flags(&load);
    Ok(Watched { load, sides })
}

fn spec(plan: &LoadPlan, destinations: Vec<SocketAddr>) -> Result<LoadSpec, Error> {
    let opening = &plan.opening;
    let are_local = destinations.iter().all(|address| is_local(address.ip()));
    Ok(LoadSpec {
        sources: generator::sources(opening)?,
        ports: opening.ports,
        request: plan.request.clone(),
        is_head: plan.is_head,
        protocol: plan.protocol.clone(),
        streams: plan.streams,
        mode: plan.demand.mode,
        connections: plan.demand.connections,
        sends_first_request: plan.pace.sends_first_request,
        ramp_per_s: opening.ramp_per_s,
        connects_in_flight: opening.connects_in_flight,
        connect_timeout_ns: nanoseconds(opening.connect_timeout),
        timeout_ns: nanoseconds(plan.timeout),
        warmup_ns: nanoseconds(plan.warmup),
        duration_ns: nanoseconds(plan.duration),
        reconnects_max: opening.reconnects,
        resets_at_end: opening.resets_at_end.unwrap_or(are_local),
        verifies: plan.verifies,
        spins: plan.pace.spins,
        tcp_keepalive_s: opening
            .tcp_keepalive
            .map(|pause| u32::try_from(pause.as_secs()).unwrap_or(u32::MAX).clamp(1, KEEPALIVE_MAX_S)),
        seed: plan.pace.seed,
        port_range: generator::port_range(),
        ports_skipped: generator::reserved_ports(),
        destinations,
    })
}

fn scope(address: SocketAddr) -> TargetScope {
    TargetScope::of(address.ip(), &interfaces::addresses())
}

fn probe_server(plan: &LoadPlan, address: SocketAddr) -> Result<ProbeResult, Error> {
    let sources = generator::sources(&plan.opening)?;
    let target = ProbeTarget {
        address,
        local: Local {
            address: sources.into_iter().find(|source| source.is_ipv4() == address.is_ipv4()),
            ports: plan.opening.ports,
            ports_skipped: &generator::reserved_ports(),
        },
        protocol: &plan.protocol,
        timeout: plan.timeout.max(SHORTEST_PROBE),
    };
    probe::send(target, &plan.request, plan.is_head).map_err(probe_error)
}

fn introduction(address: SocketAddr, answer: &ProbeResult) -> String {
    let server = answer.server.as_deref().map(printable);
    let head = answer.head_bytes.map_or_else(String::new, |bytes| format!(", {bytes} of header"));
    let protocol = match &answer.protocol {
        protocol if protocol.is_plain_http1() => String::new(),
        protocol => format!("{protocol}, "),
    };
    format!(
        "{address}: {protocol}status {}, {} bytes of body{head}, server {}",
        answer.status,
        answer.body_bytes,
        server.as_deref().unwrap_or("unnamed"),
    )
}

/// Text of a server without control characters.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}

/// Whether the server redirects to another host.
fn redirects_elsewhere(plan: &LoadPlan, answer: &ProbeResult) -> bool {
    let to = answer.location.as_deref().filter(|_| (300..400).contains(&answer.status));
    let there = to.and_then(|to| to.parse::<linerate_http::target::Target>().ok());
    there.is_some_and(|there| !there.host.eq_ignore_ascii_case(&plan.target.host))
}

/// Writes what was found, with the verdict that one run allows.
fn report(plan: &LoadPlan, found: &Watched, side: Option<&ServerSide>, remark: String) -> Result<Outcome, Error> {
    let run = CellRun {
        key: CellKey {
            phase: Phase::Matrix,
            payload_bytes: found.load.payload_bytes.checked_div(found.load.ok).unwrap_or(0),
            connections: plan.demand.connections,
            rate_per_s: match plan.demand.mode {
                Mode::Open { rate_per_s, .. } => Some(rate_per_s as u32),
                Mode::Closed { .. } | Mode::Idle { .. } => None,
            },
        },
        repeat: 1,
        state: RunState::Done,
        reason: None,
        started_unix_ms: linerate_sys::clock::unix_ms(),
        load: Some(found.load.clone()),
        client: found.sides.client.clone().unwrap_or_default(),
        server: found.sides.server.clone(),
        flags: found.load.flags.clone(),
    };
    let address = generator::addresses(&plan.target, &plan.opening.resolved, plan.opening.only_v6)
        .ok()
        .and_then(|addresses| addresses.first().copied());
    let judged = judged(plan, &run, side, address);
    let target = plan.target.to_string();
    let remarks = [remark];
    let report = LoadReport {
        target: &target,
        load: &found.load,
        wire_bps: judged.as_ref().and_then(|cell| cell.median.wire_bps),
        client: found.sides.client.as_ref(),
        server: found.sides.server.as_ref(),
        verdict: judged.as_ref().map(|cell| &cell.verdict),
        remarks: &remarks,
    };
    outputs::print(&if plan.output.json || plan.output.json_stream {
        load_json(&report)
    } else {
        load_text(&report, outputs::style())
    })?;
    Ok(code(&found.load))
}

/// The run as an experiment of one cell.
fn judged(plan: &LoadPlan, run: &CellRun, side: Option<&ServerSide>, address: Option<SocketAddr>) -> Option<Cell> {
    if matches!(plan.demand.mode, Mode::Idle { .. }) {
        return None;
    }
    let client = host::environment(&host::EnvironmentQuery {
        version: env!("CARGO_PKG_VERSION"),
        pids: &[std::process::id()],
        port: None,
        peer: address.map(|address| address.ip()),
        period: Duration::ZERO,
    });
    let setup = Setup {
        target: String::new(),
        port: *plan.target.ports.start(),
        ip: match address {
            Some(SocketAddr::V6(_)) => IpVersion::V6,
            _ => IpVersion::V4,
        },
        plan: Plan::default(),
        phases: Phases::ALL,
        started_unix_ms: run.started_unix_ms,
        checks: Vec::new(),
        client,
        server: side.map(|side| side.info.environment.clone()),
        judge: cell_verdict,
    };
    let study = study(&StudyInput {
        setup: &setup,
        elapsed_ns: 0,
        is_complete: true,
        baseline: &[],
        runs: std::slice::from_ref(run),
        notes: &[],
    });
    study.cells.into_iter().next()
}

fn code(result: &LoadResult) -> Outcome {
    if result.flags.contains(&Flag::Interrupted) {
        Outcome::Interrupted
    } else if result.connections.opened == 0 {
        Outcome::Unreachable
    } else if result.flags.contains(&Flag::BreakerTripped) || (result.requests > 0 && result.ok == 0) {
        Outcome::NotCompleted
    } else {
        Outcome::Done
    }
}

struct SecondsPrinter {
    progress: Progress,
    is_stream: bool,
    seconds_total: u64,
}

impl LoadProgress for SecondsPrinter {
    fn ramped(&mut self, opened: u64, wanted: u64) {
        self.progress.line(&format!("{opened} of {wanted} connections open"));
    }

    fn second(&mut self, second: &SecondPart, _: &Watch) {
        // The drain follows the last second.
        if u64::from(second.index) >= self.seconds_total {
            return;
        }
        if self.is_stream {
            // A closed standard output is noticed when the report is written.
            let _ = outputs::print(&load_event(second));
        }
        let p99 = second.quantile_ns(0.99).map_or_else(String::new, |ns| format!(", p99 {:.3} ms", ns as f64 / 1e6));
        self.progress.update(&format!(
            "{} of {} s: {} answers/s, {:.1} MB/s of payload{p99}, {} errors",
            second.index + 1,
            self.seconds_total,
            second.ok,
            second.payload_bytes as f64 / 1e6,
            second.errors,
        ));
    }
}

/// One event of `--json-stream`.
fn load_event(second: &SecondPart) -> String {
    let object = serde_json::json!({
        "event": "second",
        "second": second.index + 1,
        "ok": second.ok,
        "payload_bytes": second.payload_bytes,
        "p99_ns": second.quantile_ns(0.99),
        "errors": second.errors,
    });
    format!("{object}\n")
}

/// The first response may take longer than the measured ones.
const SHORTEST_PROBE: Duration = Duration::from_secs(5);
const KEEPALIVE_MAX_S: u32 = 32_767;
