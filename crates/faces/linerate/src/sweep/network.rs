//! Runs tests for an experiment: one run is one test of the engine in this process.

use std::time::{Duration, Instant};

use linerate_doctor::observation::EndpointObservation;
use linerate_engine::dialect::iperf3::client::ClientResult;
use linerate_host::connect_advice::{TEST_SERVER, connect_failure};
use linerate_iperf3::wire::ErrorCode;
use linerate_model::record::Trial;
use linerate_model::sink::Tee;
use linerate_model::snapshot::Snapshot;
use linerate_model::sweep::{Hosts, Objective, Provenance, RunMetrics};
use linerate_model::{Failure, FailureKind, PortRange};
use linerate_store::Builder;
use linerate_sweep::conclude::metrics;
use linerate_sweep::report::{self, clock};
use linerate_sweep::{
    Observation, Progress, Run, RunError, RunLength, RunLog, Runner, Setting, SettingSpace,
    SweepSpec, run_time,
};
use linerate_sys::cpu::{self, Affinity};
use linerate_sys::poll::{self, Interest};
use linerate_sys::process;

use crate::live::Live;
use crate::record::Recording;
use crate::{Client, Interrupts};

/// Longest wait for a server that is busy with another client.
const BUSY_TIMEOUT: Duration = Duration::from_secs(60);
/// Time between two questions whether it still is.
const BUSY_RHYTHM: Duration = Duration::from_millis(500);
/// Longest wait for a server between two tests: the original closes its listener after each and
/// opens another one. With the timeouts of a test it decides how long a sweep lasts after the path
/// is gone. Two attempts of the kernel fit: it repeats a lost SYN after 1 s.
const REOPENING_TIMEOUT: Duration = Duration::from_millis(1500);
/// Time between two attempts to reach it.
const REOPENING_RHYTHM: Duration = Duration::from_millis(50);

/// The path under test.
pub(crate) struct Network<'a> {
    spec: &'a SweepSpec,
    space: &'a SettingSpace<'a>,
    interrupts: &'a dyn Interrupts,
    pub progress: crate::Progress,
    started: Instant,
    length: RunLength,
    /// Port of the first run with a result.
    port: Option<u16>,
    /// Where this process may run when no run pins it.
    affinity: Option<Affinity>,
    log: RunLog,
    pub has_result: bool,
    pub is_interrupted: bool,
    /// The server did not answer the first run, or refused it.
    pub(super) is_unreachable: bool,
    /// Takes a trial of every run.
    pub(super) recording: Option<Recording>,
    /// The trial of the last test.
    trial: Option<Trial>,
    /// State that views show.
    live: Option<Live>,
}

impl<'a> Network<'a> {
    pub(crate) fn new(
        spec: &'a SweepSpec,
        space: &'a SettingSpace<'a>,
        interrupts: &'a dyn Interrupts,
        progress: crate::Progress,
        recording: Option<Recording>,
    ) -> Self {
        let affinity = cpu::affinity().ok();
        let cores = affinity
            .as_ref()
            .and_then(|affinity| u32::try_from(affinity.count()).ok());
        let hosts = Hosts {
            client_cores: cores,
            ..Hosts::default()
        };

        Self {
            spec,
            space,
            interrupts,
            progress,
            started: Instant::now(),
            length: RunLength::fixed(spec),
            port: None,
            affinity,
            log: RunLog {
                hosts,
                provenance: provenance(),
                run_time_s: spec.time_s,
                ..RunLog::default()
            },
            has_result: false,
            is_interrupted: false,
            is_unreachable: false,
            recording,
            trial: None,
            live: None,
        }
    }

    /// Lets runs become longer where the path needs it.
    pub(crate) fn growing(mut self) -> Self {
        self.length = RunLength::growing(self.spec);
        self
    }

    /// Shows the runs in `live` as well.
    pub(crate) fn shown(mut self, live: Option<Live>) -> Self {
        if let Some(live) = &live {
            live.update(|state| state.sweep_mut().host.clone_from(&self.spec.host));
        }
        self.live = live;
        self
    }

    fn show_run(&self, setting: &Setting, outcome: &Result<Observation, RunError>) {
        let Some(live) = self.live.as_ref() else {
            return;
        };
        let words = self.space.words(setting);
        let value = |value: f64| (value, report::value(self.spec.objective, value));
        let value = outcome.as_ref().ok().map(|run| value(run.value));
        live.update(|state| state.run_ended(&words, value));
    }

    /// The specification with the port whose server runs the tests.
    pub(super) fn reached(&self) -> SweepSpec {
        SweepSpec {
            port: self.port.map_or(self.spec.port, PortRange::from),
            ..self.spec.clone()
        }
    }

    /// Ends the progress and the log.
    pub(super) fn finish(&mut self) -> &RunLog {
        self.progress.clear();
        self.log.elapsed = self.started.elapsed();
        &self.log
    }

    /// Makes the next runs longer where this one was too short, and the time allows it.
    fn grow(&mut self, metrics: &RunMetrics) -> bool {
        let mut length = self.length;
        let left = self.spec.budget.saturating_sub(self.started.elapsed());
        if !length.grow(metrics) || run_time(self.spec, length.time_s) > left {
            return false;
        }

        self.length = length;
        self.log.run_time_s = length.time_s;
        true
    }

    fn record(&mut self, started_ns: u64, run: &Run) {
        let (Some(recording), Some(mut trial)) = (&mut self.recording, self.trial.take()) else {
            return;
        };
        let names = self.spec.over.iter().map(|swept| swept.name.to_owned());
        let is_repeated = |earlier: &&Run| earlier.levels == run.levels && !earlier.is_warm_up;
        // Repeats count by setting; warm-ups are not compared.
        let repeat = self.log.runs.iter().filter(is_repeated).count();

        trial.factors = names.zip(run.levels.iter().cloned()).collect();
        trial.is_warm_up = run.is_warm_up;
        trial.repeat = u32::try_from(repeat).unwrap_or(u32::MAX);
        trial.started_ns = started_ns;

        // Also why a test that ended well has no value to compare.
        if let Err(error) = &run.outcome {
            trial.reason = Some(error.to_string());
        }

        recording.add(trial);
    }

    /// One test, after waiting for a server that is busy, or between two tests.
    fn test(&mut self, setting: &Setting) -> Result<Observation, RunError> {
        // The wait for a busy server counts against the budget.
        let busy_timeout =
            BUSY_TIMEOUT.min(self.spec.budget.saturating_sub(self.started.elapsed()));
        let asked = Instant::now();
        let mut reached = asked;

        loop {
            let result = self.once(
                setting,
                REOPENING_TIMEOUT
                    .saturating_sub(reached.elapsed())
                    .max(REOPENING_RHYTHM),
            );
            let Err(failure) = &result.outcome else {
                return self.observed(result);
            };
            if is_one_of(failure, &[ErrorCode::AccessDenied]) && asked.elapsed() < busy_timeout {
                // The server answered, so the time for its return begins again.
                reached = Instant::now();
                self.progress.update(&format!(
                    "the server is busy with another test; retried for {}",
                    clock(asked.elapsed().as_secs_f64())
                ));
                self.pause(BUSY_RHYTHM)?;
            } else if self.has_result
                && is_between(failure, &result)
                && reached.elapsed() < REOPENING_TIMEOUT
            {
                self.pause(REOPENING_RHYTHM)?;
            } else {
                return Err(self.judged(failure));
            }
        }
    }

    /// `reopening_timeout`: of the connection, unless it is the first one.
    fn once(&mut self, setting: &Setting, reopening_timeout: Duration) -> ClientResult {
        let mut spec = self.reached();
        spec.time_s = self.length.time_s;
        let mut client = self.space.test_settings(setting).client_spec(&spec);

        // Once is enough, and datagrams travel differently when the server counts for us.
        client.test.want_peer_facts = self.log.runs.is_empty() && !self.spec.is_udp;
        if !self.log.runs.is_empty() {
            client.connect_timeout = Some(reopening_timeout);
        }

        let is_pinned = client.local.cpu.is_some();
        let mut builder = self.recording.is_some().then(Builder::default);
        let mut shown = self.live.as_ref().map(Live::sink);
        let result =
            Client::new(client).observe(&mut Tee(&mut builder, &mut shown), self.interrupts);

        self.trial = builder.map(Builder::finish);
        if let Some(affinity) = self.affinity.as_ref().filter(|_| is_pinned) {
            // What could be narrowed can be widened again.
            let _ = affinity.restore_process();
        }

        result
    }

    /// Waits a moment; ends it when the user wants no more.
    fn pause(&mut self, time: Duration) -> Result<(), RunError> {
        let is_signalled =
            poll::wait_fd(self.interrupts.fd(), Interest::READ, Some(time)).unwrap_or(false);
        if is_signalled && self.interrupts.take().is_some() {
            return Err(self.interrupted());
        }

        Ok(())
    }

    fn judged(&mut self, failure: &Failure) -> RunError {
        let reason = if is_one_of(failure, &[ErrorCode::Connect]) {
            connect_failure(
                &failure.to_string(),
                &self.spec.host,
                self.port.unwrap_or(self.spec.port.first),
                TEST_SERVER,
            )
        } else {
            failure.to_string()
        };
        let is_hopeless = is_one_of(
            failure,
            &[
                ErrorCode::Connect,
                ErrorCode::AuthTest,
                ErrorCode::AccessDenied,
            ],
        );

        match failure.kind {
            FailureKind::Interrupted => self.interrupted(),
            _ if is_hopeless && !self.has_result => {
                self.is_unreachable = true;
                RunError::Over(reason)
            }
            _ if is_one_of(failure, &[ErrorCode::Connect]) => {
                RunError::Over(format!("the server is no longer reachable: {reason}"))
            }
            _ => RunError::Failed(reason),
        }
    }

    fn interrupted(&mut self) -> RunError {
        self.is_interrupted = true;
        RunError::Over("interrupted".to_owned())
    }

    /// Further runs are tests of the same server.
    fn keep_port(&mut self, port: u16) {
        let remark = self.spec.port.remark(port);
        if self.port.replace(port).is_none()
            && let Some(remark) = remark
        {
            self.progress.line(&remark);
        }
    }

    fn observed(&mut self, result: ClientResult) -> Result<Observation, RunError> {
        if let Some(control) = &result.control {
            // Equal addresses of both ends mean that the load of both is on this host.
            self.log.hosts.is_same_host = control.local.ip() == control.remote.ip();
            self.keep_port(control.remote.port());
        }

        let facts = result
            .peer_facts
            .as_deref()
            .and_then(|facts| EndpointObservation::from_peer(facts).ok());
        if let Some(EndpointObservation { snapshot, .. }) = facts {
            self.log.hosts.server_cores = cores(&snapshot);
            let server = &mut self.log.provenance.server;
            server.name = Some(snapshot.host);
            server.program = Some("linerate".to_owned());
            server.kernel = snapshot.kernel;
        }

        let failed = |text: &str| RunError::Failed(text.to_owned());
        let summary = result
            .summary
            .ok_or_else(|| failed("the test had no result"))?;
        let metrics = metrics::run_metrics(&summary)
            .ok_or_else(|| failed("the server did not report the received bytes"))?;
        let value = metrics::value(self.spec.objective, &metrics).map_err(failed)?;

        self.log.is_client_cpu_only |=
            self.spec.objective == Objective::CpuPerByte && metrics.cpu_server_percent.is_none();
        self.has_result = true;
        Ok(Observation { value, metrics })
    }
}

impl Runner for Network<'_> {
    fn run(&mut self, setting: &Setting) -> Result<Observation, RunError> {
        loop {
            let started = self.started.elapsed();
            let started_ns = self.recording.as_ref().map_or(0, Recording::elapsed_ns);
            let outcome = self.test(setting);
            let is_first = self.log.runs.is_empty();
            let is_too_short = outcome.as_ref().is_ok_and(|run| self.grow(&run.metrics));
            let run = Run {
                levels: self.space.labels(setting),
                started_s: started.as_secs_f64(),
                // A run that was too short is repeated at the new length.
                is_warm_up: is_first || is_too_short,
                outcome: outcome.clone(),
            };
            self.record(started_ns, &run);

            if !run.is_warm_up {
                self.show_run(setting, &outcome);
            }

            self.log.runs.push(run);
            if is_first || !is_too_short {
                return outcome;
            }
        }
    }

    fn run_time(&self) -> Duration {
        run_time(self.spec, self.length.time_s)
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn progress(&mut self, progress: &Progress) {
        if let Some(live) = &self.live {
            let setting = self.space.words(&progress.setting);
            live.update(|state| {
                let sweep = state.sweep_mut();
                sweep.runs_done = progress.runs_done;
                sweep.runs_planned = progress.runs_planned;
                sweep.setting = setting;
                sweep.left_s = progress.left.as_secs_f64();
            });
        }

        self.progress.update(&format!(
            "[{}/{}] {}; {} left",
            progress.runs_done + 1,
            progress.runs_planned,
            self.space.words(&progress.setting),
            clock(progress.left.as_secs_f64())
        ));
    }
}

pub(crate) fn is_one_of(failure: &Failure, codes: &[ErrorCode]) -> bool {
    codes.iter().any(|code| failure.code == Some(code.number()))
}

/// The server was not there, or went away before the test began.
fn is_between(failure: &Failure, result: &ClientResult) -> bool {
    let gone = [
        ErrorCode::Connect,
        ErrorCode::SendCookie,
        ErrorCode::SendMessage,
        ErrorCode::RecvMessage,
        ErrorCode::SendParams,
        ErrorCode::CtrlClose,
        ErrorCode::CtrlRead,
        ErrorCode::CtrlWrite,
    ];
    // A test with a result was under way, so its server was there.
    result.summary.is_none() && is_one_of(failure, &gone)
}

/// Now, and this host; the server is known after the first run.
fn provenance() -> Provenance {
    let system = process::uname();
    let mut provenance = Provenance {
        started_at: jiff::Timestamp::now()
            .strftime("%Y-%m-%dT%H:%M:%SZ")
            .to_string(),
        ..Provenance::default()
    };
    provenance.client.name = Some(system.node);
    provenance.client.program = Some(concat!("linerate ", env!("CARGO_PKG_VERSION")).to_owned());
    provenance.client.kernel = Some(system.release);

    provenance
}

/// Number of cores of the server, as it reports them.
fn cores(facts: &Snapshot) -> Option<u32> {
    let count = facts.number("cpu.count")?;
    // The facts come from the peer, so the number has bounds.
    (1.0..=65_536.0).contains(&count).then_some(count as u32)
}
