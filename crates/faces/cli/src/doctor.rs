//! The command line of `linerate doctor`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use linerate::diagnose::{
    ProfileFiles, ProofSpec, Query, Source, diagnose, diagnose_recorded, prove, report,
};
use linerate::progress::style;
use linerate::{Error, Outcome, Progress};
use linerate_model::facts;
use linerate_model::finding::{Diagnosis, Severity};
use linerate_sys::signal::{Signal, Signals};

use crate::output::{outcome_of, print_all};
use crate::record::{self, RecordArgs};

const COMMAND: &str = "linerate doctor";

/// The hosts and files of a diagnosis, and the form of its report.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Interfaces to examine [default: the one to PEER, or all that are up], or files as with
    /// --from
    #[arg(value_name = "IFACE")]
    interfaces: Vec<String>,
    /// Examine the interface through which this host is reached
    #[arg(long, value_name = "PEER")]
    to: Option<String>,
    /// Sample the counters for this time, for example 5s or 500ms
    #[arg(long, value_name = "TIME", value_parser = duration)]
    window: Option<Duration>,
    /// Speed of the path where it is not the interface's, for example 1G
    #[arg(long, value_name = "RATE", value_parser = rate_mbps)]
    line_rate: Option<f64>,
    /// Write one JSON object
    #[arg(long)]
    json: bool,
    /// Write the facts to a file, for --from on this or another host
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// With --window: write what the CPUs did as collapsed stacks, for flame graphs (root)
    #[arg(long, value_name = "FILE", requires = "window")]
    stacks: Option<PathBuf>,
    /// With --window: draw what the CPUs did as a flame graph (SVG, root)
    #[arg(long, value_name = "FILE", requires = "window")]
    flame: Option<PathBuf>,
    /// Diagnose saved facts, or pasted output of commands: a file, a directory or - (may be
    /// repeated)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["interfaces", "to", "window", "diff", "record"])]
    from: Vec<PathBuf>,
    /// Compare two hosts, or two moments of one
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with_all = ["interfaces", "to", "window", "record"])]
    diff: Vec<PathBuf>,
    /// Check these rules only, for example NIC-01,PAU-02
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    only: Vec<String>,
    /// Explain a rule and exit
    #[arg(long, value_name = "ID", exclusive = true)]
    explain: Option<String>,
    /// Explain a fact, or list all facts, and exit
    #[arg(long, value_name = "KEY", exclusive = true, num_args = 0..=1, default_missing_value = "")]
    explain_fact: Option<String>,
    /// Apply the fix of a finding, compare tests to PEER without and with it, and restore the
    /// former settings (root)
    #[arg(
        long,
        value_name = "ID",
        requires = "to",
        conflicts_with_all = ["interfaces", "window", "line_rate", "save", "only", "fix_script", "fail_on", "verbose", "record"]
    )]
    prove: Option<String>,
    /// With --prove: change settings without confirmation
    #[arg(long, requires = "prove")]
    yes: bool,
    /// With --prove: time for all tests, for example 10m [default: 2m]
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "prove")]
    budget: Option<Duration>,
    /// With --prove: port of the server, iperf3 or linerate [default: 5201]
    #[arg(short, long, value_name = "PORT", requires = "prove")]
    port: Option<u16>,
    /// Write the suggested commands with their undo as a script, all commented out
    #[arg(long, conflicts_with = "json")]
    fix_script: bool,
    /// Exit with 3 when something at least this severe was found
    #[arg(long, value_name = "SEVERITY")]
    fail_on: Option<FailOn>,
    /// Print what a link, the bus and windows can carry at best, and exit
    #[arg(long, exclusive = true)]
    ceiling: bool,
    /// Show all findings and why each rule was ruled out or not checkable
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    record: RecordArgs,
}

const EXAMPLES: &str = "\
Examples:
  linerate doctor eth0 --window 5s         while a test runs: what limits it
  linerate doctor --from pasted.txt        diagnose the output of ethtool, lspci, ip, tc, iperf3, iperf
  linerate doctor --diff a.txt b.txt       what differs between two hosts, and can matter
  linerate doctor --prove QD-01 --to HOST  does the fix of this finding help?
  linerate doctor --record                 keep it; linerate history show last shows it again

Nothing is changed, except for the tests of --prove, which restores the former settings.

Exit codes: 0 done, 1 not completed, 2 wrong command line, 3 see --fail-on, 4 server not reachable, \
130 interrupted.";

/// Carries out the command line.
pub(crate) fn main(args: &DoctorArgs) -> Outcome {
    outcome_of(COMMAND, run(args))
}

fn run(args: &DoctorArgs) -> Result<Outcome, Error> {
    // Explanations need no host, so they precede every collection.
    if let Some(id) = &args.explain {
        let text = report::explanation(id)
            .ok_or_else(|| Error::usage(format!("there is no rule {id}")))?;
        return print_all(&text);
    }
    if let Some(key) = &args.explain_fact {
        return explain_fact(key);
    }
    if args.ceiling {
        return print_all(&report::ceilings());
    }
    if let (Some(id), Some(server)) = (&args.prove, &args.to) {
        return prove_fix(args, id, server);
    }

    let diagnosis = args.diagnosis()?;
    print_all(&match (args.json, args.fix_script) {
        (true, _) => report::json(&diagnosis),
        (false, true) => report::fix_script(&diagnosis),
        (false, false) => report::text(&diagnosis, args.verbose, style()),
    })?;
    let is_severe = args.fail_on.is_some_and(|level| {
        diagnosis
            .findings
            .iter()
            .any(|found| found.severity >= level.into())
    });
    Ok(if is_severe {
        Outcome::CheckFailed
    } else {
        Outcome::Done
    })
}

/// Compares tests without and with the fix of a finding.
fn prove_fix(args: &DoctorArgs, id: &str, server: &str) -> Result<Outcome, Error> {
    let mut spec = ProofSpec::new(id, server);
    spec.port = args.port.unwrap_or(spec.port);
    spec.budget = args.budget.unwrap_or(spec.budget);
    spec.is_confirmed = args.yes;

    // Each of them would otherwise end the process before the setting is restored.
    let signals = Signals::new(&[
        Signal::Interrupt,
        Signal::Terminate,
        Signal::Hangup,
        Signal::Quit,
    ])
    .map_err(|error| Error::failed(error.text()))?;
    let proof = prove(&spec, &signals, Progress::new(false))?;
    print_all(&if args.json {
        report::proof_json(&proof)
    } else {
        report::proof(&proof, style())
    })
}

/// Explains the fact of a key, or lists the keys of all facts.
fn explain_fact(key: &str) -> Result<Outcome, Error> {
    if key.is_empty() {
        let lines = facts::all()
            .map(|fact| format!("{:<34} {:<14} {}\n", fact.pattern, fact.unit, fact.meaning));
        return print_all(&lines.collect::<String>());
    }

    let fact = facts::find(key)
        .ok_or_else(|| Error::usage(format!("there is no fact {key}; --explain-fact lists all")))?;
    print_all(&format!(
        "{}  {}\n\nunit    {}\nsource  {}\n",
        fact.pattern, fact.meaning, fact.unit, fact.source
    ))
}

impl DoctorArgs {
    /// The diagnosis, with a record where one is wanted.
    fn diagnosis(&self) -> Result<Diagnosis, Error> {
        let options = self.record.resolve(false).map_err(Error::usage)?;
        if options.place.is_none() {
            return diagnose(&self.query());
        }

        let (diagnosis, recorded) = diagnose_recorded(&self.query(), options)?;
        record::report(recorded.message);
        Ok(diagnosis)
    }

    /// The files that were named in the place of interfaces.
    fn named_files(&self) -> Option<Vec<PathBuf>> {
        let is_plain = self.to.is_none() && self.window.is_none() && !self.interfaces.is_empty();
        // An interface wins over a file of the same name in the working directory.
        let is_file = |name: &String| !is_interface(name) && Path::new(name).exists();
        (is_plain && self.interfaces.iter().all(is_file))
            .then(|| self.interfaces.iter().map(PathBuf::from).collect())
    }

    fn query(&self) -> Query {
        let source = match (self.diff.as_slice(), self.named_files()) {
            ([a, b], _) => Source::Compared([a.clone(), b.clone()]),
            (_, Some(files)) => Source::Files(files),
            _ if !self.from.is_empty() => Source::Files(self.from.clone()),
            _ => Source::Host {
                interfaces: self.interfaces.clone(),
                peer: self.to.clone(),
                period: self.window,
            },
        };
        let mut query = Query::of(source);
        query.line_rate_mbps = self.line_rate;
        query.save = self.save.clone();
        query.only = self.only.clone();
        query.profile = ProfileFiles {
            stacks: self.stacks.clone(),
            flame: self.flame.clone(),
        };

        query
    }
}

/// True if this host has an interface of this name.
fn is_interface(name: &str) -> bool {
    // A name with a slash, or `..`, would lead out of the directory.
    let is_name = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
    is_name && Path::new("/sys/class/net").join(name).exists()
}

/// Severities that can fail a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Anything but information
    Low,
    /// A visible effect
    Medium,
    /// Probably the cause
    High,
}

impl From<FailOn> for Severity {
    fn from(level: FailOn) -> Self {
        match level {
            FailOn::Low => Self::Low,
            FailOn::Medium => Self::Medium,
            FailOn::High => Self::High,
        }
    }
}

/// A day is longer than anybody watches counters.
const WINDOW_SECONDS_MAX: f64 = 86_400.0;

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at(
        text.find(|c: char| c.is_ascii_alphabetic())
            .unwrap_or(text.len()),
    );
    let factor = match unit {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "m" => 60.0,
        _ => return Err("expected a number with s, ms or m".to_owned()),
    };
    let seconds = number.parse::<f64>().map_err(|error| error.to_string())? * factor;
    // A NaN is in no range, and fails this check as well.
    if !(0.1..=WINDOW_SECONDS_MAX).contains(&seconds) {
        return Err("expected between 100ms and one day".to_owned());
    }

    Ok(Duration::from_secs_f64(seconds))
}

fn rate_mbps(text: &str) -> Result<f64, String> {
    let (number, factor) = match text.as_bytes().last() {
        // Suffixes are ASCII, so the slice ends at a character boundary.
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1e-3),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1.0),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 1e3),
        // A plain number is in bit/s.
        _ => (text, 1e-6),
    };
    let rate = number.parse::<f64>().map_err(|error| error.to_string())? * factor;
    if rate.is_finite() && rate > 0.0 {
        Ok(rate)
    } else {
        Err("expected a positive rate, for example 1G".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_rates() {
        assert_eq!(duration("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2"), Ok(Duration::from_secs(2)));

        for bad in ["", "x", "-1s", "1h", "0", "1e99", "NaN"] {
            assert!(duration(bad).is_err(), "{bad}");
        }

        assert_eq!(rate_mbps("1G"), Ok(1000.0));
        assert_eq!(rate_mbps("100M"), Ok(100.0));

        for bad in ["", "G", "-1G", "0", "inf"] {
            assert!(rate_mbps(bad).is_err(), "{bad}");
        }
    }
}
