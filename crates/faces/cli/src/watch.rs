//! The command line of `linerate watch`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, Parser};
use linerate::command_line::{iperf2, iperf3};
use linerate::model::spec::ClientSpec;
use linerate::watch::{MetricsTarget, Outlets, WatchSpec};
use linerate::{Error, Outcome, Progress};
use linerate_history::conclude::expect::Expectations;
use linerate_history::conclude::expect::parse::ExpectError;
use linerate_history::plan::quiet::Quiet;
use linerate_http::target::{Target, TargetError};
use linerate_sweep::spec::grammar;

use crate::fleet::{self, FleetArgs};
use crate::http::{self, HttpArgs};
use crate::output::{outcome_of, signals};
use crate::sweep::{self, SweepArgs};
use crate::test::{self, TestArgs};

const COMMAND: &str = "linerate watch";
/// Longest name, so that a file can have it.
const NAME_CHARS_MAX: usize = 64;

/// What is repeated, and when.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    pub(super) repeat: RepeatArgs,
    /// Make one run now, unless it is quiet
    #[arg(long, conflicts_with = "count")]
    once: bool,
    /// End after N runs [default: with Ctrl-C]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
}

/// What a watch and its units have in common.
#[derive(Debug, Args)]
pub(crate) struct RepeatArgs {
    /// Time between two runs, for example 30s, 5m or 1h
    #[arg(long, value_name = "TIME", value_parser = grammar::budget)]
    pub(super) every: Duration,
    /// Name of the watch; runs start on a grid that follows from it [default: from the command]
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: Option<String>,
    /// When nothing is run, by the local clock: hours, and days of the week
    #[arg(long, value_name = "22:00-06:00,sat,...")]
    quiet: Option<String>,
    /// Limits that each run is to keep, for example 'rx>=900M,retr<10,loss<=0.1%'
    #[arg(long, value_name = "LIMITS")]
    expect: Option<String>,
    /// Command line for the shell when the state changes; reads a JSON object and has 30 s
    #[arg(long, value_name = "COMMAND")]
    alert: Option<String>,
    /// Results for Prometheus: a file for its collector of text files, or an address with /metrics
    #[arg(long, value_name = "FILE|ADDR:PORT")]
    metrics: Option<String>,
    /// Send each run to a collector of OpenTelemetry, for example http://localhost:4318
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
    /// History to write to: a file, postgresql://..., or off [default: $LINERATE_STORE, or
    /// history.db in the state directory]
    #[arg(long, value_name = "PLACE")]
    store: Option<String>,
    /// A client: test ..., iperf3 -c ..., iperf2 -c ..., sweep ..., http load ... or fleet run ...
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const NOTES: &str = "\
A failed run is tried again in the first half of its slot, and then recorded without values. A run that takes half a period \
longer than expected is ended and has failed. A slot that comes while a run is not over is skipped. The state is failing \
after three failed runs in a row, a missed limit or a change for the worse, and ok with the next good run; --alert runs \
when it changes. The cells of a fleet are judged one by one: those that get worse together are one alert, which names their \
host or pair and the first round of it, and one recovery.

Examples:
  linerate watch --every 5m -- iperf3 -c 192.0.2.7 -t 5
  linerate watch --every 1h --expect 'grade>=B' -- test 192.0.2.7 --profile quick
  linerate watch --every 1h --quiet 22:00-06:00,sat,sun -- sweep 192.0.2.7 --budget 10m
  linerate watch --every 5m --alert 'mail -s \"path\" root' -- iperf3 -c 192.0.2.7 -u -b 10M
  linerate watch --every 10m --name lab -- fleet run mesh -i lab.toml
  linerate watch --every 5m --metrics /var/lib/prometheus/node-exporter/linerate.prom -- iperf3 -c 192.0.2.7
  linerate generate systemd --every 5m -- iperf3 -c 192.0.2.7    units for the same

Exit codes, of the last run: 0 good, 1 failed, 2 wrong command line, 5 --expect missed, 10 a change for the worse, \
130 interrupted.";

/// Repeats a run.
pub(crate) fn main(args: WatchArgs) -> Outcome {
    outcome_of(COMMAND, run(args))
}

fn run(args: WatchArgs) -> Result<Outcome, Error> {
    let (spec, outlets) = args.resolve().map_err(Error::usage)?;
    linerate::watch::watch(&spec, &outlets, &signals()?, Progress::new(false))
}

impl WatchArgs {
    fn resolve(self) -> Result<(WatchSpec, Outlets), String> {
        let Self {
            repeat,
            once,
            count,
        } = self;
        let name = repeat.name();
        let quiet = repeat.quiet()?;
        let expect = repeat.expect()?;
        let otlp = repeat.otlp()?;
        let (command, run_length) = recorded(repeat.command)?;
        let spec = WatchSpec {
            count,
            is_once: once,
            quiet,
            expect,
            alert: repeat.alert,
            store: repeat.store,
            ..WatchSpec::new(name, command, run_length, repeat.every)
        };

        let outlets = Outlets {
            metrics: repeat.metrics.map(metrics_target),
            otlp,
        };

        Ok((spec, outlets))
    }
}

impl RepeatArgs {
    /// The name, or one made of the command.
    pub(super) fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| {
            let args: Vec<_> = self
                .command
                .iter()
                .map(|arg| arg.to_string_lossy())
                .collect();
            let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
            let text: String = args
                .join("-")
                .chars()
                // The name becomes that of a file and of a unit, so other characters are replaced.
                .map(|c| if is_allowed(c) { c } else { '_' })
                .collect();
            text.chars().take(NAME_CHARS_MAX).collect()
        })
    }

    /// Arguments of `watch` after `--once`, as typed; the name is always there, so that it survives a
    /// change of the command.
    ///
    /// # Errors
    /// A command that cannot be repeated, or is longer than the period.
    pub(super) fn args(&self) -> Result<Vec<String>, String> {
        recorded(self.command.clone())?;
        // The values are checked here, because a service would show the error only at its first
        // run.
        let _ = (self.quiet()?, self.expect()?, self.otlp()?);
        let every = format!("{}s", self.every.as_secs());
        let name = self.name();
        let options = [
            ("--every", Some(&every)),
            ("--name", Some(&name)),
            ("--quiet", self.quiet.as_ref()),
            ("--expect", self.expect.as_ref()),
            ("--alert", self.alert.as_ref()),
            ("--metrics", self.metrics.as_ref()),
            ("--otlp", self.otlp.as_ref()),
            ("--store", self.store.as_ref()),
        ];
        let typed = options
            .into_iter()
            .filter_map(|(option, value)| Some([option.to_owned(), value?.clone()]));
        let command = self
            .command
            .iter()
            .map(|arg| arg.to_string_lossy().into_owned());

        Ok(typed
            .flatten()
            // After `--` options belong to the command that is repeated.
            .chain(["--".to_owned()])
            .chain(command)
            .collect())
    }

    fn quiet(&self) -> Result<Quiet, String> {
        self.quiet
            .as_deref()
            .map_or_else(|| Ok(Quiet::default()), str::parse)
    }

    fn expect(&self) -> Result<Option<Expectations>, String> {
        self.expect
            .as_deref()
            .map(|limits| {
                limits
                    .parse()
                    .map_err(|error: ExpectError| error.to_string())
            })
            .transpose()
    }

    fn otlp(&self) -> Result<Option<Target>, String> {
        self.otlp
            .as_deref()
            .map(|url| url.parse().map_err(|error: TargetError| error.to_string()))
            .transpose()
    }
}

/// The command with recording on, and how long it takes.
fn recorded(mut command: Vec<OsString>) -> Result<(Vec<OsString>, Duration), String> {
    let run_length = run_length(&command)?;
    if command
        .first()
        .is_some_and(|first| first == "iperf3" || first == "iperf2")
    {
        // The dialects of other programs keep no record unless an option requests it.
        command.insert(1, "--lr-record".into());
    }

    Ok((command, run_length))
}

/// Expected time of a run.
fn run_length(command: &[OsString]) -> Result<Duration, String> {
    // A test by bytes or blocks has no known time and counts as 0.
    let of = |spec: &ClientSpec| spec.test.end.duration().unwrap_or_default() + spec.test.omit;
    let (first, args) = command.split_first().ok_or("no command")?;
    let no_client = || {
        format!(
            "`{}` is no client: its run has no end",
            first.to_string_lossy()
        )
    };

    match first.to_str() {
        Some("iperf3") => match iperf3::parse(first, args) {
            Ok(iperf3::Request::Run(command, _)) => match *command {
                iperf3::Command::Client { spec, .. } => Ok(of(&spec)),
                iperf3::Command::Server { .. } => Err(no_client()),
            },
            // A command that prints its help makes no run.
            Ok(iperf3::Request::Print(_)) => Err(no_client()),
            Err(text) => Err(String::from_utf8_lossy(&text).trim_end().to_owned()),
        },
        Some("iperf2") => match iperf2::parse(first, args).request {
            iperf2::Request::Run(iperf2::Command::Client { spec, .. }) => Ok(of(&spec)),
            iperf2::Request::Print {
                text,
                is_success: false,
                ..
            } => Err(String::from_utf8_lossy(&text).trim_end().to_owned()),
            _ => Err(no_client()),
        },
        _ => native_run_length(command),
    }
}

/// A native command that a watch can repeat.
#[derive(Debug, Parser)]
#[command(name = "linerate", no_binary_name = true)]
enum Watchable {
    Test(Box<TestArgs>),
    Sweep(Box<SweepArgs>),
    Http(HttpArgs),
    Fleet(Box<FleetArgs>),
}

fn native_run_length(command: &[OsString]) -> Result<Duration, String> {
    let length = match Watchable::try_parse_from(command) {
        Ok(Watchable::Test(args)) => test::run_length(*args),
        Ok(Watchable::Sweep(args)) => sweep::run_length(&args),
        Ok(Watchable::Http(args)) => http::run_length(&args),
        Ok(Watchable::Fleet(args)) => {
            fleet::run_length(*args).map_err(|error| error.to_string())?
        }
        Err(error) if error.kind() == ErrorKind::InvalidSubcommand => None,
        Err(error) => return Err(error.to_string().trim_end().to_owned()),
    };
    length.ok_or_else(|| {
        "this command cannot be watched: it is none of test, iperf3, iperf2, sweep, http load and fleet run"
            .to_owned()
    })
}

fn metrics_target(text: String) -> MetricsTarget {
    text.parse::<SocketAddr>().map_or_else(
        |_| MetricsTarget::File(PathBuf::from(text)),
        MetricsTarget::Address,
    )
}

fn name(text: &str) -> Result<String, String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let is_name = (1..=NAME_CHARS_MAX).contains(&text.len()) && text.chars().all(is_allowed);
    is_name
        .then(|| text.to_owned())
        .ok_or_else(|| format!("not 1 to {NAME_CHARS_MAX} of the characters a-z A-Z 0-9 _ . -"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: WatchArgs,
    }

    fn resolve(line: &str) -> Result<WatchSpec, String> {
        let args = format!("watch {line}");
        let line = Line::try_parse_from(args.split(' ')).map_err(|error| error.to_string())?;
        line.args.resolve().map(|(spec, _)| spec)
    }

    #[test]
    fn run_is_recorded_and_its_length_is_that_of_its_command_line() {
        for (command, seconds) in [
            ("iperf3 -c h", 10),
            ("iperf3 -c h -t 5 -O 2", 7),
            ("iperf2 -c h -t 20", 20),
            ("test h --profile quick", 10),
            ("test h --only idle --repeat 3", 9),
            ("sweep h --budget 2m", 120),
            ("http load http://h/ -d 5s --warmup 1s", 6),
            // One round, and a second beside its tests.
            ("fleet run mesh --hosts h1,h2 -t 2", 4),
        ] {
            let spec = resolve(&format!("--every 5m -- {command}")).expect(command);
            assert_eq!(spec.run_length, Duration::from_secs(seconds), "{command}");
            let is_dialect = command.starts_with("iperf");

            assert_eq!(
                spec.command.get(1).is_some_and(|arg| arg == "--lr-record"),
                is_dialect,
                "{command}"
            );
        }

        let spec = resolve("--every 5m -- iperf3 -c 192.0.2.7 -t 5").expect("a watch");
        assert_eq!(spec.name, "iperf3--c-192.0.2.7--t-5");
    }

    #[test]
    fn what_cannot_be_repeated_is_refused() {
        for (line, part) in [
            ("--every 5m -- iperf3 -s", "is no client"),
            ("--every 5m -- serve", "cannot be watched"),
            ("--every 5m -- ls", "cannot be watched"),
            (
                "--every 5m -- fleet check --hosts h1,h2",
                "cannot be watched",
            ),
            (
                "--every 5m -- fleet run mesh -i /nosuch.toml",
                "/nosuch.toml",
            ),
            ("--every 5m -- iperf3 --nosuch", "unrecognized option"),
            ("--every 5m --quiet 22 -- iperf3 -c h", "neither a period"),
            ("--every 5m --name a/b -- iperf3 -c h", "not 1 to 64"),
            ("--every 5m", "required"),
        ] {
            let error = resolve(line).expect_err(line);
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn metrics_go_to_an_address_or_a_file() {
        assert_eq!(
            metrics_target("127.0.0.1:9101".to_owned()),
            MetricsTarget::Address(([127, 0, 0, 1], 9101).into())
        );
        assert_eq!(
            metrics_target("a.prom".to_owned()),
            MetricsTarget::File("a.prom".into())
        );
    }
}
