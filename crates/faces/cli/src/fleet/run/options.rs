//! Options of a run, of all kinds and of those with pairs.

use std::time::Duration;

use clap::{Args, ValueEnum};
use linerate::Error;
use linerate::fleet::{RunSpec, TestOptions, Topology};
use linerate::record::RecordOptions;
use linerate_model::fleet::{FleetMode, PairDirection};
use linerate_sweep::spec::grammar;

use crate::fleet::hosts::HostArgs;
use crate::fleet::output::OutputArgs;
use crate::record::RecordArgs;

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
    pub spec: RunSpec,
    pub is_dry: bool,
    pub output: OutputArgs,
    pub record: RecordOptions,
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

        let spec = RunSpec {
            hosts,
            topology,
            mode: FleetMode::Rounds,
            direction: PairDirection::Both,
            variants: Vec::new(),
            sample_rounds: None,
            repetitions: self.repeat.unwrap_or(repetitions),
            seed: self.seed,
            test: TestOptions {
                time: seconds(self.time.unwrap_or(time_s)),
                omit: seconds(self.omit),
                streams: self.streams,
                rate_bps: self.max_rate,
                stagger: Duration::ZERO,
            },
            budget: self.budget,
            bytes_max: self.max_bytes,
        };
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

/// A rate that is a limit.
fn rate(text: &str) -> Result<u64, String> {
    match grammar::rate(text) {
        Ok(0) => Err("a limit above 0, for example 500M".to_owned()),
        Ok(bps) => Ok(bps),
        Err(error) => Err(error.to_string()),
    }
}
