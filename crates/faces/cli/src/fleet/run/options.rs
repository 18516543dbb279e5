//! Options of a run, of all kinds and of those with pairs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use linerate::fleet::Topology;
use linerate::fleet::report;
use linerate::fleet::run::{RunResult, RunSpec, TestOptions};
use linerate::progress::style;
use linerate::record::RecordOptions;
use linerate::{Error, Outcome, Progress};
use linerate_model::fleet::{FleetMode, FleetReport, PairDirection};
use linerate_sweep::spec::grammar;
use linerate_sys::signal::{Signal, Signals};

use crate::doctor::FailOn;
use crate::fleet::hosts::HostArgs;
use crate::output::{check_files, print};
use crate::record::{RecordArgs, report as report_record};

/// Options of every run.
#[derive(Debug, Args)]
pub(super) struct CommonArgs {
    #[command(flatten)]
    hosts: HostArgs,
    /// Tests may use the network of the control connections
    #[arg(long)]
    shared_path: bool,
    /// Measured time of each test [default: 5, of a ladder 10]
    #[arg(short, long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3600))]
    time: Option<u32>,
    /// Start of each test that is not counted
    #[arg(short = 'O', long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=60))]
    omit: u32,
    /// Streams of each test
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=128))]
    streams: u32,
    /// Repetitions of each test [default: 1, of a baseline 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: Option<u32>,
    /// Highest rate of each test and direction, for example 500M [default: no limit]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    max_rate: Option<u64>,
    /// Most data of all tests, for example 2T; a run that may move more is refused [default: 1T]
    #[arg(long, value_name = "BYTES", value_parser = grammar::volume)]
    max_bytes: Option<u64>,
    /// Seed of the order of the tests
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Time for all rounds, for example 90s or 15m; none is started that would end later [default:
    /// no limit]
    #[arg(long, value_name = "TIME", value_parser = grammar::budget)]
    budget: Option<Duration>,
    /// Print what the run takes, and connect to no host
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    record: RecordArgs,
}

/// Options of runs with pairs.
#[derive(Debug, Args)]
pub(super) struct PairingArgs {
    /// Both directions of a pair at once; the default
    #[arg(long, conflicts_with = "one_way")]
    bidir: bool,
    /// One direction of a pair at a time
    #[arg(long)]
    one_way: bool,
    /// Which tests run at the same time
    #[arg(long, value_name = "MODE", default_value = "rounds")]
    mode: ModeArg,
    /// Rounds of a mesh, which is sampled; all pairs without it, up to 100 hosts
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: Option<u32>,
}

/// Destinations and forms of the reports.
#[derive(Debug, Args)]
pub(in crate::fleet) struct OutputArgs {
    /// Write the report as one JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Write one line for each cell to a file, comma-separated
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write the report as one HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Exit with 3 when something at least this severe was found
    #[arg(long, value_name = "SEVERITY")]
    fail_on: Option<FailOn>,
    /// Print no progress
    #[arg(short, long)]
    quiet: bool,
    /// Print every finding in full, and all effects
    #[arg(short, long)]
    verbose: bool,
}

/// Words for modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ModeArg {
    /// One pair at a time
    Isolated,
    /// Pairs that have no host in common
    Rounds,
    /// The same, within the limits of the uplinks of racks
    RackSafe,
    /// All pairs at once
    Stress,
}

/// A run before its first connection.
pub(super) struct Resolved {
    pub(super) spec: RunSpec,
    pub(super) is_dry: bool,
    pub(super) output: OutputArgs,
    pub(super) record: RecordOptions,
}

impl CommonArgs {
    /// A run of pairs in rounds, both ways at once. `time_s` is the usual time of a test in s.
    pub(super) fn resolve(
        self,
        topology: Topology,
        time_s: u32,
        repetitions: u32,
    ) -> Result<Resolved, Error> {
        let seconds = |count: u32| Duration::from_secs(count.into());
        let mut hosts = self.hosts.resolve()?;

        if self.shared_path {
            hosts.share_path();
        }

        let mut test = TestOptions::new(seconds(self.time.unwrap_or(time_s)));
        test.omit = seconds(self.omit);
        test.streams = self.streams;
        test.rate_bps = self.max_rate;

        let mut spec = RunSpec::new(hosts, topology, test);
        spec.repetitions = self.repeat.unwrap_or(repetitions);
        spec.seed = self.seed;
        spec.budget = self.budget;
        spec.bytes_max = self.max_bytes;

        let record = self.record.resolve(true).map_err(Error::usage)?;
        Ok(Resolved {
            spec,
            is_dry: self.dry_run,
            output: self.output,
            record,
        })
    }
}

impl PairingArgs {
    pub(super) fn apply(self, spec: &mut RunSpec) {
        spec.mode = match self.mode {
            ModeArg::Isolated => FleetMode::Isolated,
            ModeArg::Rounds => FleetMode::Rounds,
            ModeArg::RackSafe => FleetMode::RackSafe,
            ModeArg::Stress => FleetMode::Stress,
        };
        spec.direction = if self.one_way {
            PairDirection::OneWay
        } else {
            PairDirection::Both
        };
        spec.sample_rounds = self.rounds;
    }
}

impl OutputArgs {
    /// Runs tests that signals cancel, and writes the reports.
    pub(in crate::fleet) fn run(
        &self,
        run: impl FnOnce(&Signals, &mut Progress) -> Result<RunResult, Error>,
    ) -> Result<Outcome, Error> {
        check_files([&self.csv, &self.html].into_iter().flatten()).map_err(Error::failed)?;
        let signals = Signals::new(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup]);
        let signals = signals.map_err(|error| Error::failed(error.text()))?;
        let result = run(&signals, &mut Progress::new(self.quiet))?;
        report_record(result.message);
        self.write(&result.report)?;
        Ok(self.outcome(&result.report, result.outcome))
    }

    fn write(&self, run: &FleetReport) -> Result<(), Error> {
        let text = if self.json {
            report::json(run)
        } else {
            report::text(run, self.verbose, style())
        };
        let printed = print(&text).map_err(Error::failed);

        let write = |path: &Path, text: String| {
            fs::write(path, text).map_err(|error| {
                // A part of a report could be taken for a whole one.
                let _ = fs::remove_file(path);
                Error::failed(format!("cannot write {}: {error}", path.display()))
            })
        };
        let csv = self
            .csv
            .as_deref()
            .map_or(Ok(()), |path| write(path, report::csv(run)));
        let html = self
            .html
            .as_deref()
            .map_or(Ok(()), |path| write(path, report::html(run)));

        printed.and(csv).and(html)
    }

    /// The outcome of a run that is done, by its findings.
    fn outcome(&self, run: &FleetReport, outcome: Outcome) -> Outcome {
        let is_found = |level: FailOn| {
            run.findings
                .iter()
                .any(|found| found.severity >= level.into())
        };
        match outcome {
            Outcome::Done if self.fail_on.is_some_and(is_found) => Outcome::CheckFailed,
            outcome => outcome,
        }
    }
}

/// A rate that is a limit.
fn rate(text: &str) -> Result<u64, String> {
    match grammar::rate(text) {
        Ok(0) => Err("a limit above 0, for example 500M".to_owned()),
        Ok(bps) => Ok(bps),
        Err(error) => Err(error.to_string()),
    }
}
