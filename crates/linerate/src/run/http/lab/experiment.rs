//! An experiment from the first look at the hosts to the report.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use linerate_host::load::{Tested, Watched};
use linerate_http::control::TCP_CAPABILITY;
use linerate_lab::http::ceiling::Link;
use linerate_lab::http::cells::{self, PlannedRun};
use linerate_lab::http::environment::changes;
use linerate_lab::http::estimate::{self, estimate};
use linerate_lab::http::preflight::blocked;
use linerate_lab::http::study::{self, Ending, Material, study};
use linerate_model::http::{Baseline, CellKey, CellRun, Check, Phase, RunState, Study};
use linerate_sys::clock;

use super::cell::{Bench, skipped};
use super::needs::{self, Hosts};
use super::record::{Beginning, Record};
use super::screen::Screen;
use super::site::Site;
use super::{baseline, cooldown, written};
use crate::cli::http::lab::LabSpec;
use crate::exit_code::ExitCode;
use crate::run::http::signals::Stop;
use crate::run::http::trouble::Trouble;
use crate::run::http::watch::Watch;

/// An experiment that has begun.
pub(super) struct Experiment<'a> {
    spec: &'a LabSpec,
    site: Site,
    hosts: Hosts,
    checks: Vec<Check>,
    record: Record,
    watch: Watch,
    stop: Stop,
    screen: Screen,
    bytes_max: Option<u64>,
    started_unix_ms: u64,
    begun: Instant,
    baseline: Vec<Baseline>,
    runs: Vec<CellRun>,
    notes: Vec<String>,
    is_first_run: bool,
}

impl<'a> Experiment<'a> {
    /// Looks at both hosts and opens the record.
    pub(super) fn begin(spec: &'a LabSpec, site: Site) -> Result<Self, Trouble> {
        let planned = cells::runs(&spec.plan, spec.phases);
        let bytes_max = site.permit(spec, &planned)?;
        let hosts = needs::hosts(&site);
        let checks = needs::checks(spec, &site, &hosts, &needs::keys(&planned));
        let cost = estimate(&spec.plan, spec.phases, None);
        let stop = Stop::new().map_err(Trouble::failed)?;
        let count = u32::try_from(planned.len()).unwrap_or(u32::MAX);
        let mut screen = Screen::new(spec.output, written::style(), count, cost.total.time);
        screen.say(&introduction(&site, cost.total.time));
        if spec.asks_first && !site.claims.is_ours && !site.is_local() && !is_wanted()? {
            return Err(Trouble::failed("not wanted"));
        }
        let (record, kept) = Record::open(&spec.directory, &spec.plan)?;
        screen.say(&format!("keeping the runs in {}", record.path().display()));
        let watched = Watched {
            pids: vec![std::process::id()],
            tested: Tested::Client {
                server: site.address(),
                ports: None,
            },
        };
        let mut experiment = Self {
            spec,
            watch: Watch::start(watched)
                .map_err(|error| Trouble::failed(format!("cannot watch this host: {error}")))?,
            site,
            hosts,
            checks,
            record,
            stop,
            screen,
            bytes_max,
            started_unix_ms: clock::unix_ms(),
            begun: Instant::now(),
            baseline: kept.baseline,
            runs: kept.runs,
            notes: Vec::new(),
            is_first_run: true,
        };
        experiment.note_circumstances();
        experiment.compare_hosts(kept.beginning)?;
        Ok(experiment)
    }

    /// Makes what is to be made, and reports it.
    pub(super) fn run(mut self) -> Result<ExitCode, Trouble> {
        self.tests()?;
        let planned = cells::runs(&self.spec.plan, self.spec.phases);
        let (matrix, later): (Vec<_>, Vec<_>) = planned.into_iter().partition(|run| is_isolated(run.key.phase));
        self.make(matrix)?;
        self.refine()?;
        self.make(later)?;
        self.screen.wipe();
        let is_complete = !self.stop.is_wanted();
        let study = study(self.material(is_complete));
        self.record.keep_study(&linerate_report::http::json(&study))?;
        written::study(&study, self.spec.output, &self.spec.files)?;
        Ok(self.code(&study))
    }

    fn code(&mut self, study: &Study) -> ExitCode {
        if self.stop.is_wanted() {
            return ExitCode::Interrupted;
        }
        match study::ending(study, self.spec.asserts) {
            Ending::Done
                if study.cells.iter().all(|cell| cell.runs.iter().all(is_skipped)) && !study.cells.is_empty() =>
            {
                ExitCode::CheckFailed
            }
            Ending::Done => ExitCode::Done,
            Ending::ObjectiveMissed => ExitCode::Missed,
            Ending::TooManyInvalid => ExitCode::Invalid,
        }
    }

    /// What a reader of the report must know beside the figures.
    fn note_circumstances(&mut self) {
        if self.site.server.is_none() {
            self.notes.push(
                "no control channel at the server: what its host did is unknown, and so are the verdicts that need it"
                    .to_owned(),
            );
        }
        if !self.site.has_sizes {
            let why = if self.site.target.path == "/" {
                "the server has no payloads of linerate's"
            } else {
                "the URL names a path"
            };
            self.notes.push(format!(
                "{why}: every cell asks for {}, {} bytes",
                self.site.target.path, self.site.answer.body_bytes
            ));
        }
    }

    /// On going on: whether the hosts are still what they were.
    fn compare_hosts(&mut self, kept: Option<Beginning>) -> Result<(), Trouble> {
        let spoken = &self.site.answer.spoken;
        let Some(before) = kept else {
            return self.record.keep_beginning(&Beginning {
                started_unix_ms: self.started_unix_ms,
                spoken: Some(spoken.clone()),
                client: self.hosts.client.clone(),
                server: self.hosts.server.clone(),
            });
        };
        self.started_unix_ms = before.started_unix_ms;
        let mut changed = changes(&before.client, &self.hosts.client);
        match (&before.server, &self.hosts.server) {
            (Some(before), Some(now)) => changed.extend(changes(before, now)),
            (None, None) => {}
            _ => changed.push("the server's control channel".to_owned()),
        }
        if let Some(before) = before.spoken.filter(|before| before != spoken) {
            changed.push(format!("spoken: {before}, now {spoken}"));
        }
        if changed.is_empty() {
            return Ok(());
        }
        let changed = changed.join(", ");
        if !self.spec.is_forced {
            return Err(Trouble::usage(format!(
                "since the experiment began, this has changed: {changed}; --force goes on and marks the report"
            )));
        }
        self.notes
            .push(format!("mixed environment, changed between the runs: {changed}"));
        Ok(())
    }

    /// TCP alone.
    fn tests(&mut self) -> Result<(), Trouble> {
        let planned = cells::tests(&self.spec.plan, self.spec.phases);
        if planned.is_empty() || !self.baseline.is_empty() {
            return Ok(());
        }
        let link = self.link();
        let (host, port) = (self.site.address().ip().to_string(), self.tcp_port());
        for test in planned {
            if self.stop.is_wanted() {
                return Ok(());
            }
            let duration = self.spec.plan.tcp.duration;
            let outcome = baseline::test(&host, port, &test, duration, link.as_ref(), self.stop.signals());
            match outcome {
                Ok(found) => {
                    let mbps = found.goodput_bps / 1e6;
                    let way = if found.is_reverse {
                        "server to client"
                    } else {
                        "client to server"
                    };
                    self.screen
                        .say(&format!("TCP {way}, {} streams: {mbps:.0} Mbit/s", found.streams));
                    self.baseline.push(found);
                }
                Err(failure) if failure.kind == linerate_model::FailureKind::Interrupted => {
                    self.stop.note();
                    return Ok(());
                }
                Err(failure) => {
                    self.notes.push(format!(
                        "no TCP baseline: {failure} (an iperf3 server is expected at port {port}, for example that of `linerate http serve --tcp`)"
                    ));
                    return Ok(());
                }
            }
        }
        self.record.keep_baseline(&self.baseline)?;
        self.judge_path()
    }

    /// A path that is not clean makes the rest worth little.
    fn judge_path(&mut self) -> Result<(), Trouble> {
        let troubles = study::troubles(&self.baseline);
        if troubles.is_empty() || self.hosts.client.is_loopback {
            return Ok(());
        }
        if self.spec.is_forced {
            self.notes.extend(troubles);
            return Ok(());
        }
        Err(Trouble::new(
            ExitCode::CheckFailed,
            format!(
                "the path is not clean: {}; `linerate doctor` may say why, --force goes on",
                troubles.join("; ")
            ),
        ))
    }

    fn tcp_port(&self) -> u16 {
        let told = self.site.server.as_ref().and_then(|side| {
            let capabilities = side.info.capabilities.iter();
            capabilities
                .filter_map(|word| word.strip_prefix(TCP_CAPABILITY)?.parse().ok())
                .next()
        });
        told.unwrap_or(TCP_PORT)
    }

    fn link(&self) -> Option<Link> {
        Link::between(&self.hosts.client, self.hosts.server.as_ref(), self.site.ip())
    }

    /// Adds the cells that would say most about the knees.
    fn refine(&mut self) -> Result<(), Trouble> {
        // Each added cell may move the knee, so it is asked again until nothing more would be learned.
        for _ in 0..REFINEMENT_ROUNDS_MAX {
            let keys = study::refinements(&self.material(false));
            let known: BTreeSet<PlannedRun> = self.runs.iter().map(planned_of).collect();
            let runs = cells::remaining(cells::refinement_runs(&self.spec.plan, &keys), &known);
            if runs.is_empty() || self.stop.is_wanted() {
                return Ok(());
            }
            self.screen.add_runs(u32::try_from(runs.len()).unwrap_or(0));
            self.make(runs)?;
        }
        Ok(())
    }

    /// Makes the runs that are not there yet.
    fn make(&mut self, runs: Vec<PlannedRun>) -> Result<(), Trouble> {
        let finished: BTreeSet<PlannedRun> = self.runs.iter().map(planned_of).collect();
        let blocked = self.blocked(&runs);
        for planned in cells::remaining(runs, &finished) {
            if self.stop.is_wanted() {
                return Ok(());
            }
            let run = if blocked.contains(&planned.key) && !self.spec.is_forced {
                skipped(&planned, "a check before the experiment failed; see the checks")
            } else {
                self.one(&planned)?
            };
            self.screen.finished(&run);
            self.record.keep_run(&planned, &run)?;
            self.runs.push(run);
        }
        Ok(())
    }

    fn blocked(&self, runs: &[PlannedRun]) -> Vec<CellKey> {
        blocked(&self.checks, &needs::keys(runs))
    }

    fn one(&mut self, planned: &PlannedRun) -> Result<CellRun, Trouble> {
        let plan = &self.spec.plan;
        let least = if self.is_first_run {
            Duration::ZERO
        } else {
            plan.defaults.cooldown
        };
        self.is_first_run = false;
        let is_rested = cooldown::rest(least, &mut self.site, &self.watch, &mut self.stop);
        if planned.key.phase == Phase::Idle
            && let Some(side) = &mut self.site.server
        {
            side.restart_workers();
        }
        self.screen
            .begin(plan.defaults.warmup, estimate::window(plan, &planned.key));
        let mut bench = Bench {
            spec: self.spec,
            site: &mut self.site,
            watch: &self.watch,
            stop: &mut self.stop,
            screen: &mut self.screen,
            bytes_max: self.bytes_max,
        };
        bench.run(planned, !is_rested)
    }

    fn material(&self, is_complete: bool) -> Material<'_> {
        Material {
            target: self.spec.plan.target.as_deref().unwrap_or_default(),
            port: self.site.address().port(),
            ip: self.site.ip(),
            plan: &self.spec.plan,
            phases: self.spec.phases,
            started_unix_ms: self.started_unix_ms,
            elapsed_ns: u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX),
            is_complete,
            checks: self.checks.clone(),
            client: self.hosts.client.clone(),
            server: self.hosts.server.clone(),
            baseline: self.baseline.clone(),
            runs: &self.runs,
            notes: self.notes.clone(),
        }
    }
}

/// Phases whose cells leave little behind; they come before those that do.
fn is_isolated(phase: Phase) -> bool {
    matches!(phase, Phase::Baseline | Phase::Payload | Phase::Matrix)
}

fn is_skipped(run: &CellRun) -> bool {
    run.state == RunState::Skipped
}

fn planned_of(run: &CellRun) -> PlannedRun {
    PlannedRun {
        key: run.key,
        repeat: run.repeat,
    }
}

fn introduction(site: &Site, time: Duration) -> String {
    let spoken = match &site.answer.spoken {
        spoken if spoken.is_plain_http1() => String::new(),
        spoken => format!("{spoken}, "),
    };
    let whose = match (&site.server, site.claims.is_ours) {
        (Some(side), true) => format!("linerate {}", side.info.version),
        (Some(_), false) => "watched by an agent".to_owned(),
        (None, _) => "nothing is known of its host".to_owned(),
    };
    format!(
        "{} at {}: {spoken}status {}, {whose}; about {} in all",
        site.target,
        site.address(),
        site.answer.status,
        linerate_report::sweep::clock(time.as_secs_f64()),
    )
}

/// Asks whether to go on; without anybody to ask, the command line was the answer.
pub(in crate::run::http) fn is_wanted() -> Result<bool, Trouble> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(true);
    }
    let trouble = |error: io::Error| Trouble::failed(format!("cannot ask: {error}"));
    write!(io::stderr(), "Go on with the load? [y/N] ").map_err(trouble)?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(trouble)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// At most two cells are added to a payload.
const REFINEMENT_ROUNDS_MAX: u32 = 2;
/// Where iperf3 servers are.
const TCP_PORT: u16 = 5201;
