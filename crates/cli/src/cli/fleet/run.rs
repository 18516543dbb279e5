//! The command line of `linerate fleet run`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use linerate::fleet::run::{RunResult, RunSpec, TestOptions, dry_run, run};
use linerate::progress::style;
use linerate::{Error, Outcome, Progress};
use linerate_lab::fleet::Topology;
use linerate_lab::sweep::grammar;
use linerate_model::fleet::{FleetMode, FleetReport, HostId, PairDirection};
use linerate_report::fleet as report;
use linerate_sys::signal::{Signal, Signals};

use super::hosts::HostArgs;
use crate::cli::record::{RecordArgs, report as report_record};
use crate::cli::{check_files, complain, print};

const COMMAND: &str = "linerate fleet run";

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    #[command(subcommand)]
    topology: TopologyArgs,
}

#[derive(Debug, Subcommand)]
enum TopologyArgs {
    /// Each host with each other, in rounds of pairs that have no host in common
    Mesh(Box<OptionArgs>),
    /// A list of pairs, in both directions
    Pairs(Box<PairArgs>),
}

#[derive(Debug, Args)]
struct PairArgs {
    /// The pairs
    #[arg(long, value_name = "A:B[,...]", value_delimiter = ',', value_parser = pair, required = true)]
    pairs: Vec<(HostId, HostId)>,
    #[command(flatten)]
    options: OptionArgs,
}

#[derive(Debug, Args)]
struct OptionArgs {
    #[command(flatten)]
    hosts: HostArgs,
    /// Measured time of each test
    #[arg(short, long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=3600))]
    time: u32,
    /// Start of each test that is not counted
    #[arg(short = 'O', long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=60))]
    omit: u32,
    /// Streams of each test
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=128))]
    streams: u32,
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
    /// Tests of each pair and direction
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Seed of the order of the tests
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Time for all rounds, for example 90s or 15m; none is started that would end later [default: no limit]
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

/// Destinations and forms of the reports.
#[derive(Debug, Args)]
pub(super) struct OutputArgs {
    /// Write the report as one JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Write one line for each cell to a file, comma-separated
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write the report as one HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
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

impl RunArgs {
    pub(super) fn main(self) -> Outcome {
        let (topology, options) = match self.topology {
            TopologyArgs::Mesh(options) => (Topology::Mesh, *options),
            TopologyArgs::Pairs(pairs) => (Topology::Pairs(pairs.pairs), pairs.options),
        };
        match options.carry_out(topology) {
            Ok(outcome) => outcome,
            Err(error) => complain(COMMAND, &error.to_string(), error.outcome),
        }
    }
}

impl OptionArgs {
    fn carry_out(self, topology: Topology) -> Result<Outcome, Error> {
        let (is_dry, record) = (self.dry_run, self.record.resolve(true).map_err(Error::usage)?);
        let (spec, output) = self.resolve(topology)?;
        if is_dry {
            return print(&format!("{}\n", dry_run(&spec)?)).map(|()| Outcome::Done).map_err(Error::failed);
        }
        output.run(|signals, progress| run(&spec, record, signals, progress))
    }

    fn resolve(self, topology: Topology) -> Result<(RunSpec, OutputArgs), Error> {
        let mode = match self.mode {
            ModeArg::Isolated => FleetMode::Isolated,
            ModeArg::Rounds => FleetMode::Rounds,
            ModeArg::RackSafe => FleetMode::RackSafe,
            ModeArg::Stress => FleetMode::Stress,
        };
        let seconds = |count: u32| Duration::from_secs(count.into());
        let spec = RunSpec {
            hosts: self.hosts.resolve()?,
            topology,
            mode,
            direction: if self.one_way { PairDirection::OneWay } else { PairDirection::Both },
            sample_rounds: self.rounds,
            repetitions: self.repeat,
            seed: self.seed,
            test: TestOptions { time: seconds(self.time), omit: seconds(self.omit), streams: self.streams },
            budget: self.budget,
        };
        Ok((spec, self.output))
    }
}

impl OutputArgs {
    /// Runs tests that signals cancel, and writes the reports.
    pub(super) fn run(
        &self,
        run: impl FnOnce(&Signals, &mut Progress) -> Result<RunResult, Error>,
    ) -> Result<Outcome, Error> {
        check_files([&self.csv, &self.html].into_iter().flatten()).map_err(Error::failed)?;
        let signals = Signals::new(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup]);
        let signals = signals.map_err(|error| Error::failed(error.text()))?;
        let result = run(&signals, &mut Progress::new(self.quiet))?;
        report_record(result.message);
        self.write(&result.report)?;
        Ok(result.outcome)
    }

    fn write(&self, run: &FleetReport) -> Result<(), Error> {
        let text = if self.json { report::json(run) } else { report::text(run, self.verbose, style()) };
        let printed = print(&text).map_err(Error::failed);
        let write = |path: &Path, text: String| {
            fs::write(path, text).map_err(|error| {
                // A part of a report could be taken for a whole one.
                let _ = fs::remove_file(path);
                Error::failed(format!("cannot write {}: {error}", path.display()))
            })
        };
        let csv = self.csv.as_deref().map_or(Ok(()), |path| write(path, report::csv(run)));
        let html = self.html.as_deref().map_or(Ok(()), |path| write(path, report::html(run)));
        printed.and(csv).and(html)
    }
}

/// `h1:h2`
fn pair(text: &str) -> Result<(HostId, HostId), String> {
    let (a, b) = text.split_once(':').ok_or_else(|| "not A:B".to_owned())?;
    let id = |name: &str| name.parse::<HostId>().map_err(|error| error.to_string());
    Ok((id(a)?, id(b)?))
}
