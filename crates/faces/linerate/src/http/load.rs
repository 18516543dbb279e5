//! `linerate http load`: probes the server, runs one load and reports it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_doctor::http::{cell_verdict, run_flags};
use linerate_document::http::{LoadReport, end_line, load_text};
use linerate_http::load::{self, Breaker, LoadSpec, SecondPart};
use linerate_http::probe::{self, ProbeResult, ProbeTarget};
use linerate_http::request::RequestSpec;
use linerate_http::safety_limits::{self, Demand, TargetOwnership, TargetScope};
use linerate_http::target::Target;
use linerate_lab::http::cells::Phases;
use linerate_lab::http::plan::Plan;
use linerate_lab::http::study::{Kept, Setup, StudyInput, study};
use linerate_lab::http::trials;
use linerate_lab::http::units::payload_bytes;
use linerate_model::http::{
    Baseline, Cell, CellKey, CellRun, CellVerdict, Flag, LoadResult, Mode, Phase, Reading, RunState,
};
use linerate_model::measure::MeasureName;
use linerate_model::printable::printable_start;
use linerate_model::record::{Body, HttpLoad, RunKind, Trial};
use linerate_store::{keys, scrubbed};
use linerate_sys::{interfaces, process};

use super::generator::{self, Opening};
use super::lab::{is_wanted, outputs};
use super::observed::{BothSides, LoadProgress, Observed};
use super::requests::{CellMark, RESTART_CAPABILITY};
use super::server_side::{ControlPath, ServerSide};
use super::signals::Stop;
use super::{Output, own_environment, probe_error, protocol_name, tcp_alone};
use crate::live::Live;
use crate::record::{RecordOptions, Recording, Run};
use crate::view::View;
use crate::{Error, Outcome};
use linerate_document::progress::Progress;

/// A load as far as the command line determines it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LoadPlan {
    /// The server and the path.
    pub target: Target,
    /// The load; the addresses of the server, the device's addresses and the port settings of this
    /// host are added.
    pub spec: LoadSpec,
    /// Statements about the ownership of the server.
    pub claims: TargetOwnership,
    /// Access to the control channel of the server.
    pub control: ControlPath,
    /// What this host resolves: threads, processes, addresses.
    pub opening: Opening,
    /// Whether the user confirms a load on a foreign server.
    pub asks_first: bool,
    /// Whether the load continues although the server fails.
    pub tolerates_failures: bool,
    /// Rate of the path in bit/s as the user knows it.
    pub line_rate_bps: Option<f64>,
    /// Whether the text contains everything that was counted.
    pub is_verbose: bool,
    /// Form of the output.
    pub output: Output,
    /// Where the record goes.
    pub record: RecordOptions,
}

impl LoadPlan {
    /// A load that is not confirmed, ends when the server fails, and keeps no record. The control
    /// channel and what this host resolves have their defaults.
    #[must_use]
    pub fn new(target: Target, spec: LoadSpec, claims: TargetOwnership) -> Self {
        Self {
            target,
            spec,
            claims,
            control: ControlPath::default(),
            opening: Opening::default(),
            asks_first: false,
            tolerates_failures: false,
            line_rate_bps: None,
            is_verbose: false,
            output: Output::default(),
            record: RecordOptions::default(),
        }
    }
}

/// How a load ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct LoadEnd {
    /// The exit code.
    pub outcome: Outcome,
    /// What was measured; `None` of a load that the user did not want.
    pub trial: Option<Trial>,
    /// What the user should know about the record.
    pub record_message: Option<String>,
}

/// Runs a load: probes the server, sends requests, reports what was measured.
///
/// # Errors
/// Options that this host or the server does not allow, or a server that does not answer.
pub fn run(plan: &LoadPlan) -> Result<LoadEnd, Error> {
    let mut spec = completed(plan)?;
    let first = *spec
        .destinations
        .first()
        .ok_or_else(|| Error::usage("the URL names no port"))?;
    let wait_max = Duration::from_nanos(spec.connect_timeout_ns);
    let mut side = ServerSide::contact(first, &plan.control, wait_max)?;
    let claims = ServerSide::ownership(side.as_ref(), first, plan.claims);
    let scope = TargetScope::of(first.ip(), &interfaces::addresses());
    let bytes_max = safety_limits::check(&demand(&spec), scope, claims).map_err(Error::usage)?;

    spec.sources.extend(generator::addresses_of_device(
        plan.opening.source_device.as_deref(),
    )?);
    let answer = probe_server(&spec, first)?;
    let mut progress = Progress::new(plan.output.quiet);
    side.iter()
        .flat_map(|side| &side.remarks)
        .for_each(|remark| progress.line(remark));

    let remark = introduction(first, &answer);
    progress.line(&remark);
    if redirects_elsewhere(plan, &answer) {
        return Err(Error::failed(
            "the server redirects to another host, which is not followed; name that one if it is \
             yours",
        ));
    }
    if plan.asks_first && !claims.is_ours && !interfaces::is_local(first.ip()) && !is_wanted()? {
        return Ok(LoadEnd {
            outcome: Outcome::NotCompleted,
            trial: None,
            record_message: None,
        });
    }

    // Before the thread of a view, which would otherwise take the signals.
    let mut stop = Stop::new()?;
    let live = plan.output.tui.then(Live::default);
    let view = live.as_ref().and_then(View::open);
    let live = live.filter(|_| view.is_some());
    if let Some(live) = &live {
        progress = Progress::new(true);
        live.update(|state| state.http_mut().target = plan.target.to_string());
    }

    let recording = recording(plan, &spec, first);
    let mut kept = Kept::default();

    if !interfaces::is_local(first.ip()) && needs_baseline(plan, side.as_ref(), &answer) {
        match baseline(plan, &spec, (side.as_mut(), &mut stop), (scope, claims)) {
            Ok(found) => kept.baseline.extend(found),
            Err(why) => kept.notes.push(format!("no TCP baseline: {why}")),
        }
    }

    let remarks = [remark]
        .into_iter()
        .chain(kept.baseline.iter().map(tcp_alone::text))
        .chain(kept.notes.clone());
    let remarks: Vec<String> = remarks.collect();
    remarks
        .iter()
        .skip(1)
        .for_each(|remark| progress.line(remark));

    let breaker = Breaker::new(plan.tolerates_failures || claims.is_ours, bytes_max);
    let progress = SecondsPrinter {
        progress,
        live,
        is_stream: plan.output.json_stream,
        seconds_total: (spec.duration_ns + spec.warmup_ns) / 1_000_000_000,
        errors: 0,
    };
    let (mut load, sides) = match watched(plan, spec, breaker, (side.as_mut(), &mut stop), progress)
    {
        Ok(watched) => watched,
        Err(error) => {
            let _ = recording.map(|recording| recording.fail(&error));
            return Err(error);
        }
    };

    drop(view);
    load.alone_ns = Some(linerate_sys::clock::as_ns(answer.elapsed));
    report(
        plan,
        &load,
        &sides,
        (side.as_ref(), recording),
        (first.ip(), kept, remarks),
    )
}

/// The record of a load that is kept or printed.
fn recording(plan: &LoadPlan, spec: &LoadSpec, server: SocketAddr) -> Option<Recording> {
    let is_printed = plan.output.json || plan.output.json_stream;
    if !is_printed && plan.record.place.is_none() {
        return None;
    }

    let Target { is_tls, path, .. } = &plan.target;
    let asked = serde_json::json!({
        "path": path,
        "is_tls": is_tls,
        "is_http2": spec.protocol.is_http2,
        "is_head": spec.is_head,
        "mode": spec.mode,
        "streams": spec.streams,
        "connections": spec.connections,
        "warmup_ns": spec.warmup_ns,
        "duration_ns": spec.duration_ns,
    });

    let run = Run {
        kind: RunKind::HttpLoad,
        body: body(plan, None),
        server: Some(plan.target.host.clone()),
        spec_key: keys::spec_key("http-load", &asked),
        peer: Some(server),
    };
    Some(Recording::begin(plan.record.clone(), run))
}

fn body(plan: &LoadPlan, verdict: Option<Box<CellVerdict>>) -> Body {
    let mut load = HttpLoad::new(scrubbed(&[plan.target.to_string()]).concat());
    load.verdict = verdict;
    Body::HttpLoad(load)
}

/// Whether TCP alone is measured: the server has linerate's payloads, and the user names no rate.
fn needs_baseline(plan: &LoadPlan, side: Option<&ServerSide>, answer: &ProbeResult) -> bool {
    let size = plan
        .target
        .path
        .strip_prefix("/b/")
        .and_then(|size| payload_bytes(size.split('?').next()?).ok());
    let has_payloads = (answer.status, Some(answer.body_bytes)) == (200, size);
    let is_ours = has_payloads || side.is_some_and(|side| side.info.can(RESTART_CAPABILITY));
    let is_idle = matches!(plan.spec.mode, Mode::Idle { .. });

    is_ours && plan.line_rate_bps.is_none() && !is_idle && plan.spec.protocol.is_plain_http1()
}

fn demand(load: &LoadSpec) -> Demand {
    Demand {
        connections: load.connections,
        mode: load.mode,
        duration_ns: load.duration_ns.saturating_add(load.warmup_ns),
    }
}

/// TCP alone by a download from the server. `None`: it exceeds the limits of the target, or the
/// user ended it.
fn baseline(
    plan: &LoadPlan,
    spec: &LoadSpec,
    (side, stop): (Option<&mut ServerSide>, &mut Stop),
    (scope, claims): (TargetScope, TargetOwnership),
) -> Result<Option<Baseline>, String> {
    let text = |error: Error| error.to_string();
    let target = Target {
        path: format!("/b/{}", tcp_alone::BODY_BYTES),
        ..plan.target.clone()
    };
    let request = RequestSpec::get()
        .bytes(&target)
        .map_err(|error| error.to_string())?;
    let load = LoadSpec {
        timeout_ns: spec.timeout_ns.min(BASELINE_TIMEOUT_NS),
        ..tcp_alone::download(spec, request, tcp_alone::OF_LOAD)
    };
    let Ok(bytes_max) = safety_limits::check(&demand(&load), scope, claims) else {
        return Ok(None);
    };

    let pool = generator::worker_pool(
        load.connections,
        generator::threads(false, plan.opening.threads),
        None,
    );
    let watch = generator::watch(load.destinations.first().copied()).map_err(text)?;
    let mut silent = tcp_alone::Silent;

    let hosts = Observed::new(
        &watch,
        side,
        stop,
        &mut silent,
        CellMark::named(tcp_alone::ID),
    );
    tcp_alone::measure(hosts, load, &pool.map_err(text)?, bytes_max)
}

/// Runs the workers a parent assigns over standard input, and reports over standard output.
///
/// # Errors
/// An assignment that cannot be read, or a lost parent.
pub fn work() -> Result<(), Error> {
    // Each process has its own limit, which is its purpose.
    let _ = process::raise_fd_limit();
    load::work(io::stdin(), io::stdout()).map_err(|error| Error::failed(format!("worker: {error}")))
}

fn watched(
    plan: &LoadPlan,
    spec: LoadSpec,
    breaker: Breaker,
    (side, stop): (Option<&mut ServerSide>, &mut Stop),
    mut progress: SecondsPrinter,
) -> Result<(LoadResult, BothSides), Error> {
    let are_local = spec
        .destinations
        .iter()
        .all(|address| interfaces::is_local(address.ip()));
    let threads = generator::threads(are_local, plan.opening.threads);
    let pool = generator::worker_pool(spec.connections, threads, plan.opening.processes)?;
    let watch = generator::watch(spec.destinations.first().copied())?;
    let hosts = Observed::new(&watch, side, stop, &mut progress, CellMark::named("load"));
    let found = hosts.run(spec, &pool, breaker);

    progress.progress.clear();
    let (mut load, sides) = found?;
    load.flags = run_flags(&load);
    Ok((load, sides))
}

/// The load with what this host and the resolver know.
fn completed(plan: &LoadPlan) -> Result<LoadSpec, Error> {
    let opening = &plan.opening;
    let mut spec = plan.spec.clone();
    spec.destinations = generator::addresses(&plan.target, &opening.resolved, opening.only_v6)?;

    let are_local = spec
        .destinations
        .iter()
        .all(|address| interfaces::is_local(address.ip()));
    spec.resets_at_end = opening.resets_at_end.unwrap_or(are_local);
    spec.port_range = generator::port_range();
    spec.ports_skipped = generator::reserved_ports();

    Ok(spec)
}

fn probe_server(spec: &LoadSpec, address: SocketAddr) -> Result<ProbeResult, Error> {
    let local = generator::local_end(address, &spec.sources, spec.ports, &spec.ports_skipped);
    let target = ProbeTarget {
        address,
        local,
        protocol: &spec.protocol,
        connect_timeout: Duration::from_nanos(spec.connect_timeout_ns),
        timeout: Duration::from_nanos(spec.timeout_ns),
    };
    probe::send(target, &spec.request, spec.is_head).map_err(probe_error)
}

fn introduction(address: SocketAddr, answer: &ProbeResult) -> String {
    let server = answer
        .server
        .as_deref()
        .map(|name| printable_start(name, SERVER_CHARS_MAX));
    let head = answer
        .head_bytes
        .map_or_else(String::new, |bytes| format!(", {bytes} of header"));
    format!(
        "{address}: {}status {}, {} bytes of body{head}, server {}",
        protocol_name(&answer.protocol),
        answer.status,
        answer.body_bytes,
        server.as_deref().unwrap_or("unnamed"),
    )
}

/// Longest name of a server that is shown.
const SERVER_CHARS_MAX: usize = 80;

/// Whether the server redirects to another host.
fn redirects_elsewhere(plan: &LoadPlan, answer: &ProbeResult) -> bool {
    let to = answer
        .location
        .as_deref()
        .filter(|_| (300..400).contains(&answer.status));
    let there = to.and_then(|to| to.parse::<linerate_http::target::Target>().ok());
    there.is_some_and(|there| !there.host.eq_ignore_ascii_case(&plan.target.host))
}

/// Writes what was found, with the verdict that one run allows.
fn report(
    plan: &LoadPlan,
    load: &LoadResult,
    sides: &BothSides,
    (side, recording): (Option<&ServerSide>, Option<Recording>),
    (address, kept, remarks): (IpAddr, Kept, Vec<String>),
) -> Result<LoadEnd, Error> {
    let run = cell_run(plan, load, sides);
    let trial = trials::trial(&run, None);

    let judged = judged(
        plan,
        &Kept {
            runs: vec![run],
            ..kept
        },
        side,
        address,
    );
    let verdict = judged.map(|cell| Box::new(cell.verdict));

    let recorded = recording.map(|mut recording| {
        recording.note(remarks.clone());
        let (state, reason) = (trial.state, trial.reason.clone());
        let started_ns = recording.elapsed_ns().saturating_sub(trial.elapsed_ns);
        let mut repetition = trial.clone();
        repetition.started_ns = started_ns;
        recording.add(repetition);
        recording.finish(state, reason, body(plan, verdict.clone()))
    });
    let wire = trial
        .measures
        .iter()
        .find(|measure| measure.name == MeasureName::WireBps);
    let report = LoadReport {
        target: &plan.target.to_string(),
        load,
        wire_bps: wire.map(|measure| measure.value),
        client: sides.client.as_ref(),
        server: sides.server.as_ref(),
        verdict: verdict.as_deref(),
        remarks: &remarks,
    };

    let is_printed = plan.output.json || plan.output.json_stream;
    let text = match &recorded {
        Some(recorded) if is_printed => crate::record::json(&recorded.record),
        _ => load_text(&report, plan.is_verbose, outputs::style()),
    };
    outputs::print(&text)?;

    let record_message = recorded.and_then(|recorded| recorded.message);
    Ok(LoadEnd {
        outcome: code(load),
        trial: Some(trial),
        record_message,
    })
}

fn cell_run(plan: &LoadPlan, load: &LoadResult, sides: &BothSides) -> CellRun {
    let payload_bytes = load.payload_bytes.checked_div(load.ok).unwrap_or(0);
    let mut key = CellKey::new(Phase::Matrix, payload_bytes, plan.spec.connections);
    key.rate_per_s = match plan.spec.mode {
        Mode::Open { rate_per_s, .. } => Some(rate_per_s as u32),
        Mode::Closed { .. } | Mode::Idle { .. } => None,
    };

    let mut run = CellRun::new(
        key,
        1,
        if load.outage.is_some() {
            RunState::Aborted
        } else {
            RunState::Done
        },
    );
    run.reason = load.outage.clone();
    run.started_unix_ms = linerate_sys::clock::unix_ms();
    run.client = sides.client.clone().unwrap_or_default();
    run.server = sides.server.clone();
    run.flags = load.flags.clone();
    run.load = Some(load.clone());

    run
}

/// The run as an experiment of one cell.
fn judged(
    plan: &LoadPlan,
    kept: &Kept,
    side: Option<&ServerSide>,
    address: IpAddr,
) -> Option<Cell> {
    if matches!(plan.spec.mode, Mode::Idle { .. }) {
        return None;
    }

    let setup = Setup {
        target: String::new(),
        port: *plan.target.ports.start(),
        is_ipv6: address.is_ipv6(),
        plan: Plan {
            line_rate_bps: plan.line_rate_bps,
            ..Plan::default()
        },
        phases: Phases::ALL,
        started_unix_ms: linerate_sys::clock::unix_ms(),
        checks: Vec::new(),
        client: own_environment(address, Duration::ZERO),
        server: side.map(|side| side.info.environment.clone()),
        judge: cell_verdict,
    };
    let study = study(&StudyInput {
        setup: &setup,
        elapsed_ns: 0,
        is_complete: true,
        kept,
    });
    study.cells.into_iter().next()
}

fn code(result: &LoadResult) -> Outcome {
    if result.flags.contains(&Flag::Interrupted) {
        Outcome::Interrupted
    } else if result.connections.opened == 0 || result.outage.is_some() {
        Outcome::Unreachable
    } else if result.flags.contains(&Flag::BreakerTripped)
        || (result.requests > 0 && result.ok == 0)
    {
        Outcome::NotCompleted
    } else {
        Outcome::Done
    }
}

struct SecondsPrinter {
    progress: Progress,
    /// What a view shows.
    live: Option<Live>,
    is_stream: bool,
    seconds_total: u64,
    /// Failures so far.
    errors: u64,
}

impl SecondsPrinter {
    fn show(&self, second: &SecondPart, [client, server]: [Option<Reading>; 2]) {
        let Some(live) = &self.live else { return };
        let (done, total) = (u64::from(second.index) + 1, self.seconds_total);
        live.update(|state| {
            let http = state.http_mut();
            http.running = format!("second {done} of {total}");
            http.left_s = Some(total.saturating_sub(done) as f64);
            http.ok_per_s.push(second.ok as f64);
            (http.payload_bytes, http.p99_ns) = (second.payload_bytes, second.quantile_ns(0.99));
            (http.errors, http.client, http.server) = (self.errors, client, server);
        });
    }
}

impl LoadProgress for SecondsPrinter {
    fn ramped(&mut self, opened: u64, wanted: u64) {
        self.progress
            .line(&format!("{opened} of {wanted} connections open"));
        if let Some(live) = &self.live {
            live.update(|state| state.http_mut().open = opened);
        }
    }

    fn is_shown(&self) -> bool {
        self.live.is_some() || !self.progress.is_silent()
    }

    fn second(&mut self, second: &SecondPart, ends: [Option<Reading>; 2]) {
        // The drain follows the last second.
        if u64::from(second.index) >= self.seconds_total {
            return;
        }

        self.errors += second.errors;
        self.show(second, ends.clone());
        let [_, server] = ends;

        if self.is_stream {
            // A closed standard output is noticed when the report is written.
            let _ = outputs::print(&load_event(second));
        }

        let p99 = second
            .quantile_ns(0.99)
            .map_or_else(String::new, |ns| format!(", p99 {:.3} ms", ns as f64 / 1e6));
        let server = server.map_or_else(String::new, |server| {
            format!("; server: {}", end_line(&server))
        });
        self.progress.update(&format!(
            "{} of {} s: {} answers/s, {:.1} MB/s of payload{p99}, {} errors{server}",
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

/// Time for outstanding responses of the download: a slow path must not delay the load.
const BASELINE_TIMEOUT_NS: u64 = 1_000_000_000;
