//! Runs an experiment: the order is the lab's, the hosts, loads and files are this program's.

use std::time::{Duration, Instant};

use linerate_doctor::http::{cell_verdict, run_flags, too_many_connections};
use linerate_model::http::units::nanoseconds;
use linerate_model::http::{
    Baseline, CellKey, CellRun, Flag, LoadResult, LossWithoutLoad, Phase, RunState, Study,
};
use linerate_model::outcome::{Error, Outcome};
use linerate_model::{Direction, EndCondition, Failure, FailureKind, Flow, TestSpec, measure};
use linerate_sys::clock;

use super::introduction::{circumstances, introduced};
use super::record::{BASELINE, HistoryRecord, Record, START, STUDY};
use super::spec::LabSpec;
use super::target::TargetServer;
use super::{cooldown, requirements};
use crate::conclude::ceiling::Link;
use crate::conclude::changes::StartRecord;
use crate::conclude::study::{self, Ending, Kept, Setup};
use crate::load::{Breaker, LoadSpec, WorkerPool};
use crate::plan::Close;
use crate::plan::cells::{self, PlannedRun, PlannedTest};
use crate::plan::estimate::{self, estimate};
use crate::run::experiment::{self, CellRunner, skipped};
use crate::run::progress::SecondsPrinter;
use crate::run::requests::{CellMark, TCP_CAPABILITY};
use crate::run::sampled_load::{BothSides, Observed};
use crate::run::watch::Watch;
use crate::run::{OpenView, Stop, generator, outputs, tcp_baseline};

/// Runs an experiment, or the rest of one that was interrupted, and reports it.
pub(super) fn run(
    spec: &LabSpec,
    target: TargetServer,
    open_view: OpenView,
) -> Result<Outcome, Error> {
    let planned = cells::runs(&spec.plan, spec.phases);
    let bytes_max = target.permit(spec, &planned)?;
    let hosts = requirements::hosts(&target);
    let checks = requirements::checks(spec, &target, &hosts, &cells::keys(&planned));
    let expected = estimate(&spec.plan, spec.phases).total.time;
    let stop = Stop::new()?;
    let mut progress = introduced(spec, &target, open_view, planned.len(), expected)?;

    // After the question, so that a refusal leaves no directory.
    let (record, kept, before) = Record::open(&spec.directory, &spec.plan)?;
    progress.line(&format!("keeping the runs in {}", record.path.display()));

    progress.expect(time_left(spec, &planned, &kept));

    let mut kept = Kept {
        notes: circumstances(&target),
        ..kept
    };
    let hosts = StartRecord {
        started_unix_ms: clock::unix_ms(),
        ..hosts
    };
    let started_unix_ms = start(spec, &hosts, &record, before, &mut kept)?;

    let setup = Setup {
        target: spec.plan.target.clone().unwrap_or_default(),
        port: target.address().port(),
        is_ipv6: target.address().is_ipv6(),
        plan: spec.plan.clone(),
        phases: spec.phases,
        started_unix_ms,
        checks,
        client: hosts.client,
        server: hosts.server,
        judge: cell_verdict,
    };
    let target_address = target.address();

    let mut runner = Runner {
        spec,
        link: setup.link(),
        // The segment size does not depend on the speed, which virtual devices do not name.
        mss_bytes: setup.link_of(Some(1.0)).and_then(|link| link.mss_bytes()),
        watch: generator::watch(Some(target_address))?,
        target,
        stop,
        progress,
        record,
        bytes_max,
        begun: Instant::now(),
        is_server_gone: false,
        kept: HistoryRecord::begin(spec, target_address),
    };
    kept.runs.iter().for_each(|run| runner.keep_trial(run));
    let outcome = experiment::run(&setup, spec.is_forced, kept, &mut runner);

    runner.progress.close();
    let message = runner
        .kept
        .take()
        .and_then(|kept| kept.finish(&outcome, runner.is_server_gone));
    let study = outcome?;
    // Stored first: an output that cannot be written loses no result.
    let path = runner.record.path.join(STUDY);
    runner
        .record
        .write(&path, crate::report::json(&study).as_bytes())?;
    outputs::study(&study, spec.output, spec.is_verbose, spec.html.as_deref())?;
    message
        .iter()
        .for_each(|message| runner.progress.line(message));

    Ok(if runner.is_server_gone {
        Outcome::Unreachable
    } else {
        code(&study, spec.asserts)
    })
}

/// Time that the runs take which are not kept yet.
fn time_left(spec: &LabSpec, planned: &[PlannedRun], kept: &Kept) -> Duration {
    let is_kept = |planned: &&PlannedRun| {
        kept.runs
            .iter()
            .any(|run| (run.key, run.repeat) == (planned.key, planned.repeat))
    };
    let ahead = planned.iter().filter(|run| !is_kept(run));
    ahead
        .map(|run| estimate::run_time(&spec.plan, &run.key))
        .sum()
}

fn code(study: &Study, is_asserted: bool) -> Outcome {
    if !study.is_complete {
        return Outcome::Interrupted;
    }

    match study::ending(study, is_asserted) {
        Ending::Done => Outcome::Done,
        Ending::ObjectiveMissed => Outcome::ObjectiveMissed,
        Ending::TooManyInvalid => Outcome::TooManyInvalid,
        Ending::AllSkipped => Outcome::CheckFailed,
    }
}

/// Keeps the hosts at the start, or compares them with those of the start that is continued.
/// Returns the start.
fn start(
    spec: &LabSpec,
    now: &StartRecord,
    record: &Record,
    before: Option<StartRecord>,
    kept: &mut Kept,
) -> Result<u64, Error> {
    let Some(before) = before else {
        record.write_json(START, now)?;
        return Ok(now.started_unix_ms);
    };
    let changed = now.changes_since(&before).join(", ");
    if !changed.is_empty() {
        if !spec.is_forced {
            return Err(Error::usage(format!(
                "since the experiment began, this has changed: {changed}; --force continues and \
                 marks the report"
            )));
        }

        kept.notes.push(format!(
            "mixed environment, changed between the runs: {changed}"
        ));
    }

    Ok(before.started_unix_ms)
}

/// The hosts of an experiment.
struct Runner<'a> {
    spec: &'a LabSpec,
    target: TargetServer,
    link: Option<Link>,
    /// Most bytes of payload in a segment.
    mss_bytes: Option<u32>,
    watch: Watch,
    stop: Stop,
    progress: SecondsPrinter,
    record: Record,
    bytes_max: Option<u64>,
    begun: Instant,
    is_server_gone: bool,
    /// Takes a trial of every run.
    kept: Option<HistoryRecord>,
}

impl CellRunner for Runner<'_> {
    type Error = Error;

    fn path_not_clean(&self, defects: &[String]) -> Error {
        let defects = defects.join("; ");
        let text = format!(
            "the path is not clean: {defects}; `linerate doctor` may say why, --force continues"
        );
        Error::new(Outcome::CheckFailed, text)
    }

    fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    fn is_stopped(&mut self) -> bool {
        self.stop.is_wanted()
    }

    fn test_tcp(&mut self, test: &PlannedTest) -> Result<Option<Baseline>, String> {
        self.progress.running("TCP alone");
        let port = self.tcp_port();
        match self.baseline(test, port) {
            Ok(found) => {
                self.progress.line(&tcp_baseline::text(&found));
                Ok(Some(found))
            }
            Err(failure) if failure.kind == FailureKind::Interrupted => {
                // The client of the test took the signal, so the experiment has not seen it.
                self.stop.note();
                Ok(None)
            }
            Err(failure) => Err(format!(
                "{failure} (an iperf3 server is expected at port {port}, for example that of \
                 `linerate http serve --tcp`)"
            )),
        }
    }

    fn download(&mut self) -> Result<Option<Baseline>, String> {
        if !self.has_plain_payloads() {
            return Err("the server has no payloads of linerate's in plain HTTP/1.1".to_owned());
        }

        let body_bytes = tcp_baseline::BODY_BYTES;
        let connections = tcp_baseline::CONNECTIONS;
        let measured = self
            .load_spec(&matrix_run(body_bytes, connections))
            .and_then(|base| {
                let request = base.request.clone();
                self.unshown(tcp_baseline::download(
                    &base,
                    request,
                    tcp_baseline::OF_STUDY,
                ))
            });
        let found = tcp_baseline::judged(measured)?;
        if let Some(found) = &found {
            self.progress.line(&tcp_baseline::text(found));
        }

        Ok(found)
    }

    fn loss_without_load(&mut self, goodput_bps: f64) -> Option<LossWithoutLoad> {
        if !self.has_plain_payloads() {
            return None;
        }

        let body_bytes = tcp_baseline::SMALL_BODY_BYTES;
        let connections = tcp_baseline::SMALL_CONNECTIONS;
        let base = self.load_spec(&matrix_run(body_bytes, connections)).ok()?;
        let measured = self.unshown(tcp_baseline::trickle(&base, goodput_bps));
        let (_, stats) = measured.ok()?;
        // The server sends the bodies, so it counts the segments that are sent again.
        let counters = stats.server?.counters;

        Some(LossWithoutLoad {
            segments: counters.out_segs?,
            retransmits: counters.retrans_segs?,
        })
    }

    fn rest(&mut self, least: Duration) -> bool {
        self.progress.begin_runs();
        cooldown::rest(least, &mut self.target, &self.watch, &mut self.stop)
    }

    fn run(&mut self, planned: &PlannedRun) -> Result<CellRun, Error> {
        if planned.key.phase == Phase::Idle
            && let Some(side) = &mut self.target.server
        {
            // The memory of an idle connection is the slope over the steps, which have to begin
            // alike.
            side.restart_workers();
        }

        let plan = &self.spec.plan;
        let window = estimate::window(plan, &planned.key);
        let expected = estimate::run_time(plan, &planned.key);
        self.progress
            .begin_run(*planned, [plan.defaults.warmup, window], expected);

        self.load(planned)
    }

    fn keep_baseline(&mut self, baseline: &[Baseline]) -> Result<(), Error> {
        self.record.write_json(BASELINE, &baseline)
    }

    fn keep_run(&mut self, planned: &PlannedRun, run: &CellRun) -> Result<(), Error> {
        self.progress.finished(run);
        self.keep_trial(run);
        self.record.keep_run(planned, run)
    }

    fn runs_added(&mut self, count: u32) {
        self.progress.add(count);
    }
}

impl Runner<'_> {
    fn keep_trial(&mut self, run: &CellRun) {
        if let Some(kept) = &mut self.kept {
            kept.add(run, self.link.as_ref());
        }
    }

    /// The load of a cell, with both hosts watched.
    fn load(&mut self, planned: &PlannedRun) -> Result<CellRun, Error> {
        let load = self.load_spec(planned)?;
        let pool = match self.pool(&load) {
            Ok(pool) => pool,
            // Another cell may need fewer connections, so the experiment continues.
            Err(reason) => return Ok(skipped(planned, clock::unix_ms(), &reason.to_string())),
        };
        let breaker = Breaker::new(
            self.spec.tolerates_failures || self.target.claims.is_ours,
            self.bytes_max,
        );
        let started_unix_ms = clock::unix_ms();
        let mark = self.mark(planned);
        let side = self.target.server.as_mut();
        let progress = Some(&mut self.progress);
        let hosts = Observed::new(&self.watch, side, &mut self.stop, progress, mark);
        let (result, stats) = hosts.run(load, &pool, breaker)?;

        Ok(self.cell_run(planned, started_unix_ms, result, stats))
    }

    /// A test against the iperf3 server beside the one under test.
    fn baseline(&self, planned: &PlannedTest, port: u16) -> Result<Baseline, Failure> {
        let flow = planned.direction;
        let mut spec = TestSpec {
            direction: match flow {
                Flow::Forward => Direction::Forward,
                Flow::Reverse => Direction::Reverse,
            },
            ..TestSpec::default()
        };
        spec.end = EndCondition::Duration(self.spec.plan.tcp.duration);
        spec.streams = planned.streams;
        spec.omit = OMITTED;

        let host = self.target.address().ip().to_string();
        let result = tcp_baseline::iperf3_test(&host, port, spec, &self.stop.signals);
        result.outcome?;

        let summary = result.summary.unwrap_or_default();
        let link = self.link.as_ref();
        let goodput_bps =
            measure::received(&summary, flow).map_or(0.0, |received| received.bits_per_second());
        let retransmits = measure::retransmits(&summary, flow);
        let retransmit_share = || {
            let sent = measure::sent(&summary, flow)?;
            measure::retransmit_share(retransmits?, sent.bytes, self.mss_bytes?)
        };
        let baseline = Baseline {
            is_reverse: flow == Flow::Reverse,
            streams: planned.streams,
            goodput_bps,
            of_theory: link
                .and_then(Link::goodput_bps)
                .map(|most| goodput_bps / most),
            retransmits,
            retransmit_share: retransmit_share(),
            client_cpus: summary.cpu_local.map(measure::cpus),
            server_cpus: summary.cpu_remote.map(measure::cpus),
            ..Baseline::default()
        };

        Ok(baseline)
    }

    /// The server has linerate's payloads, in the protocol whose bytes are known.
    fn has_plain_payloads(&self) -> bool {
        self.target.has_sizes && self.spec.protocol.is_plain_http1()
    }

    /// Runs a load that is no cell and shows nothing of it.
    fn unshown(&mut self, load: LoadSpec) -> Result<(LoadResult, BothSides), Error> {
        let pool = self.pool(&load)?;
        let mark = CellMark {
            peer: self.target.client,
            ..CellMark::named(tcp_baseline::ID)
        };
        let side = self.target.server.as_mut();
        let hosts = Observed::new(&self.watch, side, &mut self.stop, None, mark);
        hosts.run(load, &pool, Breaker::new(true, self.bytes_max))
    }

    /// Threads and processes for a load, or why this host cannot make it.
    fn pool(&self, load: &LoadSpec) -> Result<WorkerPool, Error> {
        let too_many = too_many_connections(load.connections, load.streams);
        if let Some(why) = too_many.filter(|_| !load.protocol.is_plain_http1()) {
            return Err(Error::failed(why));
        }

        let threads = generator::threads(
            self.target.is_local(),
            self.spec.plan.defaults.explicit_threads(),
        );
        generator::worker_pool(load.connections, threads, None)
    }

    fn cell_run(
        &mut self,
        planned: &PlannedRun,
        started_unix_ms: u64,
        result: LoadResult,
        stats: BothSides,
    ) -> CellRun {
        let mut flags = run_flags(&result);
        let is_lost = self
            .target
            .server
            .as_mut()
            .is_some_and(|side| std::mem::take(&mut side.is_lost));
        flags.extend(is_lost.then_some(Flag::ControlLost));

        let interrupted = flags
            .contains(&Flag::Interrupted)
            .then(|| "interrupted".to_owned());
        let reason = result.outage.clone().or(interrupted);
        self.is_server_gone = result.outage.is_some();

        let state = if reason.is_some() {
            RunState::Aborted
        } else {
            RunState::Done
        };
        CellRun {
            reason,
            started_unix_ms,
            load: Some(result),
            client: stats.client.unwrap_or_default(),
            server: stats.server,
            flags,
            ..CellRun::new(planned.key, planned.repeat, state)
        }
    }

    fn tcp_port(&self) -> u16 {
        let reported = self.target.server.as_ref().and_then(|side| {
            let capabilities = side.info.capabilities.iter();
            capabilities
                .filter_map(|word| word.strip_prefix(TCP_CAPABILITY)?.parse().ok())
                .next()
        });
        reported.unwrap_or(TCP_PORT)
    }

    fn mark(&self, planned: &PlannedRun) -> CellMark {
        CellMark {
            // The control channel may use another network, and with it another NIC, than the load.
            peer: self.target.client,
            ..CellMark::named(format!("{}-r{}", planned.key.name(), planned.repeat))
        }
    }

    fn load_spec(&self, planned: &PlannedRun) -> Result<LoadSpec, Error> {
        let plan = &self.spec.plan;
        let key = &planned.key;
        let is_idle = key.phase == Phase::Idle;
        let is_ours = self.target.claims.is_ours;
        Ok(LoadSpec {
            destinations: self.target.destinations.clone(),
            sources: plan.source.addresses.clone(),
            ports: plan.source.ports,
            request: self.target.request(key.payload_bytes)?,
            is_head: false,
            protocol: self.spec.protocol.clone(),
            streams: plan.protocol.streams,
            mode: cells::mode(plan, key),
            connections: key.connections,
            sends_first_request: is_idle && plan.c10k.idle.touch,
            ramp_per_s: plan.defaults.ramp_per_s,
            connects_in_flight: CONNECTS_IN_FLIGHT,
            connect_timeout_ns: CONNECT_TIMEOUT_NS,
            timeout_ns: nanoseconds(plan.defaults.timeout),
            warmup_ns: if is_idle {
                0
            } else {
                nanoseconds(plan.defaults.warmup)
            },
            duration_ns: nanoseconds(estimate::window(plan, key)),
            reconnects_max: RECONNECTS_MAX,
            resets_at_end: match plan.source.close {
                Close::Auto => is_ours,
                Close::Reset => true,
                Close::Fin => false,
            },
            verifies: false,
            spins: false,
            tcp_keepalive_s: None,
            seed: plan.seed,
            port_range: generator::port_range(),
            ports_skipped: generator::reserved_ports(),
        })
    }
}

/// A run outside the plan.
fn matrix_run(payload_bytes: u64, connections: u32) -> PlannedRun {
    PlannedRun {
        key: CellKey::new(Phase::Matrix, payload_bytes, connections),
        repeat: 0,
    }
}

/// Slow start is not part of what the path carries.
const OMITTED: Duration = Duration::from_secs(1);
const CONNECTS_IN_FLIGHT: u32 = 256;
const CONNECT_TIMEOUT_NS: u64 = 3_000_000_000;
const RECONNECTS_MAX: u8 = 3;
/// Where iperf3 servers are.
const TCP_PORT: u16 = 5201;
