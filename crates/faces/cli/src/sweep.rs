//! The command line of `linerate sweep`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use linerate::expect::missed_by_run;
use linerate::live::Live;
use linerate::record::RecordOptions;
use linerate::view::View;
use linerate::{Outcome, Progress};
use linerate_history::conclude::expect::Expectations;
use linerate_model::PortRange;
use linerate_model::record::{Body, RunRecord};
use linerate_model::sweep::Objective;
use linerate_sweep::report;
use linerate_sweep::spec::grammar::{self, SweptFactor};
use linerate_sweep::{SweepSpec, TestSettings, recorded_runs};
use linerate_sys::signal::{Signal, Signals};

use super::expect::missed;
use super::record;
use super::record::RecordArgs;
use crate::output::{check_files, complain, print};
use crate::servers::{self, ServerProtocol};

const COMMAND: &str = "linerate sweep";

/// Carries out a sweep.
pub(crate) fn main(args: SweepArgs) -> Outcome {
    // Resolving takes the arguments, and the limits are needed after the runs.
    let limits = args.expect.clone();
    let (spec, record, output) = match args.resolve() {
        Ok(resolved) => resolved,
        Err(text) => return complain(COMMAND, &text, Outcome::Usage),
    };
    // Before the runs, because their result is lost where the file cannot be written.
    if let Err(reason) = check_files([&output.csv, &output.html].into_iter().flatten()) {
        return complain(COMMAND, &reason, Outcome::NotCompleted);
    }

    let signals = match Signals::new(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup]) {
        Ok(signals) => signals,
        Err(error) => return complain(COMMAND, &error.text(), Outcome::NotCompleted),
    };
    let live = output.tui.then(Live::default);
    let view = live.as_ref().and_then(View::open);
    // The view has the progress already.
    let progress = Progress::new(output.quiet || view.is_some());

    let result = linerate::sweep(
        &spec,
        record,
        &signals,
        progress,
        view.as_ref().and(live.as_ref()),
    );
    if let Some(view) = view {
        view.close();
    }

    let result = match result {
        Ok(result) => result,
        Err(error) => return complain(COMMAND, &error.to_string(), error.outcome),
    };
    record::report(result.recorded.message);

    let written = write_reports(&output, &result.recorded.record, result.has_result);
    match (result.ended_by, written) {
        // A signal ends the sweep before its answer, whatever the reports are.
        _ if result.is_interrupted => Outcome::Interrupted,
        (Some(reason), _) if result.is_unreachable => {
            complain(COMMAND, &reason, Outcome::Unreachable)
        }
        (Some(reason), _) | (None, Err(reason)) => {
            complain(COMMAND, &reason, Outcome::NotCompleted)
        }
        (None, Ok(())) => {
            let found = limits
                .iter()
                .flat_map(|limits| missed_by_run(limits, &result.recorded.record));
            missed(
                COMMAND,
                limits.as_ref(),
                &found.collect::<Vec<_>>(),
                Outcome::Done,
            )
        }
    }
}

/// What is to be found out, and how it is reported.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct SweepArgs {
    /// The server: iperf3 from version 3.12 on, or linerate; NAME of servers.toml
    #[arg(value_name = "HOST")]
    host: String,
    /// Port of the server, or a range, of which the first port is used whose server is not busy:
    /// 5201-5210 [default: 5201]
    #[arg(short, long, value_name = "PORT[-LAST]")]
    port: Option<PortRange>,
    /// What to vary, one after the other: streams, length, window, congestion, rate, affinity; each
    /// with =LEVELS or without
    #[arg(long, value_name = "FACTOR[=LEVELS][,...]", default_value = "streams")]
    over: Vec<String>,
    /// What to optimise: most received bits per second, the same with less than 0.1 % loss, least
    /// CPU time per GiB of both ends, or least round-trip time
    #[arg(long, value_name = "WHAT", default_value = "throughput")]
    objective: ObjectiveArg,
    /// Measured part of each run; longer where a round trip is more than 3 % of it
    #[arg(short, long, value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=3600))]
    time: u32,
    /// Start of each run that is not counted
    #[arg(short = 'O', long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=60))]
    omit: u32,
    /// Runs of each setting; more where the best is not yet clear, and six to confirm the answer
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repetitions: u32,
    /// Time for all runs, for example 90s, 15m or 2h; none is started that would end later
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = grammar::budget)]
    budget: Duration,
    /// Seed of the order of the runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The server sends
    #[arg(short = 'R', long)]
    reverse: bool,
    /// Test UDP; needs --rate or --over rate
    #[arg(short, long)]
    udp: bool,
    /// Streams, where they are not varied [default: 1]
    #[arg(short = 'P', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=128))]
    streams: Option<u32>,
    /// Bytes per write or datagram, where they are not varied
    #[arg(short, long, value_name = "SIZE", value_parser = grammar::length)]
    length: Option<u64>,
    /// Socket buffers, where they are not varied [default: the system's choice]
    #[arg(short, long, value_name = "SIZE", value_parser = grammar::window)]
    window: Option<u64>,
    /// Rate of each stream, where it is not varied; 0 for no limit [default: none]
    #[arg(short = 'b', long, value_name = "RATE", value_parser = grammar::rate)]
    rate: Option<u64>,
    /// Congestion control, where it is not varied [default: the system's choice]
    #[arg(short = 'C', long, value_name = "NAME", conflicts_with = "udp")]
    congestion: Option<String>,
    /// IPv4 only
    #[arg(short = '4', conflicts_with = "v6")]
    v4: bool,
    /// IPv6 only
    #[arg(short = '6')]
    v6: bool,
    #[command(flatten)]
    output: OutputArgs,
    /// Limits that the setting that is advised must hold, for example rx>=900M,retr<10
    #[arg(long, value_name = "LIMITS")]
    expect: Option<Expectations>,
    #[command(flatten)]
    record: RecordArgs,
}

/// Destinations and forms of the reports.
#[derive(Debug, Args)]
struct OutputArgs {
    /// Write the record of the run, one JSON object, instead of text
    #[arg(long)]
    json: bool,
    /// Write one line per run to a file, comma-separated
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write the report as one HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Show the runs while they are made on the terminal of the standard error
    #[arg(long)]
    tui: bool,
    /// Print no progress
    #[arg(short, long)]
    quiet: bool,
    /// Print every level with its spread, and what it cost
    #[arg(short, long)]
    verbose: bool,
}

const NOTES: &str = "\
Levels:
  streams=1..64         first 1, 2, 4 ... until doubling twice gains nothing, then closer around the best
  streams=1,4,16        these and no others; so with length, window and rate
  length=4K..1M         bytes per write or datagram; K and M are 1024-based
  window=64K..16M       socket buffers
  rate=100M..10G        of each stream, in bit/s; K, M and G are 1000-based
  congestion=cubic,bbr  these; without levels, all this host has
  affinity=any,0,1,0/2  CPU of the client, or of client/server; any for none

For length and window the system's default is measured as well. Defaults win ties.

Examples:
  linerate sweep 192.0.2.7  how many streams?
  linerate sweep 192.0.2.7 --over window=64K..16M,congestion  which window? which algorithm?
  linerate sweep 192.0.2.7 -u -l 1400 --over rate=100M..10G --objective low-loss  which rate arrives without loss?

The number of runs and their time are printed first. Ctrl-C ends the sweep with a report of the runs made.

Exit codes: 0 done (also when the runs allow no answer), 1 not completed, 2 wrong command line, \
4 no answer from the server, 5 a limit of --expect was missed, 130 interrupted.";

/// Words for objectives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ObjectiveArg {
    /// Most received bits per second
    Throughput,
    /// Most received bits per second with less than 0.1 % of the datagrams lost (UDP)
    LowLoss,
    /// Least CPU time of both ends per GiB received
    CpuPerByte,
    /// Least round-trip time under load (TCP)
    Latency,
}

/// Longest time of all runs.
pub(crate) fn run_length(args: &SweepArgs) -> Option<Duration> {
    Some(args.budget)
}

impl SweepArgs {
    /// Decides what is to be swept.
    ///
    /// # Errors
    /// The first contradiction, in words.
    fn resolve(mut self) -> Result<(SweepSpec, RecordOptions, OutputArgs), String> {
        if let Some(server) = servers::find(&self.host)? {
            if let Some(ServerProtocol::Ndt7 | ServerProtocol::Ndt7s) = server.protocol {
                return Err(format!("{}: a sweep has no tests of ndt7", self.host));
            }
            self.host = server.address;
            self.port = self.port.or(server.port);
        }

        let over =
            grammar::factors(&self.over, self.udp).map_err(|error| format!("--over {error}"))?;
        let held = TestSettings {
            streams: self.streams,
            length_bytes: self.length,
            window_bytes: self.window,
            rate_bps: self.rate,
            congestion: self.congestion,
            ..TestSettings::default()
        };
        check_held(&over, &held)?;

        if self.udp {
            check_udp(&over, &held)?;
        }

        let objective = match self.objective {
            ObjectiveArg::Throughput => Objective::Throughput,
            ObjectiveArg::LowLoss => Objective::LowLoss,
            ObjectiveArg::CpuPerByte => Objective::CpuPerByte,
            ObjectiveArg::Latency => Objective::Latency,
        };
        if objective == Objective::Latency && self.udp {
            return Err("--objective latency is measured by TCP: leave out -u".to_owned());
        }
        if objective == Objective::LowLoss && !self.udp {
            return Err("--objective low-loss counts datagrams: add -u".to_owned());
        }
        if objective == Objective::Latency && self.reverse {
            return Err(
                "--objective latency is measured by the sender, which must be this host: leave out \
                 -R".to_owned()
            );
        }
        // UDP has no congestion control that would find the rate.
        if self.udp && held.rate_bps.is_none() && !over.iter().any(|swept| swept.name == "rate") {
            return Err(
                "-u needs a rate: -b 1G, -b 0 for as fast as possible, or --over rate".to_owned(),
            );
        }

        let spec = SweepSpec {
            over,
            objective,
            time_s: self.time,
            omit_s: self.omit,
            repetitions: self.repetitions,
            budget: self.budget,
            seed: self.seed,
            is_reverse: self.reverse,
            is_udp: self.udp,
            held,
            family: match (self.v4, self.v6) {
                (true, _) => Some(4),
                (_, true) => Some(6),
                _ => None,
            },
            host: self.host,
            port: self.port.unwrap_or(5201.into()),
        };

        Ok((spec, self.record.resolve(true)?, self.output))
    }
}

/// Writes the reports. Without any result only JSON is written: people have the reason.
fn write_reports(output: &OutputArgs, record: &RunRecord, has_result: bool) -> Result<(), String> {
    let Body::Sweep(Some(sweep)) = &record.body else {
        return Err("the record is of no sweep".to_owned());
    };
    let runs = recorded_runs(sweep, &record.trials);
    let text = match (output.json, has_result) {
        (true, _) => linerate::record::json(record),
        (false, true) => report::text(sweep, output.verbose, linerate::progress::style()),
        (false, false) => String::new(),
    };
    let printed = print(&text);
    let write = |path: &Path, text: String| {
        fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
    };
    let csv = output
        .csv
        .as_deref()
        .map_or(Ok(()), |path| write(path, report::csv(sweep, &runs)));
    let html = output
        .html
        .as_deref()
        .map_or(Ok(()), |path| write(path, report::html(sweep, &runs)));

    printed.and(csv).and(html)
}

/// Refuses a factor that is both varied and held.
fn check_held(over: &[SweptFactor], held: &TestSettings) -> Result<(), String> {
    let rows = [
        ("streams", held.streams.is_some(), "-P"),
        ("length", held.length_bytes.is_some(), "-l"),
        ("window", held.window_bytes.is_some(), "-w"),
        ("rate", held.rate_bps.is_some(), "-b"),
        ("congestion", held.congestion.is_some(), "-C"),
    ];
    match rows
        .iter()
        .find(|(name, is_held, _)| *is_held && over.iter().any(|swept| swept.name == *name))
    {
        Some((name, _, option)) => Err(format!(
            "{name} is varied: leave out {option}, or --over {name}"
        )),
        None => Ok(()),
    }
}

/// Refuses factors that only TCP has, and lengths that only it can carry.
fn check_udp(over: &[SweptFactor], held: &TestSettings) -> Result<(), String> {
    if over.iter().any(|swept| swept.name == "congestion") {
        return Err(
            "--over congestion: it is TCP that has congestion control: leave out -u".to_owned(),
        );
    }

    match held.length_bytes {
        Some(length) if !grammar::UDP_LENGTH.contains(&length) => Err(format!(
            "-l {length}: a datagram has {} to {} bytes",
            grammar::UDP_LENGTH.start(),
            grammar::UDP_LENGTH.end()
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: SweepArgs,
    }

    fn resolve(line: &str) -> Result<SweepSpec, String> {
        let words = std::iter::once("sweep").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|e| e.to_string())?;
        Ok(line.args.resolve()?.0)
    }

    #[test]
    fn a_host_is_enough() {
        let spec = resolve("192.0.2.7").expect("a host");
        assert_eq!(
            (spec.port.first, spec.time_s, spec.omit_s, spec.repetitions),
            (5201, 3, 1, 3)
        );
        assert_eq!(spec.over.len(), 1);
        assert_eq!(spec.over[0].name, "streams");
        assert_eq!(spec.budget, Duration::from_secs(900));
    }

    #[test]
    fn contradictions_are_refused_with_what_to_do() {
        let rows = [
            ("h -u", "-b 1G"),
            ("h -u -b 1G --objective latency", "-u"),
            ("h -R --objective latency", "-R"),
            ("h --objective low-loss", "-u"),
            ("h -P 4", "-P"),
            ("h --over window -w 1M", "-w"),
            ("h -u -b 0 --over congestion", "TCP"),
            ("h -u -C cubic", "--udp"),
            ("h -u -b 0 -l 15", "datagram"),
            ("h --over streams,streams=1..4", "twice"),
            ("h --over nosuch", "nosuch"),
            ("h --over streams=9..4", "9..4"),
            ("h --time 0", "0"),
            ("h --budget 0", "budget"),
            ("h -4 -6", "-6"),
            ("", "HOST"),
        ];
        for (line, part) in rows {
            let error = resolve(line).expect_err(line);
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
